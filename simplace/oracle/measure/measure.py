"""Measure a graph file on this computer's CPU: start the child, read what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from simplace.errors import ProgramError, TargetError


@dataclass(frozen=True, slots=True)
class NodeRun:
    """Say when a node ran, in nanoseconds: its kernel, and the whole with the executor's bookkeeping."""

    name: str
    kernel_start: int
    kernel_end: int
    start: int
    end: int


@dataclass(frozen=True)
class MeasuredStep:
    """Hold one traced step: its nodes by start."""

    runs: tuple[NodeRun, ...]

    @property
    def span(self) -> int:
        """Return the time from the first start to the last end, in nanoseconds."""
        return max(run.end for run in self.runs) - min(run.start for run in self.runs)

    @property
    def seconds(self) -> dict[str, float]:
        """Map each node to the time it held its thread, bookkeeping included; the mean over iterations of a loop."""
        times: dict[str, list[int]] = {}
        for run in self.runs:
            times.setdefault(run.name, []).append(run.end - run.start)
        return {name: fmean(found) / 1e9 for name, found in times.items()}

    @property
    def gap(self) -> float:
        """Return the median time between two nodes, in seconds; with one inter-op thread that is bookkeeping."""
        gaps = [after.start - before.end for before, after in pairwise(self.runs)]
        return max(0.0, median(gaps) / 1e9) if gaps else 0.0

    @property
    def order(self) -> list[str]:
        """List the nodes by start."""
        return [run.name for run in self.runs]


@dataclass(frozen=True)
class Measurement:
    """Hold the traced steps of one thread setting."""

    tensorflow: str
    inter_op: int
    intra_op: int
    steps: tuple[MeasuredStep, ...]

    @property
    def seconds(self) -> dict[str, float]:
        """Map each node to the median of its times over the steps."""
        names = sorted({run.name for step in self.steps for run in step.runs})
        return {name: median(s.seconds[name] for s in self.steps if name in s.seconds) for name in names}

    @property
    def gap(self) -> float:
        """Return the median time between two nodes, in seconds; 0 for several threads, where it says nothing."""
        return median(step.gap for step in self.steps) if self.inter_op == 1 else 0.0


def measure(
    graph: Path,
    *,
    inter_op: int = 1,
    intra_op: int = 1,
    cpus: int = 1,
    warm_up: int = 3,
    steps: int = 10,
    onednn: bool = False,
    time_limit: float = 300.0,
) -> Measurement:
    """Run a .pb or .pbtxt graph without placeholders and trace `steps` steps after `warm_up` untraced ones.

    `onednn` lets TensorFlow use oneDNN's kernels, as it does by default on x86: its layout pass then makes those nodes
    anew in another order (reverse post-order), which changes the order of execution too.

    Raises `TargetError` for other files and `ProgramError` where TensorFlow could not run it.
    """
    if graph.suffix not in (".pb", ".pbtxt", ".graphdef"):
        raise TargetError(f"{graph}: only graph files can be measured: .pb, .pbtxt or .graphdef")
    with tempfile.TemporaryDirectory(prefix="simplace-") as scratch:
        request, answer = Path(scratch, "request.json"), Path(scratch, "answer.json")
        wanted = {"graph": str(graph), "answer": str(answer), "inter_op": inter_op, "intra_op": intra_op, "cpus": cpus}
        wanted |= {"warm_up": warm_up, "steps": steps, "onednn": onednn}
        request.write_text(json.dumps(wanted), encoding="utf-8")
        _run_child(graph, request, time_limit)
        values = json.loads(answer.read_text(encoding="utf-8"))
    traced = tuple(MeasuredStep(tuple(NodeRun(*event) for event in step["events"])) for step in values["steps"])
    return Measurement(values["tensorflow"], inter_op, intra_op, traced)


def _run_child(graph: Path, request: Path, time_limit: float) -> None:
    command = [sys.executable, "-m", "simplace.oracle.measure.child", str(request)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{graph}: TensorFlow did not finish within {time_limit:g} s; measure fewer steps") from None
    if done.returncode:
        last = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise ProgramError(
            f"{graph}: TensorFlow could not run it: {last[-1] if last else 'it said nothing'}", done.stderr
        )
