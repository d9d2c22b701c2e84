"""`simplace explain`: explain why a node is on its device, step by step."""

from __future__ import annotations

import argparse
from typing import Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.progress import show_progress


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("explain", help="why a node is on its device, step by step")
    words.add_target(parser)
    parser.add_argument("node", metavar="NODE", help="a node's name, or the end of it where that is unique")
    parser.add_argument("--program", metavar="NAME", help="look in this program only")
    parser.set_defaults(command=_run_explain)


def _run_explain(options: argparse.Namespace) -> int:
    from simplace.api import place

    with show_progress() as stage:
        result = words.select_program(place(options.target, words.read_settings(options, stage)), options)
    output.print_text(str(result.explain(options.node)))
    return output.report_error(result.failure) if result.failure else 0
