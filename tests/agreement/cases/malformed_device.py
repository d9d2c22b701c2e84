"""A malformed device is reported with all of the node (Node::DebugString, graph.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:2


def program(name):

    def steps():
        with tf.device("/GPU:0"):
            a = tf.constant([1.0])
        b = tf.identity(a)
        with tf.control_dependencies([a]):
            c = tf.add(b, a)
        c.op._set_device_from_string("nonsense")
        yield

    session(name, steps)
