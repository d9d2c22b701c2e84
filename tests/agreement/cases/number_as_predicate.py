"""A branch that asks a number is refused once it is lowered: a Switch asks a bool (lower_if_op.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:2


def program(name):
    from tensorflow.core.framework import attr_value_pb2

    def of(python_function):
        function = tf.function(python_function).get_concrete_function(tf.TensorSpec([]))
        function.add_to_graph()
        return function

    def steps():
        number = tf.compat.v1.placeholder_with_default(3.0, [])
        double, negative = of(lambda x: x * 2.0), of(lambda x: -x)
        if_op = tf.raw_ops.If(cond=number, input=[number], Tout=[tf.float32], then_branch=double, else_branch=negative)[
            0
        ].op
        if_op._set_attr("_lower_using_switch_merge", attr_value_pb2.AttrValue(b=True))
        yield

    session(name, steps, soft=True, control_flow_v2=True, intermediates=False)
