"""Compare the predicted memory of a step with TensorFlow's own, on the CPU, for each program at three batch sizes.

Run: python -m benchmarks.memory [PROGRAM ...]. TensorFlow's CPU device hands out memory with the allocator of its
GPUs, if it is asked to, and its log names every tensor, from which the most bytes of tensors at once follow. Then all
but a part of one region is filled, 10 % more than that and 10 % less, before the program is built: whether building and
two steps run in it is compared with the verdict on the simulated step. All on one thread, without Grappler and oneDNN.
Some twenty minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import memory_runs
from simplace.analysis.memory import fits
from simplace.analysis.step_memory import StepMemory
from simplace.api import Settings, place
from simplace.machine.machine import Machine
from simplace.oracle.launch import starting_by_forks
from viz import Column, Table, to_text

KNOWN, UNSEEN = (Path(__file__).with_name(f"{name}.py") for name in memory_runs.MODULES)
BATCHES = (64, 256, 1000)
MARGIN = 0.1  # of the memory measured: how far the limits are from it
_RECORD = re.compile(r"Log(TensorAllocation|TensorOutput|TensorDeallocation) .*?allocation_id: (\d+)")
_BYTES = re.compile(r"requested_bytes: (\d+)")


@dataclass(frozen=True)
class Case:
    """Record of a program at a batch: bytes of tensors predicted and measured, and what 10 % more and 10 % less do.

    `fits` are the verdicts on the simulated step, `runs` what TensorFlow did.
    """

    program: str
    batch: int
    tensors: int
    measured: int
    fits: tuple[bool, ...]
    runs: tuple[bool, ...]

    @property
    def error(self) -> float:
        """Return how far off the most bytes of tensors at once are."""
        return self.tensors / self.measured - 1

    @property
    def right_verdicts(self) -> int:
        """Return how many of the two verdicts are right."""
        return sum(fit == ran for fit, ran in zip(self.fits, self.runs, strict=True))


class Runs:
    """A process that runs steps in TensorFlow."""

    def __init__(self) -> None:
        environment = {
            **os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(memory_runs.REGION_MB), "TF_CPP_VMODULE": "log_memory=2",
            "TF_CPP_MIN_LOG_LEVEL": "0",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.memory_runs"], env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, program: str, batch: int, limit: int = 0) -> str:
        """Run a program; return what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(program, batch, limit, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def measure_tensors(self, program: str, batch: int) -> int:
        """Return the most bytes of tensors that TensorFlow has at once in a second step."""
        log = Path(self.ask(program, batch))
        before, during = log.read_text(encoding="utf-8").split("=== end")[0].split("=== step")
        log.unlink()
        alive: dict[str, int] = {}
        follow_log(before.splitlines(), alive)
        return follow_log(during.splitlines(), alive)


def main() -> None:
    """Print a row for each program and batch, then sums for known programs and for unseen ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names in memory_models*.py (default: all)")
    wanted = parser.parse_args().programs or [*list_programs(KNOWN), *list_programs(UNSEEN)]
    runs = Runs()
    with starting_by_forks():
        cases = [judge(runs, name, batch) for name in wanted for batch in BATCHES]
    print(to_text(_list_cases(cases)))
    known = set(list_programs(KNOWN))
    for title, names in (("known", known), ("unseen", set(wanted) - known), ("all", set(wanted))):
        if found := [case for case in cases if case.program in names]:
            print(f"{title}: {sum_up(found)}")


def list_programs(models: Path) -> list[str]:
    """List the programs of a file."""
    return re.findall(r"^def (\w+)\(batch", models.read_text(encoding="utf-8"), re.MULTILINE)


def judge(runs: Runs, name: str, batch: int) -> Case:
    """Predict and measure one program at one batch."""
    memory = predict_memory(name, batch)
    ((use, peak),) = ((use, memory.needed(use)) for use in memory.uses)
    measured = runs.measure_tensors(name, batch)
    limits = [int(measured * factor) for factor in (1 + MARGIN, 1 - MARGIN)]
    fit = [fits(memory.schedule.trace, use.device, limit, lambda _, size: size) for limit in limits]
    ran = [runs.ask(name, batch, limit) == "runs" for limit in limits]
    case = Case(name, batch, peak, measured, tuple(fit), tuple(ran))
    print(" ".join(_list_cells(case)), file=sys.stderr, flush=True)
    return case


def predict_memory(name: str, batch: int) -> StepMemory:
    """Simulate the memory of a step on the CPU, as early steps run: all their ops still count as expensive."""
    models = KNOWN if name in list_programs(KNOWN) else UNSEEN
    settings = Settings(machine=Machine(gpus=0), arguments=(name, str(batch)), stdout=2)
    return place(f"{models}:step", settings).memory(inter_op=1, intra_op=1, warm=False)


def follow_log(lines: list[str], alive: dict[str, int]) -> int:
    """Follow the log of tensors; return the most bytes alive at once."""
    now = peak = sum(alive.values())
    for line in lines:
        found = _RECORD.search(line)
        if found is None:
            continue
        if found[1] == "TensorDeallocation":
            now -= alive.pop(found[2], 0)
        elif found[2] not in alive:
            size = _BYTES.search(line)
            now += alive.setdefault(found[2], int(size[1]) if size else 0)
        peak = max(peak, now)
    return peak


def sum_up(cases: Sequence[Case]) -> str:
    """Return the errors and verdicts of some cases in a line."""
    errors = [abs(case.error) for case in cases]
    right, count = sum(case.right_verdicts for case in cases), 2 * len(cases)
    return (
        f"tensors {statistics.median(errors):.1%} off in the median, {sum(error <= 0.05 for error in errors)} of "
        f"{len(cases)} within 5 %; verdicts {right} of {count} right ({right / count:.0%})"
    )


def _list_cases(cases: Sequence[Case]) -> Table:
    heads = ("program", "batch", "tensors MiB", "predicted", "off", "10 % more", "10 % less")
    columns = (Column(heads[0]), *(Column(head, "right") for head in heads[1:]))
    return Table(columns, tuple(tuple(_list_cells(case)) for case in cases))


def _list_cells(case: Case) -> Iterator[str]:
    yield from (case.program, f"{case.batch:,}", *map(_format_mib, (case.measured, case.tensors)))
    yield f"{case.error:+.1%}"
    for fit, ran in zip(case.fits, case.runs, strict=True):
        yield ("runs" if ran else "fails") + ("" if fit == ran else ", foretold otherwise")


def _format_mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"


if __name__ == "__main__":
    main()
