"""A group that was fixed to two devices: the internal error names both (Member::AssignDevice, colocation_graph.cc)."""

# ruff: noqa
# devices: cpu:2,gpu:0

import contextlib

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import cancellation
from tensorflow.python.framework import ops

v1 = tf.compat.v1
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
VALUES = {"bool": True, "string": "a"}


def attempt(name, program):
    """Run one program; say how it ended."""
    tf.config.set_soft_device_placement(True)
    v1.experimental.output_all_intermediates(False)
    v1.enable_control_flow_v2()
    print("begin", name, flush=True)
    try:
        program(name)
        print("built", name, flush=True)
    except Exception as error:
        print("failed", name, type(error).__name__, str(error).splitlines()[:1], flush=True)


def made(dtype, make, place=0):
    """Take an output of some ops, or a constant where they cannot be made."""
    try:
        results = tf.nest.flatten(make(), expand_composites=True)
    except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, RuntimeError, tf.errors.OpError):
        results = []
    for result in results[place : place + 1]:
        if getattr(result, "dtype", None) == dtype:
            return tf.convert_to_tensor(result)
    return unknown(dtype)


def several(types, make):
    """Take the results of a call, each replaced where it is not of its type."""
    try:
        results = tf.nest.flatten(make())
    except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, RuntimeError, tf.errors.OpError):
        results = []
    results += [None] * len(types)
    return [made(dtype, lambda result=result: result) for dtype, result in zip(types, results, strict=False)]


def unknown(dtype):
    """Make a tensor of unknown shape out of nothing."""
    return v1.placeholder(dtype)


def value(dtype, device=None):
    """Make an eager tensor."""
    with tf.device(device):
        return tf.constant(np.full([2, 2], VALUES.get(dtype, 1)), dtype)


def variable(dtype, device=None):
    """Make a variable outside of any function."""
    with tf.device(device):
        return tf.Variable(tf.constant(np.full([2], VALUES.get(dtype, 1)), dtype))


def group(*names):
    """Colocate ops with groups that need not be called like a node."""
    classes = attr_value_pb2.AttrValue(
        list=attr_value_pb2.AttrValue.ListValue(s=[f"loc:@{name}".encode() for name in names])
    )
    return ops.get_default_graph()._attr_scope({"_class": classes})


def traced(python_function, *signature, name="", **options):
    """Make a tf.function that does not rewrite Python."""
    if name:
        python_function.__name__ = f"{name}_main"
    return tf.function(python_function, input_signature=signature or None, autograph=False, **options)


def call(function, *arguments):
    """Let TensorFlow place a function for these arguments."""
    manager = cancellation.CancellationManager()
    manager.start_cancel()
    with cancellation.CancellationManagerContext(manager), contextlib.suppress(tf.errors.OpError):
        function(*arguments)


def session(name, steps, soft=True, control_flow_v2=True, intermediates=False):
    """Let TensorFlow place a graph after each step of its making."""
    v1.experimental.output_all_intermediates(intermediates)
    (v1.enable_control_flow_v2 if control_flow_v2 else v1.disable_control_flow_v2)()
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(allow_soft_placement=soft)) as running:
        with tf.name_scope(name):
            for _ in steps():
                place(running)
        place(running)


def place(running):
    with contextlib.suppress(tf.errors.OpError):
        running._extend_graph()


def p0(name):
    def steps():
        with tf.device("/CPU:1"):
            x1 = v1.placeholder(tf.int64, [2, 2])
        w2 = v1.get_variable(name + "_w2", [2], tf.float32, v1.zeros_initializer(), use_resource=True)
        w3 = tf.raw_ops.VariableV2(shape=[2], dtype=tf.int32)
        with tf.device("/job:localhost/replica:0/task:0"):
            with tf.device("/gpu:0"):
                with tf.device("/CPU:1"):

                    def inner7(a4, a5, a6):
                        return [a6]

                    f8 = traced(inner7, jit_compile=True)
                    (t9,) = several(
                        [tf.float32], lambda: f8(unknown(tf.float32), tf.constant(1), tf.constant([1.0, 2.0]))
                    )
        with tf.device("/device:GPU:*"):
            with v1.colocate_with(t9, ignore_existing=True):
                with tf.device("/job:localhost/replica:0/task:0"):

                    def branch10():
                        return [x1, tf.constant(1.5, tf.float64)]

                    def branch11():
                        return [unknown(tf.int64), tf.constant(1.5, tf.float64)]

                    def branch12():
                        return [x1, unknown(tf.float64)]

                    (
                        t13,
                        t14,
                    ) = several(
                        [tf.int64, tf.float64],
                        lambda: tf.switch_case(
                            made(tf.int32, lambda: tf.reshape(tf.constant(1), [])), [branch10, branch11, branch12]
                        ),
                    )
        t15 = made(
            tf.bool,
            lambda: tf.raw_ops.MapUnstageNoKey(indices=tf.constant([0, 1]), capacity=3, dtypes=[tf.bool, tf.uint8]),
            1,
        )
        with tf.device("/CPU:1"):
            with v1.colocate_with(t9):
                with tf.control_dependencies([t13]):

                    def inner19(a16, a17, a18):
                        t20 = made(tf.float16, lambda: tf.raw_ops.Fill(dims=t13, value=a17))
                        with v1.colocate_with(a16, ignore_existing=True):
                            with v1.colocate_with(t15):
                                with tf.control_dependencies([t9]):
                                    (t21,) = several([tf.float32], lambda: f8(a16, tf.constant(1), a16))
                        with tf.device("/device:GPU:*"):
                            with tf.device("/GPU:7"):
                                with tf.device("/task:0/GPU:1"):
                                    (t22,) = several([tf.float32], lambda: f8(t9, tf.constant([0, 1]), t21))
                        return [tf.constant([0, 1]), tf.constant(1)]

                    f23 = traced(inner19)
                    (
                        t24,
                        t25,
                    ) = several(
                        [tf.int32, tf.int32],
                        lambda: f23(unknown(tf.float32), tf.constant(1.5, tf.float16), tf.constant(["a", "b"])),
                    )

        def then26():
            with tf.control_dependencies([t14]):
                (
                    t27,
                    t28,
                ) = several(
                    [tf.int32, tf.int32], lambda: f23(t9, tf.constant(1.5, tf.float16), tf.constant(["a", "b"]))
                )
            return [t27, t9]

        def other29():
            return [t24, t9]

        (
            t30,
            t31,
        ) = several(
            [tf.int32, tf.float32], lambda: tf.cond(made(tf.bool, lambda: tf.reshape(t15, [])), then26, other29)
        )
        yield

        def then32():
            with v1.colocate_with(t14):
                with tf.device("/device:CPU:*"):
                    with v1.colocate_with(t15):
                        t33 = made(
                            tf.float32,
                            lambda: tf.raw_ops.TensorArrayGradV3(
                                handle=tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="made"),
                                flow_in=t31,
                                source="b",
                            ),
                            1,
                        )
            t34 = made(tf.float32, lambda: tf.raw_ops.MatrixSolve(matrix=t31, rhs=t9))
            t35 = made(tf.string, lambda: tf.raw_ops.MapUnstage(key=t13, indices=t24, dtypes=[tf.string]))

            def then36():
                with tf.device("/task:0/GPU:1"):
                    with tf.control_dependencies([t35, t30]):
                        made(
                            tf.float32,
                            lambda: tf.raw_ops.ResourceApplyAdaMax(
                                var=tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64),
                                m=unknown(tf.resource),
                                v=unknown(tf.resource),
                                beta1_power=t13,
                                lr=x1,
                                beta1=tf.constant(1, tf.int64),
                                beta2=t13,
                                epsilon=x1,
                                grad=t13,
                            ),
                        )
                return [t25, t9, unknown(tf.float16)]

            def other37():
                (t38,) = several([tf.float32], lambda: f8(t31, t30, t9))
                return [t30, t31, tf.constant(1.5, tf.float16)]

            (
                t39,
                t40,
                t41,
            ) = several(
                [tf.int32, tf.float32, tf.float16],
                lambda: tf.cond(made(tf.bool, lambda: tf.reshape(t15, [])), then36, other37),
            )
            return [t33]

        def other42():
            with tf.control_dependencies([t15]):

                def body47(i46, a43, a44, a45):
                    return [i46 + 1, tf.constant([0, 1], tf.int64), a44, a45]

                (
                    t48,
                    t49,
                    t50,
                ) = several(
                    [tf.int64, tf.float32, tf.float32],
                    lambda: tf.while_loop(
                        lambda i46, a43, a44, a45: i46 < 3,
                        body47,
                        [tf.constant(0), x1, t31, t31],
                        shape_invariants=[
                            tf.TensorShape([]),
                            tf.TensorShape(None),
                            tf.TensorShape(None),
                            tf.TensorShape(None),
                        ],
                    )[1:],
                )
            with tf.device("/CPU:0"):
                with group("b"):
                    t51 = made(tf.uint8, lambda: tf.image.convert_image_dtype(t9, tf.uint8))
            t52 = made(
                tf.string,
                lambda: tf.raw_ops.UnsortedSegmentJoin(
                    inputs=unknown(tf.string), segment_ids=tf.constant([0, 1]), num_segments=x1
                ),
            )
            with tf.device("/device:CPU:*"):
                t53 = made(
                    tf.float32,
                    lambda: tf.raw_ops.QuantizedConv2DWithBiasSumAndRelu(
                        input=unknown(tf.qint8),
                        filter=unknown(tf.qint8),
                        bias=t31,
                        min_input=t31,
                        max_input=t49,
                        min_filter=t49,
                        max_filter=tf.constant(1.5),
                        summand=tf.constant(1.5),
                        strides=[1, 1, 1, 1, 1],
                        padding="SAME",
                    ),
                    2,
                )
            return [t9]

        (t54,) = several([tf.float32], lambda: tf.cond(made(tf.bool, lambda: tf.reshape(t15, [])), then32, other42))

        def inner58(a55, a56, a57):
            t59 = made(
                tf.float32,
                lambda: tf.raw_ops.Conv3DBackpropInput(
                    input=t9, filter=t9, out_backprop=t9, strides=[1, 1, 1, 1], padding="SAME"
                ),
            )
            return [t59, x1, a56]

        f60 = traced(inner58)
        (
            t61,
            t62,
            t63,
        ) = several([tf.float32, tf.int64, tf.int32], lambda: f60(t30, t25, t14))
        with tf.device("/job:localhost"):
            with tf.device("/CPU:9"):
                with tf.control_dependencies([t31]):
                    t64 = made(tf.complex64, lambda: tf.raw_ops.FFT(input=unknown(tf.complex64)))
        with tf.device("/job:localhost"):
            with tf.device("/CPU:0"):
                t65 = made(tf.float32, lambda: tf.boolean_mask(t61, t15))
        yield

    session(name, steps, soft=True, control_flow_v2=False)


attempt("p0", p0)
