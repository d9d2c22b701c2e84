"""A refusal names an inlined node by its function and its name there (FormatNodeDefForError, node_def_util.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:1


def program(name):

    def main(x1):

        def inner2(a3):
            with tf.device("/GPU:0"):
                return tf.strings.upper(a3)

        def then4():
            with tf.device("/CPU:0"):
                return traced(inner2)(x1)

        return tf.cond(tf.equal(x1, "a"), then4, lambda: x1)

    tf.config.set_soft_device_placement(False)
    call(traced(main, name=name), tf.constant("a"))
