"""`simplace memory`: whether a step fits in the memory of the GPUs, what holds it, the largest batch."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from simplace.commands import figures, output, terminal
from simplace.commands import options as words
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.analysis.step_memory import StepMemory
    from simplace.executor.step_options import StepKeywords

_NOT_FITTING = 1
_ASSUMED = (
    "The allocations of a simulated step, in its order, by a replay of TensorFlow's allocator (BFC). "
    "docs/memory-model.md says what is counted, and how close it comes. Exit status 1: a device has too little memory."
)


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("memory", help="tell whether a step fits in memory, and the largest batch that does",
                                 epilog=_ASSUMED)  # fmt: skip
    words.add_target(parser)
    words.add_gpu(parser)
    words.add_cpu(parser)
    words.add_gpu_memory(parser)
    words.add_grappler(parser)
    parser.add_argument("--batch", metavar="N", type=words.parse_positive, default=0,
                        help="the memory with this batch (default: the program's own)")  # fmt: skip
    words.add_outcomes(parser)
    figures.add_figure(parser, "the memory over time", ("memory",), has_boxes=False)
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--program", metavar="NAME", help="this program only (default: the largest)")
    words.add_run(parser)
    parser.set_defaults(command=_run_memory)


def _run_memory(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from simplace import api
    from simplace.api.split_gpus import find_split_limits
    from simplace.costs.chosen_model import cost_model
    from simplace.partition.run_graph import find_run
    from simplace.views.text.memory_tables import write_memory

    figures.check_figure(options)
    output.check_writable(options.json)
    trips, branches = words.parse_pairs("--trips", options.trips), words.parse_pairs("--branch", options.branch)
    cost_model("modelled", options.gpu, options.gpu_memory_fraction or 0.0, options.cpu)  # refuses before anything runs
    with show_progress() as stage:
        settings = replace(words.read_settings(options, stage), allocations=True)
        result = api.place(options.target, settings)
        placed = words.one_program(result, options.program)
        stage("simulating")
        chosen: StepKeywords = {
            "gpu": options.gpu,
            "cpu": options.cpu,
            "gpu_memory_fraction": options.gpu_memory_fraction,
            "grappler": options.grappler,
            "limits": find_split_limits(placed, settings),
            "trips": trips,
            "branches": branches,
        }
        if options.batch:
            chosen["batch"] = options.batch
        if options.run:
            chosen["run"] = find_run(placed.placement.placed, options.run).run
        memory = result.memory(placed.title, **chosen)
        stage("simulating what would help")
        remedies = memory.remedies
    out = sys.stderr if options.json == "-" else sys.stdout
    output.print_text(write_memory(memory, remedies, terminal.find_width(out)), out)
    if options.output:
        _draw_memory(memory, options)
    if options.json:
        output.write_json(options.json, memory.to_json(), options.force)
    if result.failure:
        return output.report_error(result.failure)
    return 0 if memory.fits else _NOT_FITTING


def _draw_memory(memory: StepMemory, options: argparse.Namespace) -> None:
    from simplace.views.figures.memory_chart import memory_chart

    chart = memory_chart(memory.schedule, memory.uses, memory.resize)
    figures.write_figure(chart, f"the memory of {memory.schedule.placement.program.title}", options)
