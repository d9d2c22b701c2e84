"""A group that was fixed to two devices: the internal error names both (Member::AssignDevice, colocation_graph.cc)."""

# ruff: noqa
# devices: cpu:2,gpu:0


def program(name):
    def steps():
        a = tf.identity(unknown(tf.float32))
        b = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32])  # kept on CPU:0 when the session is extended
        yield
        with v1.colocate_with(a), v1.colocate_with(b), tf.device("/CPU:1"):
            c = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2])
        yield

    session(name, steps)
