"""`simplace report`: write one HTML page with the graph, the reasons, the copies, the schedule."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.executor.step_options import StepOptions


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("report", help="write one interactive HTML page, which needs no network")
    words.add_target(parser)
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page to write, .html "
                        "(default: %(default)s)")  # fmt: skip
    output.add_force(parser)
    parser.add_argument("--program", metavar="NAME", help="this program only")
    parser.add_argument("--no-schedule", action="store_true", help="leave out the simulated schedule and the costs")
    parser.add_argument("--no-source", action="store_true", help="leave out the lines of your files")
    words.add_gpu(parser)
    words.add_cpu(parser)
    words.add_cores(parser)
    parser.add_argument("--batch", metavar="N", type=words.parse_positive, default=32, help="size of unknown first "
                        "dimensions (default: %(default)s)")  # fmt: skip
    parser.set_defaults(command=_run_report)


def _run_report(options: argparse.Namespace) -> int:
    from simplace.api import place
    from simplace.report import page_file
    from simplace.views.text import summary

    simulation = None if options.no_schedule else _step_options(options)
    page_file.check_page_name(options.output, simulation, options.force)
    output.check_writable(options.output)
    with show_progress() as stage:
        result = words.select_program(place(options.target, words.read_settings(options, stage)), options)
        size = page_file.write_page_file(
            result, options.output, simulation, options.force, stage, has_source=not options.no_source
        )
    output.print_text(f"wrote {options.output}: {size / 1e6:.1f} MB", sys.stderr)
    output.print_text(summary.agreement_line(result))
    return output.report_error(result.failure) if result.failure else 0


def _step_options(options: argparse.Namespace) -> StepOptions:
    from simplace.executor.step_options import StepOptions

    return StepOptions(gpu=options.gpu, cpu=options.cpu, cores=options.cores, batch=options.batch)
