"""Compare the nodes of simulated steps with those that TensorFlow's executor really runs, on this computer's CPU.

Run: python -m benchmarks.nodes_that_ran [PROGRAM ...]. Without names, all samples run: as they are, and without
Grappler and oneDNN. TensorFlow's profiler tells the name and the type of each op that a kernel ran for; where that was
to fold it into a constant, it does not count. The simulation has the nodes of the placed graph with --as-placed, and
otherwise those that are left when each subgraph has been optimized. Only what computes something is compared, no
constants, arguments, results, identities, control flow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

import simplace
from simplace.analysis.schedule import Schedule
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepKeywords, StepOptions
from simplace.graph.op_kinds import CONTROL_FLOW, IDENTITIES, LOOP_COND, is_arg, is_constant, is_retval

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
_PLUMBING = CONTROL_FLOW | IDENTITIES | {LOOP_COND, "IdentityN", "NoOp", "Placeholder", "PlaceholderWithDefault"}
_PATIENCE_S = 120
_TRACED = re.compile(r"(?P<name>[\w./\-]+):(?P<op>_?[A-Z]\w*)")
_CHILD = """
import glob, json, os, runpy, sys
import tensorflow as tf
script, folder, keeps = sys.argv[1], sys.argv[2], sys.argv[3] == "keep"
if not keeps:
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
sys.argv, out = [script], sys.stdout
sys.path.insert(0, os.path.dirname(script))
sys.stdout = sys.stderr
class Level:  # TensorFlow 2.20 and 2.21 ignore options that are an int themselves
    def __index__(self): return 3
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=Level(), python_tracer_level=0)
tf.profiler.experimental.start(folder, options)
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit:
    pass
finally:
    tf.profiler.experimental.stop()
from tensorflow.tsl.profiler.protobuf import xplane_pb2
space = xplane_pb2.XSpace()
(file,) = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
space.ParseFromString(open(file, "rb").read())
names = set()
for plane in space.planes:
    ids = [number for number, stat in plane.stat_metadata.items() if stat.name == "id"]
    for line in plane.lines:
        spans = [(plane.event_metadata[one.metadata_id].name, one) for one in line.events]
        # The runs of nodes that are folded into constants have a step's number of their own, -1.
        folds = [one for name, one in spans if name == "ExecutorState::Process"
                 and any(stat.metadata_id in ids and stat.int64_value == -1 for stat in one.stats)]
        names |= {name for name, one in spans
                  if not any(0 <= one.offset_ps - fold.offset_ps < fold.duration_ps for fold in folds)}
print(json.dumps(sorted(names)), file=out)
"""


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=Path, metavar="PROGRAM", help="scripts (default: all samples)")
    parser.add_argument("--names", action="store_true", help="print the nodes that differ, too")
    options = parser.parse_args()
    print(
        "| program | with `--as-placed` | simulated | ran without Grappler | same "
        "| with `--grappler` | ran with Grappler | same |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for program in options.programs or sorted(SAMPLES.glob("*.py")):
        for line in compare_program(program, options.names):
            print(line, flush=True)


def compare_program(program: Path, tells_names: bool) -> Iterator[str]:
    """Yield the row of a program and, if asked for, the nodes that differ; nothing for one without functions."""
    with redirect_stdout(sys.stderr):
        try:
            result = simplace.place(str(program), "cpu:1")
        except SimplaceError as error:
            print(f"{program.stem}: {error}", file=sys.stderr)
            return
    plain, optimized = (list_simulated(result, optimizes=optimizes) for optimizes in (False, True))
    rewritten = list_simulated(result, grappler=True)
    if not plain:
        return
    try:
        off, on = (list_ran(program, keeps) for keeps in ("drop", "keep"))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        print(f"{program.stem} does not run through on a CPU", file=sys.stderr)
        return
    cells = [
        program.stem, len(plain), len(optimized), len(off), _share(off, optimized),
        len(rewritten), len(on), _share(on, rewritten),
    ]  # fmt: skip
    yield f"| {' | '.join(map(str, cells))} |"
    for how, simulated, ran in (("without", optimized, off), ("with", rewritten, on)) if tells_names else ():
        yield f"  {how} Grappler, only simulated: {_list_missing(simulated, ran)}"
        yield f"  {how} Grappler, only ran: {_list_missing(ran, simulated)}"


def list_simulated(result: simplace.api.Placements, **options: Unpack[StepKeywords]) -> dict[str, str]:
    """Return the op types, by name, of the nodes of all functions that would run."""
    found = {}
    for placed in result:
        if placed.placement.program.role == "eager" or placed.placement.refusal is not None:
            continue
        nodes = Schedule.of(placed.placement, StepOptions(**options)).estimated.graph.nodes
        found.update({node.name: node.op for node in nodes if node.role == "op" and computes(node.op)})
    return found


def list_ran(program: Path, keeps: str) -> dict[str, str]:
    """Return the op types, by name, of the nodes that TensorFlow's profiler saw run.

    Grappler and oneDNN are kept ("keep") or dropped ("drop").
    """
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _CHILD, str(program.resolve()), folder, keeps]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        if keeps == "drop":
            environment["TF_ENABLE_ONEDNN_OPTS"] = "0"
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, check=True, timeout=_PATIENCE_S
        )
    found = {}
    for text in json.loads(done.stdout.splitlines()[-1]):
        match = _TRACED.fullmatch(text)
        if match and computes(match["op"]):
            found[match["name"]] = match["op"]
    return found


def computes(op: str) -> bool:
    """Return whether an op computes something."""
    return not (op in _PLUMBING or is_arg(op) or is_retval(op) or is_constant(op))


def _share(ran: dict[str, str], simulated: dict[str, str]) -> str:
    """Return how many names are in both, of all that are in one."""
    return f"{len(ran.keys() & simulated.keys())} of {len(ran.keys() | simulated.keys())}"


def _list_missing(these: dict[str, str], those: dict[str, str]) -> str:
    return ", ".join(f"{name} ({these[name]})" for name in sorted(these.keys() - those.keys())) or "-"


if __name__ == "__main__":
    main()
