"""Time simplace and TensorFlow at placing the same graphs, in turns, and print one table.

Run `python -m benchmarks.placement` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from operator import itemgetter
from pathlib import Path

from benchmarks import random_graphs
from benchmarks.mixed_graph import mixed_graph
from simplace.devices.device_set import DeviceSet, local_devices
from simplace.graph import graph_def
from simplace.kernels.registry import KernelTable
from simplace.oracle import plugin
from simplace.pipeline import place_program
from simplace.program.program import Program
from viz import Column, Table, to_text

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MIXED = "mixed"
KINDS = (MIXED, *random_graphs.KINDS)
GPUS = {"cpu": 0, "2 gpus": 2, "4 gpus": 4}
REPEATS = 5
_LONGEST = 60.0  # seconds after which no further turn begins
_GPU_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Timing:
    """Record of the best times for one graph on one device set, in seconds of the processor.

    TensorFlow's are (import, both) if it got done.
    """

    devices: str
    kind: str
    nodes: int
    simplace: float
    tensorflow: tuple[float, float] | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the graphs, measure each device set in a process of its own, print the table; what is done on Ctrl-C."""
    options = _parser().parse_args(arguments)
    if options.measure:
        _measure(options.measure, Path(options.graph), options.repeats)
        return
    rows: list[tuple[str, ...]] = []
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        for kind, size in product(options.kinds, options.sizes):
            path = Path(folder, f"{kind}.pb")
            path.write_bytes(mixed_graph(size) if kind == MIXED else random_graphs.random_graph(kind, size))
            memory = json.loads(_child("memory", path, options))
            for devices in options.devices or (("cpu", "2 gpus") if kind == MIXED else ("4 gpus",)):
                timing = Timing(**json.loads(_child(devices, path, options)))
                rows.append(_row(timing, memory, options.limit))
                print(f"measured {timing.nodes:,} nodes, {kind}, on {devices}", file=sys.stderr)
    print(to_text(Table(_COLUMNS, tuple(rows))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="nodes of each graph")
    parser.add_argument("--kinds", nargs="+", default=(MIXED,), choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--devices", nargs="+", choices=GPUS, help="device sets, by default those the kind is made for")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="turns, of which the best counts")
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="seconds for one graph on one device set")
    parser.add_argument("--measure", choices=(*GPUS, "memory"), help=argparse.SUPPRESS)
    parser.add_argument("--graph", help=argparse.SUPPRESS)
    return parser


_COLUMNS = (
    Column("graph"),
    Column("nodes", "right"),
    Column("devices"),
    Column("simplace", "right"),
    Column("µs/node", "right"),
    Column("TensorFlow", "right"),
    Column("µs/node", "right"),
    Column("of it import", "right"),
    Column("ratio", "right"),
    Column("bytes/node", "right"),
    Column("at the peak", "right"),
)


def _row(timing: Timing, memory: dict[str, int], limit: float) -> tuple[str, ...]:
    def per_node(seconds: float) -> str:
        return f"{seconds / timing.nodes * 1e6:.1f}"

    theirs = (f"not in {limit:.0f} s", "-", "-", "-")
    if timing.tensorflow is not None:
        imported, both = timing.tensorflow
        theirs = (f"{both:.3f} s", per_node(both), per_node(imported), f"{timing.simplace / both:.2f}")
    ours = (f"{timing.simplace:.3f} s", per_node(timing.simplace))
    sizes = (f"{memory['kept'] / timing.nodes:.0f}", f"{memory['peak'] / timing.nodes:.0f}")
    return (timing.kind, f"{timing.nodes:,}", timing.devices, *ours, *theirs, *sizes)


def _child(measure: str, graph: Path, options: argparse.Namespace) -> str:
    """Run this file anew and return its last line, whether it got done within the limit or not.

    TensorFlow's devices can be set up once a process, and memory wants a clean start.
    """
    command = [sys.executable, "-m", "benchmarks.placement", "--measure", measure, "--graph", str(graph)]
    command += ["--repeats", str(options.repeats)]
    with tempfile.TemporaryFile("w+") as written:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        try:
            subprocess.run(command, stdout=written, stderr=subprocess.DEVNULL, env=environment, timeout=options.limit)
        except subprocess.TimeoutExpired:
            print(f"{measure} on {graph.name} took more than {options.limit:.0f} s", file=sys.stderr)
        written.seek(0)
        lines = written.read().splitlines()
    if not lines:
        raise SystemExit(f"nothing was measured; to see why: {' '.join(command)}")
    return lines[-1]


def _measure(what: str, path: Path, repeats: int) -> None:
    data = path.read_bytes()
    if what == "memory":
        print(json.dumps(_memory(data)))
        return
    for timing in _timings(what, path.stem, data, repeats):
        print(json.dumps(asdict(timing)), flush=True)


def _memory(data: bytes) -> dict[str, int]:
    """Count Python's bytes for a placement with all it rests on; the parsed protobuf is not among them."""
    table, devices = KernelTable.shipped(), _devices(max(GPUS.values()))
    tracemalloc.start()
    placed = _replay(data, table, devices)
    kept, peak = tracemalloc.get_traced_memory()
    del placed
    return {"kept": kept, "peak": peak}


def _timings(name: str, kind: str, data: bytes, repeats: int) -> Iterator[Timing]:
    """Run the two in turns; yield the best times so far after each turn of either."""
    table, devices = KernelTable.shipped(), _devices(GPUS[name])
    in_tensorflow = _tensorflow(GPUS[name])
    nodes = len(graph_def.parse_graph_def(data).nodes)
    ours: list[float] = []
    theirs: list[tuple[float, float]] = []
    end = time.perf_counter() + _LONGEST
    while not ours or (len(ours) < repeats and time.perf_counter() < end):
        start = time.process_time()
        placed = _replay(data, table, devices)
        ours.append(time.process_time() - start)
        del placed  # outside of the time, as TensorFlow's session is
        yield Timing(name, kind, nodes, min(ours), min(theirs, key=itemgetter(1)) if theirs else None)
        theirs.append(in_tensorflow(data))
        yield Timing(name, kind, nodes, min(ours), min(theirs, key=itemgetter(1)))


def _replay(data: bytes, table: KernelTable, devices: DeviceSet) -> object:
    program = Program("benchmark", "graph", graph_def.parse_graph_def(data), soft_placement=True)
    placement = place_program(program, devices, table)
    assert placement.refusal is None, f"the benchmark's graph can be placed: {placement.refusal}"
    return placement


def _devices(gpus: int) -> DeviceSet:
    return local_devices([("CPU", 1), ("GPU", gpus)])


def _tensorflow(gpus: int) -> Callable[[bytes], tuple[float, float]]:
    """Load TensorFlow with so many emulated GPUs; return what imports a graph, then places it by a first run.

    The graph is imported by the C API, without the Python object for each op that `tf.import_graph_def` makes. The
    first run extends the session, places the whole graph, and runs a NoOp.
    """
    import tensorflow as tf
    from tensorflow.python.client import pywrap_tf_session as c_api
    from tensorflow.python.framework import load_library

    if gpus:
        os.environ["SIMPLACE_GPU_COUNT"], os.environ["SIMPLACE_GPU_MEMORY"] = str(gpus), str(_GPU_MEMORY)
        load_library.load_pluggable_device_library(str(plugin.build_plugin(tf.__version__)))

    def measured(data: bytes) -> tuple[float, float]:
        graph = tf.Graph()
        with graph.as_default():
            nothing = tf.no_op(name="benchmark_starts_here")
        config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            seen = len([device for device in session.list_devices() if device.device_type == "GPU"])
            assert seen == gpus, f"TensorFlow sees {seen} GPUs instead of {gpus}"
            start = time.process_time()
            buffer = c_api.TF_NewBufferFromString(data)
            with graph._c_graph.get() as inner:
                c_api.TF_GraphImportGraphDefWithResults(inner, buffer, c_api.TF_NewImportGraphDefOptions())
            c_api.TF_DeleteBuffer(buffer)
            imported = time.process_time()
            session.run(nothing)
            return imported - start, time.process_time() - start

    return measured


if __name__ == "__main__":
    main()
