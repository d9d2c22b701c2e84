"""A Merge of an empty Optional and one of strings: the type of the string is passed on (type_inference.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:8

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
        t1, t2 = unknown(tf.float32), unknown(tf.bool)

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


attempt("p0", p0)
