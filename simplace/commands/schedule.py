"""`simplace schedule`: simulate when each op runs: threads, streams, copies, memory."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from simplace.commands import figures, output, terminal
from simplace.commands import options as words
from simplace.commands.measure import thread_counts
from simplace.commands.trust import add_trust, require_trust
from simplace.errors import SimplaceError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.analysis.device_comparison import DeviceComparison
    from simplace.api import Settings, Simulated
    from simplace.executor.step_options import StepOptions
    from simplace.measure.measurement import MeasureOptions
    from simplace.progress import Stage

_ASSUMED = (
    "Assumed: without --grappler, Grappler rewrites nothing; each GPU has a PCIe link of its own, each pair of "
    "processes a network link, unless a machine file has [[shared_link]] tables; a session with thread pools of its "
    "own is simulated with those of the process. "
    "docs/schedule.md lists what is modelled, after which source file, and how close it comes."
)


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("schedule", help="simulate when each op runs: threads, streams, copies, memory",
                                 epilog=_ASSUMED)  # fmt: skip
    words.add_target(parser)
    parser.add_argument("--inter-op", metavar="N[,N...]", default="0", help="sizes of the inter-op pool to simulate; "
                        "0: one thread per core, -1: the caller's thread (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--intra-op",
        metavar="N",
        type=words.parse_whole,
        default=0,
        help="size of the intra-op pool: threads that share one op (0: one per core)",
    )
    words.add_cores(parser)
    parser.add_argument("--executor", choices=("tensorflow", "textbook"), default="tensorflow",
                        help="TensorFlow's executor, or the textbook's: a thread pool per device "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--costs", metavar="C", default="modelled", help="modelled, analytic (a roofline), flat, "
                        "measured (on this computer's CPU, now), or a file of recorded costs "
                        "(default: %(default)s)")  # fmt: skip
    words.add_gpu(parser)
    words.add_cpu(parser)
    words.add_gpu_memory(parser)
    parser.add_argument("--gpu-threads", metavar="MODE", default="global", help="TF_GPU_THREAD_MODE: global, "
                        "gpu_private or gpu_shared (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu-thread-count", metavar="N", type=words.parse_positive, default=2,
                        help="TF_GPU_THREAD_COUNT: threads of each such pool (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--steps", metavar="N", type=words.parse_whole, default=1, help="steps to run (default: %(default)s)"
    )
    parser.add_argument(
        "--cold", action="store_true", help="simulate the first steps, before the executor knows any op's cost"
    )
    parser.add_argument("--as-placed", action="store_true", help="simulate all ops that were placed; without this, "
                        "constants are folded and common subexpressions merged first, as TensorFlow does")  # fmt: skip
    words.add_grappler(parser)
    parser.add_argument("--batch", metavar="N", type=words.parse_whole, default=32, help="size of unknown first "
                        "dimensions (default: %(default)s)")  # fmt: skip
    words.add_outcomes(parser)
    add_trust(parser, "with --costs measured: ")
    figures.add_figure(parser, "a Gantt chart, how many ops run or are ready, or the memory over time",
                       ("timeline", "parallelism", "memory"), has_boxes=False)  # fmt: skip
    parser.add_argument("--trace", metavar="FILE", help="write a Chrome trace, for Perfetto")
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--compare-devices", metavar="LIST", help="say whether these devices are worth it, such as a "
                        "second GPU, and from which batch on; a script runs again under them")  # fmt: skip
    parser.add_argument("--program", metavar="NAME", help="this program only (default: the largest)")
    words.add_run(parser)
    parser.set_defaults(command=_run_schedule)


def _run_schedule(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from simplace import api
    from simplace.analysis.session_memory import find_memory_fraction, use_memory_fraction
    from simplace.api.judged_step import describe_slow_input
    from simplace.api.split_gpus import find_split_limits
    from simplace.costs.chosen_model import cost_model
    from simplace.partition.run_graph import find_run
    from simplace.views.text import schedule_tables
    from simplace.views.text.device_comparison_text import write_comparison
    from simplace.views.text.lines import wrap_line
    from simplace.views.text.memory_tables import describe_fraction
    from viz import to_text

    sizes = thread_counts(options.inter_op)
    figures.check_figure(options)
    output.check_writable(options.trace)
    output.check_writable(options.json)
    if options.costs == "measured":
        require_trust(options)
    else:
        cost_model(
            options.costs, options.gpu, options.gpu_memory_fraction or 0.0, options.cpu
        )  # refuses before anything runs
    with show_progress() as stage:
        settings = words.read_settings(options, stage)
        result = api.place(options.target, settings)
        placed = words.one_program(result, options.program)
        chosen = replace(_step_options(options), inter_op=sizes[0], limits=find_split_limits(placed, settings))
        chosen = use_memory_fraction(chosen, result.python)
        fraction = find_memory_fraction(result.python) if options.gpu_memory_fraction is None else None
        if options.run:
            chosen = replace(chosen, run=find_run(placed.placement.placed, options.run).run)
        if options.costs == "measured":
            stage("running real steps", is_alone=True)
            chosen = replace(chosen, costs=api.measure_costs(options.target, placed, chosen, _measure_options(options)))
        stage("simulating")
        schedule = api.schedule(placed.placement, chosen)
        compared = _compare_devices(schedule, chosen, settings, options, stage) if options.compare_devices else None
    out = sys.stderr if options.json == "-" else sys.stdout
    width = terminal.find_width(out)
    output.print_text(schedule_tables.write_summary(schedule, width), out)
    for line in describe_fraction(fraction):
        output.print_text("\n" + wrap_line(f"note: {line}", width), out)
    if slow := describe_slow_input(result, schedule, replace(chosen, limits={}, run=None)):
        output.print_text("\n" + wrap_line(f"beside the step: {slow}", width), out)
    if len(sizes) > 1:
        table = schedule_tables.inter_op_table(schedule.compare_inter_op(sizes))
        output.print_text(f"\n{to_text(table, width)}", out)
    if compared is not None:
        output.print_text("\n" + write_comparison(compared, width), out)
    _write_files(schedule, options, compared)
    return output.report_error(result.failure) if result.failure else 0


def _compare_devices(
    schedule: Simulated, chosen: StepOptions, settings: Settings, options: argparse.Namespace, stage: Stage
) -> DeviceComparison:
    """Run or read the target again under other devices, and compare a step of the same program there."""
    from dataclasses import replace

    from simplace import api

    if options.costs == "measured":
        raise SimplaceError("--compare-devices simulates other devices, which --costs measured cannot measure")
    found = api.settings(options.compare_devices, options.visible)
    result = api.place(options.target, replace(settings, machine=found.machine, devices_note=found.devices_note))
    other = words.one_program(result, options.program)
    stage("simulating larger batches")
    return schedule.compare_devices(api.schedule(other.placement, replace(chosen, limits={}, run=None)))


def _step_options(options: argparse.Namespace) -> StepOptions:
    from simplace.executor.step_options import StepOptions

    return StepOptions(
        intra_op=options.intra_op,
        cores=options.cores,
        executor=options.executor,
        costs=options.costs,
        gpu=options.gpu,
        cpu=options.cpu,
        gpu_memory_fraction=options.gpu_memory_fraction,
        gpu_thread_mode=options.gpu_threads,
        gpu_thread_count=options.gpu_thread_count,
        batch=options.batch,
        steps=options.steps,
        warm=not options.cold,
        optimizes=not options.as_placed,
        grappler=options.grappler,
        trips=words.parse_pairs("--trips", options.trips),
        branches=words.parse_pairs("--branch", options.branch),
    )


def _measure_options(options: argparse.Namespace) -> MeasureOptions:
    from simplace.measure.measurement import MeasureOptions

    return MeasureOptions(
        arguments=options.script_arguments,
        batch=options.batch,
        timeout=words.read_timeout(options),
    )


def _write_files(schedule: Simulated, options: argparse.Namespace, compared: DeviceComparison | None) -> None:
    from simplace.exports.chrome_trace import chrome_trace

    if options.output:
        _draw_schedule(schedule, options)
    if options.trace:
        output.write_output_file(options.trace, (json.dumps(chrome_trace(schedule)) + "\n").encode(), options.force)
        output.print_text(f"wrote {options.trace}", sys.stderr)
    if options.json:
        report = schedule.to_json()
        if compared is not None:
            from simplace.exports.schedule_report import report_comparison

            report["compared"] = report_comparison(compared)
        output.write_json(options.json, report, options.force)


def _draw_schedule(schedule: Simulated, options: argparse.Namespace) -> None:
    from simplace.views.figures.placed_figures import CHARTS

    chart = CHARTS[options.figure](schedule)
    figures.write_figure(chart, f"the {options.figure} of {schedule.placement.program.title}", options)
