"""Let a function of the op choose devices: variables to the CPU, the rest to GPU:0 (a TensorFlow 1 graph)."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.disable_resource_variables()


def variables_to_cpu(op):
    return "/cpu:0" if op.type in ("Variable", "VariableV2", "VarHandleOp") else "/gpu:0"


with tf.device(variables_to_cpu):
    a = tf.Variable(3.0, name="a")
    b = tf.constant(4.0, name="b")
    c = tf.multiply(a, b, name="mul")

config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as session:
    session.run(a.initializer)
    print(session.run(c))
