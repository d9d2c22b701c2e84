"""The gradient of a loop, made in a branch, gave the loop an input after its control inputs: a session refuses that."""

# ruff: noqa
# devices: cpu:1,gpu:1


def program(name):
    def steps():
        x1 = v1.placeholder(tf.bool)
        x2 = v1.placeholder(tf.variant, [2, 2])
        x3 = v1.placeholder(tf.float32)

        def body9(i8, a6, a7):
            with tf.control_dependencies([x2]):
                t10 = made(tf.float32, lambda: tf.gradients(x3, [a6]))
            t11 = made(tf.float32, lambda: tf.gradients(a7, [a6]))
            return [i8 + 1, t11, t10]

        (
            t13,
            t14,
        ) = several(
            [tf.float32, tf.float32],
            lambda: tf.while_loop(
                lambda i8, a6, a7: i8 < 3,
                body9,
                [tf.constant(0), x3, x3],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape(None), tf.TensorShape(None)],
            )[1:],
        )

        def then33():
            t38 = made(tf.float32, lambda: tf.gradients(t14, [t13]))
            return [tf.constant("a")]

        def other39():
            t40 = made(tf.float32, lambda: tf.gradients(t14, [x3]))
            return [tf.constant("b")]

        (t41,) = several([tf.string], lambda: tf.cond(made(tf.bool, lambda: tf.reshape(x1, [])), then33, other39))
        yield

    session(name, steps, soft=True, control_flow_v2=True)
