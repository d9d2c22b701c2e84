"""Types that do not go together end the inference, and what was found until then stays (type_inference.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:2


def program(name):

    def steps():
        t1 = unknown(tf.bool)

        def strings2():
            return tf.raw_ops.TensorListReserve(element_shape=[], num_elements=3, element_dtype=tf.string)

        def numbers3():
            return tf.raw_ops.TensorListReserve(element_shape=[], num_elements=3, element_dtype=tf.float32)

        t4 = made(tf.variant, lambda: tf.cond(tf.reshape(t1, []), strings2, numbers3))
        t5 = made(tf.variant, lambda: tf.cond(tf.reshape(t1, []), numbers3, strings2))
        t6 = made(tf.variant, lambda: tf.cond(tf.reshape(t1, []), strings2, strings2))
        t7 = [tf.identity(each) for each in (t4, t5, t6)]
        yield

    session(name, steps, soft=True, control_flow_v2=True, intermediates=True)
