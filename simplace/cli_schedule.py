"""The subcommands about time: `schedule`, `measure`, and `check --schedule`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplace.errors import DrawingError, SimplaceError
from simplace.progress import progress

if TYPE_CHECKING:
    from simplace.result import Placed, Result
    from simplace.scheduling import Schedule

_FIGURES = (".svg", ".png", ".pdf", ".dot")


def add(commands: Any, add_target: Any, settings: Any) -> None:
    """Add the subcommands; `add_target` adds a target's options, `settings` reads them."""
    _add_schedule(commands, add_target, settings)
    _add_measure(commands)
    _extend_check(commands.choices["check"], settings)


def _add_schedule(commands: Any, add_target: Any, settings: Any) -> None:
    parser = commands.add_parser("schedule", help="simulate when what runs: threads, streams, copies, memory")
    add_target(parser)
    parser.add_argument("--inter-op", metavar="N[,N...]", default="0", help="threads that run ops; several compare; "
                        "0: one a core, -1: the caller's thread (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--intra-op", metavar="N", type=_whole, default=0, help="threads that share one op (0: one a core)"
    )
    parser.add_argument("--cores", metavar="N", type=_whole, default=2, help="CPU cores (default: %(default)s)")
    parser.add_argument("--executor", choices=("tensorflow", "textbook"), default="tensorflow",
                        help="TensorFlow's own, or the tutorials' pool a device (default: %(default)s)")  # fmt: skip
    parser.add_argument("--costs", metavar="C", default="analytic", help="analytic, flat, or a file of recorded costs "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu", metavar="NAME", default="a100", help="what the GPUs are: t4, a100, a100-pcie, h100, "
                        "h200 (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu-memory-fraction", metavar="F", type=float, default=0.0,
                        help="per_process_gpu_memory_fraction (default: all but TensorFlow's reserve)")  # fmt: skip
    parser.add_argument("--gpu-threads", metavar="MODE", default="global", help="TF_GPU_THREAD_MODE: global, "
                        "gpu_private or gpu_shared (default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=_whole, default=1, help="steps to run (default: %(default)s)")
    parser.add_argument("--cold", action="store_true", help="the first steps: no op's cost is known yet")
    parser.add_argument("--batch", metavar="N", type=_whole, default=32, help="for unknown first dimensions "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--trips", metavar="LOOP=N", action="append", default=[], help="how often a loop's body runs")
    parser.add_argument("--branch", metavar="NODE=N", action="append", default=[], help="the output of a condition "
                        "that is taken; for an If, 1 is then")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FIGURE", help=f"draw a Gantt chart: {', '.join(_FIGURES)}")
    parser.add_argument("--trace", metavar="FILE", help="write a Chrome trace, for Perfetto")
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--program", metavar="NAME", help="this program only (default: the largest)")
    parser.set_defaults(command=lambda options: _schedule(options, settings))


def _add_measure(commands: Any) -> None:
    parser = commands.add_parser("measure", help="record how long a graph file's ops take on this computer's CPU")
    parser.add_argument("target", metavar="GRAPH", help="a .pb or .pbtxt graph without placeholders")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the cost file to write, for --costs")
    parser.add_argument("--intra-op", metavar="N", type=_whole, default=1, help="threads that share one op "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=_whole, default=10, help="steps to trace (default: %(default)s)")
    parser.set_defaults(command=_measure)


def _extend_check(parser: argparse.ArgumentParser, settings: Any) -> None:
    parser.add_argument("--schedule", action="store_true", help="compare simulated with real steps of a graph file, "
                        "on this computer's CPU")  # fmt: skip
    parser.add_argument("--inter-op", metavar="N[,N...]", default="1,2", help="with --schedule: the settings to run "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=_whole, default=12, help="with --schedule: steps to trace "
                        "(default: %(default)s)")  # fmt: skip
    usual = parser.get_default("command")
    parser.set_defaults(
        command=lambda options: _check_schedule(options, settings) if options.schedule else usual(options)
    )


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _schedule(options: argparse.Namespace, read_settings: Any) -> int:
    from simplace.scheduling import compare_inter_op
    from simplace.targets import place
    from simplace.views import schedule_tables
    from viz import to_text

    sizes = _sizes(options.inter_op)
    _check_figure(options)
    with progress() as stage:
        settings = read_settings(options, stage)
        result = place(options.target, settings)
    placed = _chosen(result, options.program)
    schedule = _run(placed, options, sizes[0], _limits(placed, settings))
    out = sys.stderr if options.json == "-" else sys.stdout
    print(schedule_tables.summary(schedule), file=out)
    if len(sizes) > 1:
        table = schedule_tables.inter_op_table(compare_inter_op(schedule, sizes))
        print(f"\n{to_text(table)}", file=out)
    _write_files(schedule, options)
    return 0


def _measure(options: argparse.Namespace) -> int:
    from simplace.costs.recorded import cost_file
    from simplace.oracle.measure.measure import measure

    found = measure(Path(options.target), intra_op=options.intra_op, steps=max(1, options.steps))
    content = cost_file(found.seconds, intra_op=found.intra_op, gap_s=found.gap, tensorflow=found.tensorflow)
    _write(options.output, (json.dumps(content, indent=1) + "\n").encode())
    return 0


def _check_schedule(options: argparse.Namespace, read_settings: Any) -> int:
    from simplace.schedule_check import check_schedule
    from simplace.targets import place
    from simplace.views.schedule_tables import agreement_table
    from viz import to_text

    options.devices = options.devices or "cpu:1,gpu:0"
    with progress() as stage:
        result = place(options.target, read_settings(options, stage))
        stage("running real steps")
        rows = check_schedule(
            Path(options.target),
            _chosen(result, None).placement,
            inter_op=_sizes(options.inter_op),
            steps=max(1, options.steps),
        )
    print(to_text(agreement_table(rows)))
    return 0


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SimplaceError(f"cannot read the thread counts {text!r}; write one or several, such as 1,2,4,8") from None


def _chosen(result: Result, name: str | None) -> Placed:
    if name:
        return result.program(name)
    if not result.programs:
        raise SimplaceError(f"{result.target}: nothing was placed, so there is nothing to run")
    return max(result.programs, key=lambda placed: len(placed.placement.decisions))


def _run(placed: Placed, options: argparse.Namespace, inter_op: int, limits: dict[str, int]) -> Schedule:
    from simplace.scheduling import schedule

    return schedule(
        placed.placement,
        inter_op=inter_op,
        intra_op=options.intra_op,
        cores=options.cores,
        executor=options.executor,
        costs=options.costs,
        gpu=options.gpu,
        gpu_memory_fraction=options.gpu_memory_fraction,
        gpu_thread_mode=options.gpu_threads,
        batch=options.batch,
        steps=options.steps,
        warm=not options.cold,
        trips=_pairs("--trips", options.trips),
        branches=_pairs("--branch", options.branch),
        limits=limits,
    )


def _limits(placed: Placed, settings: Any) -> dict[str, int]:
    """Take the limits of logical GPUs from the machine, where it splits GPUs."""
    machine = settings.machine
    split = [limit for gpu in machine.visible_gpus for limit in machine.split_of(gpu) or (0,)]
    gpus = [device.name for device in placed.placement.devices if device.type == "GPU"]
    if len(gpus) != len(split):  # the program made logical GPUs of its own
        return {}
    return {name: limit for name, limit in zip(gpus, split, strict=True) if limit}


def _pairs(option: str, texts: list[str]) -> dict[str, int]:
    pairs = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal():
            raise SimplaceError(f"cannot read {option} {text!r}; write a name and a whole number, such as while=20")
        pairs[name] = int(number)
    return pairs


def _check_figure(options: argparse.Namespace) -> None:
    if options.output and Path(options.output).suffix.lower() not in _FIGURES:
        raise DrawingError(f"{options.output}: a figure's name ends in {', '.join(_FIGURES)}")


def _write_files(schedule: Schedule, options: argparse.Namespace) -> None:
    from simplace.exports.chrome_trace import chrome_trace
    from simplace.exports.schedule_report import report

    if options.output:
        _write(options.output, _drawn(schedule, options.output))
    if options.trace:
        _write(options.trace, (json.dumps(chrome_trace(schedule)) + "\n").encode())
    if options.json == "-":
        print(json.dumps(report(schedule), indent=1, ensure_ascii=False))
    elif options.json:
        _write(options.json, (json.dumps(report(schedule), indent=1, ensure_ascii=False) + "\n").encode())


def _drawn(schedule: Schedule, name: str) -> bytes:
    from simplace.views.timeline import timeline
    from viz import LayoutError, render
    from viz.gantt import to_dot

    kind = Path(name).suffix.lower()[1:]
    dot = to_dot(timeline(schedule))
    try:
        return dot.encode() if kind == "dot" else render(dot, kind)  # type: ignore[arg-type]
    except LayoutError as error:
        raise DrawingError(f"{name}: {error}") from None


def _write(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise DrawingError(f"{name}: cannot write: {error.strerror}") from None
    print(f"wrote {name}", file=sys.stderr)
