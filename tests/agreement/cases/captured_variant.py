"""A variant that a function of a dataset on CPU:1 captures is there: MTypeFromDType keeps strings on the host, no variant."""

# ruff: noqa
# devices: cpu:2,gpu:0


def program(name):
    from tensorflow.python.data.experimental.ops import prefetching_ops

    def steps():
        dataset = tf.data.Dataset.range(10).apply(prefetching_ops.copy_to_device("/cpu:1"))
        with tf.device("/cpu:1"):
            v1.data.make_one_shot_iterator(dataset).get_next()
        yield

    session(name, steps)
