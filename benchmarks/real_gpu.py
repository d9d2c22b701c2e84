"""Hold placements, times and memory that are predicted against TensorFlow on a real GPU.

On a computer with a GPU, `python -m benchmarks.real_gpu place PROGRAM ...` runs programs under `simplace.watch` and
says how many nodes TensorFlow placed as simplace does; `python -m benchmarks.real_gpu measure FILE [NAME.BATCH ...]`
runs steps of `gpu_models.py` and `memory_models*.py`, each in a process of its own, and writes their times and peaks of
memory as CSV. On any computer `python -m benchmarks.real_gpu compare FILE --gpu h200` predicts what FILE measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.memory import MODELS
from viz import Column, Table, to_text

ROOT = Path(__file__).resolve().parents[1]
FILES = (Path(__file__).with_name("gpu_models.py"), *MODELS)
MEASURED = Path(__file__).with_name("measured") / "h200_steps.csv"
_GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
_BUDGET_S = 2.0  # of a program's timed steps
_PLACES = """
import runpy, sys
import simplace
with simplace.watch(quiet=True) as watched:
    runpy.run_path(sys.argv[1], run_name="__main__")
print(str(watched.result).splitlines()[-1], file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Record of a step on a GPU: seconds of a step, of its kernels, their number (0: not traced), and bytes at most."""

    program: str
    batch: int
    step_s: float
    busy_s: float
    kernels: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Record of a measured step and of its prediction."""

    measured: Measured
    step_s: float
    kernels: int
    needed: int

    @property
    def ratio(self) -> float:
        """Return the predicted over the measured time of a step."""
        return self.step_s / self.measured.step_s

    @property
    def memory_ratio(self) -> float:
        """Return the predicted over the measured peak of memory."""
        return self.needed / self.measured.peak_bytes


def main() -> None:
    """Place, measure or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    place = commands.add_parser("place", help="run programs on this computer's devices, and compare placements")
    place.add_argument("programs", nargs="+", type=Path)
    measure = commands.add_parser("measure", help="time steps on this computer's first GPU")
    measure.add_argument("file", type=Path, help="the CSV to write")
    measure.add_argument("steps", nargs="*", metavar="NAME.BATCH", help="default: those of the file in the repository")
    compare = commands.add_parser("compare", help="predict what was measured")
    compare.add_argument("file", nargs="?", type=Path, default=MEASURED)
    compare.add_argument("--gpu", default="h200", help="the GPU that was measured (default: %(default)s)")
    compare.add_argument("--cores", type=int, default=16, help="cores of the computer (default: %(default)s)")
    compare.add_argument("--grappler", action="store_true", help="with the graphs that Grappler makes")
    compare.add_argument("--only", nargs="*", default=[], metavar="NAME[.BATCH]", help="only these programs")
    options = parser.parse_args()
    if options.command == "place":
        place_programs(options.programs)
    elif options.command == "measure":
        wanted = options.steps or [f"{each.program}.{each.batch}" for each in read_measured(MEASURED)]
        write_measured(options.file, map(measure_apart, wanted))
    else:
        only = set(options.only)
        measured = read_measured(options.file)
        rows = [each for each in measured if not only or {each.program, f"{each.program}.{each.batch}"} & only]
        report([compare_step(each, options.gpu, options.cores, options.grappler) for each in rows])


def place_programs(programs: Sequence[Path]) -> None:
    """Run each program in a process of its own, and print how its placement compares."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    for program in programs:
        command = [sys.executable, "-c", _PLACES, program.name]
        folder = program.resolve().parent
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        print(f"{program}: {(done.stderr.strip().splitlines() or ['no verdict'])[-1]}", flush=True)


def find_file(program: str) -> Path:
    """Return the file of a program."""
    return next(
        path for path in FILES if f"def {program.partition('_fp16')[0].partition('_xla')[0]}(" in path.read_text()
    )


def read_measured(path: Path) -> list[Measured]:
    """Read a file that `write_measured` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Measured(
                row["program"], int(row["batch"]), float(row["step_s"]), float(row["busy_s"] or 0),
                int(row["kernels"] or 0), int(row["peak_bytes"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def write_measured(path: Path, rows: Iterator[Measured]) -> None:
    """Write rows as they come."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Measured)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            print(f"{row.program}.{row.batch}: {row.step_s * 1e3:.3f} ms, {row.peak_bytes / 2**20:.1f} MiB", flush=True)
            writer.writerow(asdict(row))
            file.flush()


def measure_apart(wanted: str) -> Measured:
    """Measure a step in a new process, whose allocator holds nothing else."""
    code = "import sys; from benchmarks.real_gpu import measure_here; measure_here(*sys.argv[1:])"
    environment = {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", code, *wanted.rsplit(".", 1)]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def measure_here(program: str, batch: str) -> None:
    """Print a measured step as JSON: the median of steps in a row, the peak of the second and third step."""
    import runpy

    import tensorflow as tf

    def finish(results: Any) -> None:
        for tensor in tf.nest.flatten(results)[:1]:
            tensor.numpy()

    step, arguments = runpy.run_path(str(find_file(program)))["STEPS"][program](int(batch))
    finish(step(*arguments))
    tf.config.experimental.reset_memory_stats("GPU:0")
    for _ in range(2):
        finish(step(*arguments))
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    began = time.perf_counter()
    finish(step(*arguments))
    in_a_row = max(1, min(20, int(0.1 / (time.perf_counter() - began))))
    times: list[float] = []
    while sum(times) * in_a_row < _BUDGET_S:
        began = time.perf_counter()
        for _ in range(in_a_row):
            results = step(*arguments)
        finish(results)
        times.append((time.perf_counter() - began) / in_a_row)
    busy, kernels = _trace_kernels(tf, lambda: finish(step(*arguments)))
    print(json.dumps(asdict(Measured(program, int(batch), statistics.median(times), busy, kernels, peak))))


def _trace_kernels(tf: Any, run: Any) -> tuple[float, int]:
    """Return the seconds and the number of the kernels of a step."""
    import tempfile

    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        run()
        tf.profiler.experimental.stop()
        space = xplane_pb2.XSpace()
        space.ParseFromString(next(Path(folder).rglob("*.xplane.pb")).read_bytes())
    lines = (line for plane in space.planes if plane.name.startswith("/device:GPU:0") for line in plane.lines)
    events = [event.duration_ps for line in lines if "Compute" in line.name for event in line.events]
    return sum(events) / 1e12, len(events)


def compare_step(measured: Measured, gpu: str, cores: int, grappler: bool) -> Compared:
    """Place a step for one GPU, and simulate it."""
    from simplace.api import Settings, place
    from simplace.machine.machine import Machine

    arguments = measured.program, str(measured.batch)
    chosen = Settings(machine=Machine(gpus=1), arguments=arguments, stdout=2, timeout=1800, calls=1, allocations=True)
    result = place(f"{find_file(measured.program)}:step", chosen)
    simulated = result.schedule(gpu=gpu, cores=cores, grappler=grappler)
    memory = result.memory(gpu=gpu, cores=cores, grappler=grappler)
    spans = [span for span in simulated.trace.spans if span.kind == "kernel"]
    kernels = sum(simulated.estimated.kernels[span.node].launches for span in spans)
    needed = next(memory.needed(use) for use in memory.uses if use.device == _GPU)
    found = Compared(measured, simulated.makespan_s, kernels, needed)
    print(f"{measured.program}.{measured.batch}: {found.ratio:.2f}, memory {found.memory_ratio:.2f}", file=sys.stderr)
    return found


def report(rows: Sequence[Compared]) -> None:
    """Print a table, and in two lines how far off the predictions are."""
    numbers = "batch", "kernels", "predicted", "step ms", "predicted", "ratio", "memory MiB", "predicted", "ratio"
    columns = (Column("program"), *(Column(name, "right") for name in numbers))
    cells = [
        (
            row.measured.program, f"{row.measured.batch}", f"{row.measured.kernels or '-'}", f"{row.kernels}",
            f"{row.measured.step_s * 1e3:.2f}", f"{row.step_s * 1e3:.2f}", f"{row.ratio:.2f}",
            f"{row.measured.peak_bytes / 2**20:.1f}", f"{row.needed / 2**20:.1f}", f"{row.memory_ratio:.2f}",
        )
        for row in rows
    ]  # fmt: skip
    print(to_text(Table(columns, tuple(cells))))
    for what, ratios in (("step", [row.ratio for row in rows]), ("memory", [row.memory_ratio for row in rows])):
        errors = [abs(ratio - 1) for ratio in ratios]
        print(f"{what}: {statistics.fmean(errors):.1%} off in the mean, {statistics.median(errors):.1%} in the median")


if __name__ == "__main__":
    main()
