"""Run cases under TensorFlow and write down, for each graph it placed, what went into its placer.

    python child.py CASES.py OUT.pickle [case ...]

Every function `case_*` of the cases file runs once, with three CPU devices. OUT gets, per graph, a dictionary with
the case, the GraphDef that simplace would be given, and TensorFlow's `placer_input` and `placer_output` as GraphDefs.
"""

import atexit
import os
import pickle
import re
import runpy
import shutil
import sys
import tempfile
import weakref
from pathlib import Path

DUMPS = Path(tempfile.mkdtemp(prefix="placer-"))
atexit.register(shutil.rmtree, DUMPS, ignore_errors=True)
os.environ["TF_CPP_VMODULE"] = "placer=3"
os.environ["TF_DUMP_GRAPH_PREFIX"] = str(DUMPS)
os.environ["TF_DUMP_GRAPH_FMT"] = "BIN"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402
from tensorflow.python.client import session  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402
from tensorflow.python.eager.polymorphic_function import atomic_function  # noqa: E402

CPU0 = "/job:localhost/replica:0/task:0/device:CPU:0"
records = []
seen = set()
sessions = weakref.WeakKeyDictionary()  # what each has placed; the number of one that is gone may come again


def references(message):
    """Yield the names of all functions that a FunctionDef may call."""
    for node in message.node_def:
        yield node.op
        for value in node.attr.values():
            yield from names_in(value)


def names_in(value):
    if value.HasField("func"):
        yield value.func.name
    for func in value.list.func:
        yield func.name


def library(name):
    """Build a GraphDef whose library holds the function and all that it reaches."""
    graph = graph_pb2.GraphDef()
    found, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one in found or not context.context().has_function(one):
            continue
        found.add(one)
        definition = context.context().get_function_def(one)
        graph.library.function.add().CopyFrom(definition)
        todo += references(definition)
    return graph


def device_of(tensor):
    if tensor.dtype in (tf.int32, tf.string):
        return CPU0
    return tensor.device


def number_of(path):
    """Return the number that TensorFlow put behind the name of a file that was there already, 0 for the first one."""
    found = re.search(r"_(\d+)$", path.stem)
    return int(found[1]) if found else 0


def new_dumps():
    """Return what the placer wrote since the last call, oldest first, as (file stem, GraphDef)."""
    wanted = ("placer_input", "placer_output")
    fresh = [path for path in DUMPS.iterdir() if path.name not in seen and any(word in path.name for word in wanted)]
    fresh.sort(key=lambda path: (path.stat().st_mtime_ns, number_of(path)))  # several may be written at one time
    found = []
    for path in fresh:
        seen.add(path.name)
        found.append((path.name, graph_pb2.GraphDef.FromString(path.read_bytes())))
    return found


depth = 0
case = ""
call_flat = atomic_function.AtomicFunction.call_flat
run = session.BaseSession.run


def recording_call(self, *args):
    global depth
    outermost = depth == 0 and tf.executing_eagerly()
    depth += 1
    if outermost:
        new_dumps()
        name = self.name.decode() if isinstance(self.name, bytes) else self.name
        record = {
            "case": case,
            "function": name,
            "graph": library(name).SerializeToString(),
            "arg_devices": [device_of(tensor) for tensor in args],
            "target": context.context().device_name or CPU0,
        }
    try:
        return call_flat(self, *args)
    finally:
        depth -= 1
        if outermost:
            keep(record, lambda stem: stem.startswith(name))


def recording_run(self, *args, **kwargs):
    new_dumps()
    # A run without new nodes places nothing; what is dumped then is Grappler's own, silent placer.
    placed_before, kept = sessions.get(self, (0, {}))
    size = len(self.graph.get_operations())
    record = {
        "case": case,
        "function": None,
        "graph": self.graph.as_graph_def().SerializeToString(),
        "arg_devices": [],
        "target": None,
        "kept_devices": kept,
    }
    try:
        return run(self, *args, **kwargs)
    finally:
        if size > placed_before:
            placed = keep(record, lambda stem: stem.startswith("placer_"))
            sessions[self] = (size, placed)


def keep(record, is_mine):
    """Append a record of the first graph that was placed; return the devices that its nodes got."""
    mine = [(stem, graph) for stem, graph in new_dumps() if is_mine(stem)]
    inputs = [graph for stem, graph in mine if "placer_input" in stem]
    outputs = [graph for stem, graph in mine if "placer_output" in stem]
    if inputs:
        output = outputs[0].SerializeToString() if outputs else None
        records.append({**record, "placer_input": inputs[0].SerializeToString(), "placer_output": output})
    return {node.name: node.device for node in outputs[0].node} if outputs else {}


def main():
    global case
    cases_file, out, *wanted = sys.argv[1:]
    cpus = [tf.config.LogicalDeviceConfiguration()] * 3
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], cpus)
    atomic_function.AtomicFunction.call_flat = recording_call
    session.BaseSession.run = recording_run
    failures = {}
    for name, function in runpy.run_path(cases_file).items():
        if name.startswith("case_") and (not wanted or name in wanted):
            case = name
            try:
                function()
            except Exception as error:
                failures[name] = f"{type(error).__name__}: {error}"
    Path(out).write_bytes(pickle.dumps({"records": records, "failures": failures}))


main()
