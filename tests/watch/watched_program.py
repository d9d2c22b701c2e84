"""A program that watches itself in many ways, and prints as JSON what came of each; tests run it in a process."""

import contextlib
import io
import json
import sys
import threading
import traceback

import simplace

FOUND = {}
assert "tensorflow" not in sys.modules, "simplace.watch is to be entered before TensorFlow is imported"
with contextlib.redirect_stderr(io.StringIO()) as told, simplace.watch() as first:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    with tf.device("CPU:1"):
        weight = tf.Variable(tf.ones([4, 4]))

    @tf.function
    def inner(x):
        return tf.matmul(x, weight)

    @tf.function
    def step(x, text):
        with tf.device("CPU:2"):
            y = tf.nn.relu(x) + 1.0
        weight.assign_add(y)
        return inner(y), tf.strings.join([text, "b"])

    x, text = tf.ones([4, 4]), tf.constant("a")
    for _ in range(5):
        step(x, text)
    with tf.device("CPU:1"):
        product = tf.matmul(x, x)
FOUND["graph"] = {
    "told": told.getvalue(),
    "weight": float(weight[0, 0]),
    "summary": str(first.result),
    "agrees": first.result.agrees,
    "devices": sorted({node.device.rpartition(":")[2] for node in first.result.program("step").placement.nodes}),
    "relu": str(first.result.explain("Relu")),
    "functions": [len(tf.config.list_logical_devices()), tf.config.get_soft_device_placement()],
}

from tensorflow.python import pywrap_tfe  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

NAMES = ("TFE_Py_Execute", "TFE_Py_ExecuteCancelable", "TFE_Py_FastPathExecute")
BEFORE = [getattr(pywrap_tfe, name) for name in NAMES]


def functions_of_context():
    return sorted(context.context().list_function_names())


def watch(act):
    """Watch a call; return the watch, what the call returned, and the exception that it raised."""
    watching, result, error = simplace.watch(quiet=True), None, None
    try:
        with watching:
            result = act()
    except Exception as raised:
        error = raised
    assert [getattr(pywrap_tfe, name) for name in NAMES] == BEFORE, "TensorFlow's entry points are to be back"
    return watching, result, error


# A function that was called before: TensorFlow instantiates it no more, so a copy is asked, which must not run.
runs = tf.Variable(0)


@tf.function
def count(a):
    runs.assign_add(1)
    with tf.device("CPU:2"):
        return a * 2.0


count(x)
known = functions_of_context()
watching, _, _ = watch(lambda: [count(x) for _ in range(3)])
FOUND["called before"] = {
    "runs": int(runs),
    "functions added": sorted(set(functions_of_context()) - set(known)),
    "line": watching.line,
    "agrees": watching.result.agrees,
    "agreement": str(watching.result.program("count").agreement),
    "functions added for the result": sorted(set(functions_of_context()) - set(known)),
    "runs after the result": int(runs),
}


# What TensorFlow refuses, and what fails as it runs: the exceptions are those of a program that nobody watches.
@tf.function
def wants_gpu(a):
    with tf.device("GPU:7"):
        return a + 1.0


@tf.function
def asserts(a):
    tf.debugging.assert_less(a, 0.0)
    return a


def outcome(act):
    try:
        act()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


tf.config.set_soft_device_placement(False)
refused, _, error = watch(lambda: wants_gpu(x))
FOUND["refused"] = {
    "watched": [type(error).__name__, str(error)],
    "plain": outcome(lambda: wants_gpu(x)),
    "agrees": refused.result.agrees,
    "code": refused.result.program("wants_gpu").placement.refusal.code,
    "own line": any("wants_gpu(x)" in (frame.line or "") for frame in traceback.extract_tb(error.__traceback__)),
}


def eager_on_gpu():
    with tf.device("GPU:7"):
        return tf.nn.relu(x)


_, _, error = watch(eager_on_gpu)
FOUND["eager refused"] = {"watched": [type(error).__name__, str(error)], "plain": outcome(eager_on_gpu)}
tf.config.set_soft_device_placement(True)
failed, _, error = watch(lambda: asserts(x))
FOUND["failed"] = {
    "watched": [type(error).__name__, str(error)],
    "plain": outcome(lambda: asserts(x)),
    "agrees": failed.result.agrees,
}


# XLA, other devices of arguments, threads and nested blocks.
@tf.function(jit_compile=True)
def compiled(a):
    return tf.sin(a) + tf.cos(a)


@tf.function
def around(a):
    return compiled(a) * 2.0


both, _, _ = watch(lambda: (compiled(x), around(x)))
FOUND["xla"] = {
    "agrees": both.result.agrees,
    "line": both.line,
    "ops": [placed.ops for placed in both.result],
}


@tf.function
def double(a):
    return a * 2.0


with tf.device("CPU:1"):
    elsewhere = tf.identity(x)
places, _, _ = watch(lambda: [double(each) for each in (x, elsewhere, x, elsewhere)])
FOUND["argument devices"] = [
    [placed.placement.program.arg_devices[0][-5:], str(placed.agreement)] for placed in places.result
]


@tf.function
def triple(a):
    return a * 3.0


with simplace.watch(quiet=True) as outer:
    with simplace.watch(quiet=True) as within:
        threads = [threading.Thread(target=each, args=(x,)) for each in (double, triple)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    triple(tf.ones([2, 2]))
FOUND["nested"] = {
    "outer": sorted(placed.name for placed in outer.result),
    "inner": sorted(placed.name for placed in within.result),
    "agrees": [outer.result.agrees, within.result.agrees],
    "entry points": [getattr(pywrap_tfe, name) for name in NAMES] == BEFORE,
}


# Graphs that the program itself has TensorFlow record stay its own.
@tf.function
def recorded(a):
    return a - 1.0


tf.summary.trace_on(graph=True)
tracing, _, _ = watch(lambda: recorded(x))
FOUND["recorded by the program"] = {
    "line": tracing.line,
    "graphs": len(context.context().export_run_metadata().function_graphs),
}
tf.summary.trace_off()
FOUND["recorded by the program"]["agrees later"] = tracing.result.agrees


# Many eager ops: after a while only some are looked at, and a new line is found nevertheless.
def loop():
    a = x
    for _ in range(2000):
        a = tf.nn.relu(a)
    for _ in range(200):
        a = tf.sin(a)
    return a


many, _, _ = watch(loop)
FOUND["many eager ops"] = {
    "ops": [[each.op.op, each.times] for each in many.result.eager.ops],
    "line": many.line,
    "agrees": many.result.agrees,
}


# Very many: TensorFlow's fast path is its own most of the time, and the count of ops is still right.
def loop_for_long():
    own = 0
    for _ in range(30_000):
        tf.raw_ops.Relu(features=x)
        own += pywrap_tfe.TFE_Py_FastPathExecute is BEFORE[2]
    return own


very_many, own, _ = watch(loop_for_long)
FOUND["very many eager ops"] = {
    "without simplace": own,
    "ops": [[each.op.op, each.times] for each in very_many.result.eager.ops],
    "agrees": very_many.result.agrees,
}


def run_session():
    v1 = tf.compat.v1
    config = v1.ConfigProto(device_count={"CPU": 3})
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        fed = v1.placeholder(tf.float32, [None, 4])
        with tf.device("CPU:1"):
            product = tf.matmul(fed, fed, transpose_b=True)
        with tf.device("CPU:2"):
            result = tf.reduce_sum(product) + 1.0
        values = [float(session.run(result, {fed: [[1.0, 2.0, 3.0, 4.0]]})) for _ in range(3)]
        try:
            session.run(product)
        except tf.errors.InvalidArgumentError:
            values.append("caught")
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        session.run(result, {fed: [[0.0] * 4]}, options, metadata)
        session.run(product, {fed: [[0.0] * 4]}, options, metadata)
        return [*values, bool(metadata.step_stats.dev_stats), len(metadata.partition_graphs)]


session_watch, values, error = watch(run_session)
FOUND["session"] = {
    "line": session_watch.line, "error": repr(error), "values": values, "summary": str(session_watch.result),
    "product": str(session_watch.result.explain("MatMul")).splitlines()[:2], "agrees": session_watch.result.agrees,
}  # fmt: skip

# An error of simplace's own.
from simplace.oracle.live import watched_calls  # noqa: E402

original, watched_calls.open_window = watched_calls.open_window, lambda definition: 1 / 0
broken, result, error = watch(lambda: [float(tf.reduce_sum(double(tf.ones([i])))) for i in (1, 2, 3)])
watched_calls.open_window = original
try:
    FOUND["unexpected"] = str(broken.result)
except simplace.errors.SimplaceError as raised:
    said = str(raised)
FOUND["own error"] = {"result": result, "error": repr(error), "line": broken.line, "said": said}
again, _, _ = watch(lambda: double(tf.ones([4])))
FOUND["own error"]["later"] = again.result.agrees

try:
    FOUND["unexpected"] = str(simplace.watch().result)
except simplace.errors.ProgramError as raised:
    FOUND["too early"] = str(raised)
with simplace.watch(quiet=True) as idle:
    pass
FOUND["idle"] = idle.line
try:
    FOUND["unexpected"] = str(idle.result)
except simplace.errors.SimplaceError as raised:
    FOUND["idle result"] = str(raised)

print(json.dumps(FOUND))
