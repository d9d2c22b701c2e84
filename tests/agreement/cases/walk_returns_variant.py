"""A walk through a dataset that returns a variant is no dataset and need not be on its device (framework/dataset.cc)."""

# ruff: noqa
# devices: cpu:2,gpu:0


def program(name):
    @tf.function
    def walk():
        with tf.device("/cpu:1"):
            rows = tf.data.Dataset.range(5)
        return rows.reduce(tf.TensorArray(tf.int64, 5), lambda array, x: array.write(0, x)).stack()

    call(walk)
