"""A loop of TensorFlow 1 over a reference variable hands its Merge a value: refused before it is placed."""

# ruff: noqa
# devices: cpu:1,gpu:1


def program(name):

    def steps():
        with tf.device("/gpu:0"):
            v = v1.get_variable("v", [2], use_resource=False)
        yield
        added = v1.assign_add(v, [1.0, 2.0])
        v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [tf.constant(0), added])
        yield

    session(name, steps, soft=True, control_flow_v2=False)
