"""A Merge of an empty Optional and one of strings: the type of the string is passed on (type_inference.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:8


def program(name):

    def steps():
        t1, t2 = (unknown(tf.float32), unknown(tf.bool))

        def then3():
            return [tf.constant(1.5), tf.constant(1)]

        def other4():
            t5 = unknown(tf.string)
            return [tf.constant(1.5), unknown(tf.int32)]

        t6, t7 = several(
            [tf.float32, tf.int32], lambda: tf.cond(made(tf.bool, lambda: tf.reshape(t2, [])), then3, other4)
        )
        t8 = made(
            tf.variant,
            lambda: tf.cond(
                made(tf.bool, lambda: tf.reshape(t2, [])),
                lambda: tf.raw_ops.OptionalNone(),
                lambda: tf.raw_ops.OptionalFromValue(components=[unknown(tf.string)]),
            ),
        )
        t9 = made(tf.variant, lambda: tf.identity(t8))
        yield

    session(name, steps, soft=True, control_flow_v2=True, intermediates=True)
