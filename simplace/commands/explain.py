"""`simplace explain`: explain why a node is on its device, step by step, or what a rule means."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from simplace.commands import options as words
from simplace.commands import output, terminal
from simplace.errors import SimplaceError
from simplace.progress import show_progress


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("explain", help="why a node is on its device, step by step; --rule RULE: what a "
                                 "finding or a reason means")  # fmt: skip
    target = words.add_target(parser)
    node = parser.add_argument("node", metavar="NODE", help="a node's name, or the end of it where that is unique")
    parser.add_argument("--program", metavar="NAME", help="look in this program only")
    what = "instead: print what a finding or a reason means (late-log-flag), and what to do; without RULE, list all"
    parser.add_argument("--rule", metavar="RULE", nargs="?", action=_TakeRule, places=(target, node), help=what)
    parser.set_defaults(
        command=lambda options: _explain_node(options) if options.rule is None else _print_rule(options)
    )


class _TakeRule(argparse.Action):
    """Take a rule in the places of a target and a node, which are needed without one."""

    def __init__(self, places: Sequence[argparse.Action], **options: Any) -> None:
        super().__init__(**options)
        self._places = places

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, values or "")
        for place in self._places:
            place.required = False


def _explain_node(options: argparse.Namespace) -> int:
    from simplace.api import place

    with show_progress() as stage:
        result = words.select_program(place(options.target, words.read_settings(options, stage)), options)
    output.print_text(str(result.explain(options.node)))
    return output.report_error(result.failure) if result.failure else 0


def _print_rule(options: argparse.Namespace) -> int:
    from simplace.doctor.rule_pages import find_rule_page, read_rule_pages
    from simplace.views.text.rule_text import list_rules, write_rule

    if options.target is not None:
        raise SimplaceError(f"--rule needs no TARGET, and got {options.target!r}: simplace explain --rule RULE")
    pages, width = read_rule_pages(), terminal.find_width(sys.stdout)
    shown = write_rule(find_rule_page(pages, options.rule), width) if options.rule else list_rules(pages, width)
    output.print_text(shown)
    return 0
