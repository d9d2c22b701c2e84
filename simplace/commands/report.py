"""`simplace report`: write one HTML page with the graph, the reasons, the copies, the schedule."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.errors import DrawingError
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
    from simplace.report.page import Simulation, page
    from simplace.targets import place
    from simplace.views import summary

    _check(options)
    simulation = None if options.no_schedule else Simulation(options.gpu, options.cores, options.batch)
    with progress() as stage:
        result = words.named(place(options.target, words.settings(options, stage)), options)
        data = page(result, simulation, stage).encode()
    output.write(options.output, data)
    print(f"wrote {options.output}: {len(data) / 1e6:.1f} MB", file=sys.stderr)
    print(summary.agreement_line(result))
    return output.complain(result.failure) if result.failure else 0


def _check(options: argparse.Namespace) -> None:
    """Refuse, before anything runs, a page that could not be written and hardware that nobody knows."""
    from simplace.scheduling import cost_model

    cost_model("analytic", options.gpu)
    name = options.output
    if Path(name).suffix.lower() not in (".html", ".htm"):
        raise DrawingError(f"{name}: a page's name ends in .html")
    output.check_writable(name)
