"""The node that inlining puts in for an argument has no name but its own (inline_function_utils.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:1


def program(name):

    def main(x1):

        def inner2(a3):
            return tf.reshape(a3, [-1])

        def then4():
            with tf.device("/GPU:0"):
                t5 = tf.constant("a")
            return traced(inner2)(t5)

        return tf.cond(tf.equal(x1, "a"), then4, lambda: tf.constant(["b"]))

    tf.config.set_soft_device_placement(False)
    call(traced(main, name=name), tf.constant("a"))
