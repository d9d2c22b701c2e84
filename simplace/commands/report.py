"""`simplace report`: write one HTML page with the graph, the reasons, the copies, the schedule."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.progress import progress


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("report", help="write one HTML page to look around in, which needs no network")
    words.add_target(parser)
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page to write, .html "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--program", metavar="NAME", help="this program only")
    parser.add_argument("--no-schedule", action="store_true", help="leave out the simulated schedule and the costs")
    parser.add_argument("--gpu", metavar="NAME", default="a100", help="what the GPUs are: t4, a100, a100-pcie, h100, "
                        "h200 (default: %(default)s)")  # fmt: skip
    parser.add_argument("--cores", metavar="N", type=words.positive, default=2, help="CPU cores (default: %(default)s)")
    parser.add_argument("--batch", metavar="N", type=words.positive, default=32, help="for unknown first dimensions "
                        "(default: %(default)s)")  # fmt: skip
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from simplace.report import page_file
    from simplace.report.page import Simulation
    from simplace.targets import place
    from simplace.views import summary

    simulation = None if options.no_schedule else Simulation(options.gpu, options.cores, options.batch)
    page_file.check(options.output, simulation)
    output.check_writable(options.output)
    with progress() as stage:
        result = words.named(place(options.target, words.settings(options, stage)), options)
        size = page_file.write(result, options.output, simulation, stage)
    print(f"wrote {options.output}: {size / 1e6:.1f} MB", file=sys.stderr)
    print(summary.agreement_line(result))
    return output.complain(result.failure) if result.failure else 0
