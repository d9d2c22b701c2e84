"""The lines that every generated script begins with.

Most calls are cancelled before they begin: TensorFlow places and logs the function, and runs nothing of it. Some are
made in full (`compute`), so that the way in which simplace runs what is on GPUs is tried as well. A session is only
extended, which is when TensorFlow places its graph.
"""

PRELUDE = '''\
import contextlib
import faulthandler
import os

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager import cancellation
from tensorflow.python.framework import function as legacy
from tensorflow.python.framework import ops
from tensorflow.python.ops import functional_ops

v1 = tf.compat.v1
FOLDER = os.path.dirname(os.path.abspath(__file__))
os.chdir(FOLDER)  # where a program that writes files does no harm
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
SECONDS = 90  # for one program, which takes a tenth of a second on an idle machine
VALUES = {"bool": True, "string": "a"}
kept = []  # variables whose handles are given as arguments


def attempt(name, program):
    """Run one program; say how it ended. One that hangs ends the process."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    tf.config.set_soft_device_placement(True)
    v1.experimental.output_all_intermediates(False)
    v1.enable_control_flow_v2()
    print("begin", name, flush=True)
    try:
        with ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED):  # nothing to rewrite, and it takes most of the time
            program(name)
        print("built", name, flush=True)
    except Exception as error:
        print("failed", name, type(error).__name__, str(error).splitlines()[:1], flush=True)
    faulthandler.cancel_dump_traceback_later()


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
        if dtype == "resource":
            kept.append(tf.Variable([1.0, 2.0]))
            return kept[-1].handle
        if dtype == "variant":
            return tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=tf.float32)
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


def defined(python_function, *types, **options):
    """Make a function as TensorFlow 1 did."""

    @legacy.Defun(*types, **options)
    def old(*arguments):
        return python_function(*arguments)

    return old


def gradient(python_function, tensor):
    """Differentiate with a tape."""
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        result = python_function(tensor)
    return tape.gradient(result, tensor)


def forward(python_function, tensor):
    """Differentiate forward."""
    with tf.autodiff.ForwardAccumulator(tensor, tf.ones_like(tensor)) as accumulator:
        return accumulator.jvp(python_function(tensor))


def recorded(writer, write):
    """Write a summary."""
    with writer.as_default():
        return write()


def on(device, make):
    """Make a dataset under another device than what walks through it."""
    with tf.device(device):
        return make()


def call(function, *arguments):
    """Make TensorFlow place a function for these arguments."""
    manager = cancellation.CancellationManager()
    manager.start_cancel()
    with cancellation.CancellationManagerContext(manager), contextlib.suppress(tf.errors.OpError):
        function(*arguments)


def compute(function, *arguments):
    """Call a function to its end; what TensorFlow says to values that make no sense is not looked at."""
    with contextlib.suppress(tf.errors.OpError):
        function(*arguments)


def session(name, steps, soft=True, control_flow_v2=True, intermediates=False):
    """Make TensorFlow place a graph after each step of its making."""
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
'''


EAGER = '''\
SECONDS = 20


def unknown(dtype):
    """Make a tensor where no symbolic one can be."""
    return value(tf.as_dtype(dtype).name)
'''


def script(programs: dict[str, str], *, is_eager: bool = False) -> str:
    """Write a script that runs programs, given by name, one after the other.

    A program is the source of a Python function `program(name)`; `is_eager` tells that it runs outside of functions.
    """
    parts = [PRELUDE, EAGER] if is_eager else [PRELUDE]
    for name, source in programs.items():
        parts.append(source.replace("def program(", f"def {name}(", 1))
    parts += [f'attempt("{name}", {name})' for name in programs]
    return "\n\n".join(parts) + "\n"
