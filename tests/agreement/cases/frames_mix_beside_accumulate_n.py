"""A node with inputs from two frames is refused before anything is placed, where AccumulateNV2 is in the graph.

The pass that replaces it asks for the frames of the whole graph (accumulate_n_optimizer.cc); without it the refusal
comes when the step runs.
"""

# ruff: noqa
# devices: cpu:1,gpu:2


def program(name):
    def steps():
        limit = v1.placeholder(tf.float32, [])
        first = tf.raw_ops.Enter(data=limit, frame_name="loop")
        second = tf.raw_ops.Enter(data=limit, frame_name="loop")
        tf.raw_ops.Mul(x=first, y=second)
        tf.raw_ops.Sub(x=first, y=limit)
        yield
        tf.raw_ops.AccumulateNV2(inputs=[limit, limit], shape=[])

    session(name, steps, soft=True, control_flow_v2=False)
