"""Compare the memory that a step is said to need with the least that TensorFlow runs it in, on the CPU.

Run: python -m benchmarks.memory [PROGRAM ...]. TensorFlow's CPU device hands out memory with the allocator of its
GPUs, if it is asked to, up to a limit in MB. For each program at three batch sizes new processes build the program and
run two steps of it, until the smallest limit is found that most of them end in. The verdicts on limits 10 % above and
below that one are compared with what TensorFlow does there; below 1 MB there is no limit, and no verdict. All on one
thread, without Grappler and oneDNN. Half an hour.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, floor
from pathlib import Path

from benchmarks import memory_runs
from simplace.analysis.step_memory import StepMemory
from simplace.api import Placements, Settings, place
from simplace.machine.machine import Machine
from simplace.oracle.launch import starting_by_forks
from viz import Column, Table, to_text

KNOWN, UNSEEN, FRESH, LOOPS = (Path(__file__).with_name(f"{name}.py") for name in memory_runs.MODULES)
MODELS = KNOWN, UNSEEN, FRESH, LOOPS
BATCHES = (64, 256, 1000)
MARGIN = 0.1  # of the smallest limit: how far the limits are from it
_MB = 1 << 20
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True)
class Case:
    """Record of a program at a batch: bytes of its tensors at once, and what it is said to need (`needed`).

    `smallest` is the smallest limit that TensorFlow runs it in, in MB. `fits` are the verdicts on limits above and
    below that one, `runs` is what TensorFlow did there; below 1 MB there is none.
    """

    program: str
    batch: int
    tensors: int
    needed: int
    smallest: int
    fits: tuple[bool, ...]
    runs: tuple[bool, ...]

    @property
    def error(self) -> float:
        """Return how far off the smallest limit is, in whole MB as TensorFlow takes it."""
        return ceil(self.needed / _MB) / self.smallest - 1

    @property
    def right_verdicts(self) -> int:
        """Return how many of the two verdicts are right."""
        return sum(fit == ran for fit, ran in zip(self.fits, self.runs, strict=True))


class Runs:
    """A process that runs steps in TensorFlow."""

    def __init__(self) -> None:
        environment = {**os.environ, **_ENVIRONMENT, "TF_CPU_ALLOCATOR_USE_BFC": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.memory_runs"], env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def fits(self, program: str, batch: int, limit: int) -> bool:
        """Return whether most of three runs of a program within a limit in MB end well.

        TensorFlow walks sets of addresses, so the order of a step, and what fits, may change from run to run.
        """
        first, second = self._ends(program, batch, limit), self._ends(program, batch, limit)
        return first if first == second else self._ends(program, batch, limit)

    def _ends(self, program: str, batch: int, limit: int) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(program, batch, limit, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip() == "runs"


def main() -> None:
    """Print a row for each program and batch, then sums for the programs of each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names in memory_models*.py (default: all)")
    wanted = parser.parse_args().programs or [name for models in MODELS for name in list_programs(models)]
    os.environ.update(_ENVIRONMENT)
    runs = Runs()
    with starting_by_forks():
        cases = [judge(runs, name, batch) for name in wanted for batch in BATCHES]
    print(to_text(_list_cases(cases)))
    for models in MODELS:
        if found := [case for case in cases if case.program in list_programs(models)]:
            print(f"{models.stem}: {sum_up(found)}")
    print(f"all: {sum_up(cases)}")


def list_programs(models: Path) -> list[str]:
    """List the programs of a file."""
    return re.findall(r"^def (\w+)\(batch", models.read_text(encoding="utf-8"), re.MULTILINE)


def judge(runs: Runs, name: str, batch: int) -> Case:
    """Predict and measure one program at one batch."""
    result = observe_program(name, batch)
    memory = predict_memory(result)
    ((needed, tensors),) = ((memory.needed(use), memory.tensors(use)) for use in memory.uses)
    runs_in = cache(lambda limit: runs.fits(name, batch, limit))
    smallest = find_smallest(runs_in, ceil(needed / _MB))
    limits = [limit for limit in (ceil(smallest * (1 + MARGIN)), floor(smallest * (1 - MARGIN))) if limit]
    fit = tuple(predict_memory(result, limit).fits for limit in limits)
    case = Case(name, batch, tensors, needed, smallest, fit, tuple(map(runs_in, limits)))
    print(" ".join(_list_cells(case)), file=sys.stderr, flush=True)
    return case


def find_smallest(runs_in: Callable[[int], bool], start: int) -> int:
    """Return the smallest limit in MB that a program runs in, searched from one near it: below it, it fails."""
    limit = max(start, 1)
    while not runs_in(limit):
        limit += max(limit // 32, 1)
    while limit > 1 and runs_in(limit - 1):
        limit -= 1
    return limit


def observe_program(name: str, batch: int) -> Placements:
    """Run a program once under TensorFlow, which tells what it allocates before the first step."""
    models = next(models for models in MODELS if name in list_programs(models))
    settings = Settings(machine=Machine(gpus=0), arguments=(name, str(batch)), stdout=2, allocations=True)
    return place(f"{models}:step", settings)


def predict_memory(result: Placements, limit: int = 0) -> StepMemory:
    """Simulate the first two steps on one thread, within a limit in MB (0: none)."""
    return result.memory(inter_op=1, intra_op=1, limits={_CPU: limit * _MB})


def sum_up(cases: Sequence[Case]) -> str:
    """Return the errors and verdicts of some cases in a line."""
    errors = [abs(case.error) for case in cases]
    right, count = sum(case.right_verdicts for case in cases), sum(len(case.fits) for case in cases)
    return (
        f"smallest limits {statistics.median(errors):.1%} off in the median, {statistics.mean(errors):.1%} in the "
        f"mean, {sum(error <= 0.05 for error in errors)} of {len(cases)} within 5 %; verdicts {right} of {count} right "
        f"({right / count:.0%})"
    )


def _list_cases(cases: Sequence[Case]) -> Table:
    heads = ("program", "batch", "tensors MiB", "needs MiB", "smallest MB", "off", "10 % more", "10 % less")
    columns = (Column(heads[0]), *(Column(head, "right") for head in heads[1:]))
    return Table(columns, tuple(tuple(_list_cells(case)) for case in cases))


def _list_cells(case: Case) -> Iterator[str]:
    yield from (case.program, f"{case.batch:,}", *map(_format_mib, (case.tensors, case.needed)))
    yield from (f"{case.smallest:,}", f"{case.error:+.1%}")
    for fit, ran in zip(case.fits, case.runs, strict=True):
        yield ("runs" if ran else "fails") + ("" if fit == ran else ", predicted otherwise")
    yield from ["-"] * (2 - len(case.fits))


def _format_mib(size: int) -> str:
    return f"{size / _MB:,.1f}"


if __name__ == "__main__":
    main()
