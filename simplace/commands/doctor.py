"""`simplace doctor`: list the silent failures of a program, or problems of this computer where no program is named."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from simplace.commands import judging, output, terminal
from simplace.commands import options as words
from simplace.errors import SimplaceError
from simplace.progress import show_progress


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("doctor", help="list silent failures, why they happen and how to fix them; "
                                 "without a TARGET, check this computer")  # fmt: skip
    words.add_target(parser, optional=True)
    judging.add_reports(parser)
    parser.set_defaults(
        command=lambda options: _check_computer(options) if options.target is None else _examine_target(options)
    )


def _check_computer(options: argparse.Namespace) -> int:
    from simplace.doctor.environment import examine_computer
    from simplace.views.text.environment_table import computer_report

    if options.junit or options.sarif or options.devices:
        raise SimplaceError("--devices, --junit and --sarif are about a program; name a TARGET")
    facts = examine_computer(os.environ)
    output.print_text(computer_report(facts, terminal.find_width(sys.stdout)))
    return int(any(fact.is_wrong for fact in facts))


def _examine_target(options: argparse.Namespace) -> int:
    from simplace.api import place
    from simplace.api.judged_step import judge_step, may_gain
    from simplace.exports.finding_verdicts import list_verdicts
    from simplace.importers.target import parse_target
    from simplace.views.text.doctor_report import doctor_report
    from simplace.views.text.summary import note_lines

    judging.check_writable(options)
    with show_progress() as stage:
        result = place(options.target, words.read_settings(options, stage))
    findings = result.diagnose()
    width = terminal.find_width(sys.stdout)
    output.print_text(doctor_report(findings, f"{result.target} on {result.devices}", width))
    for note in note_lines(result, width):
        output.print_text(f"\n{note}")
    verdict = judge_step(result)
    if verdict:
        output.print_text(f"\n{verdict}")
    if parse_target(options.target).kind == "script" and may_gain(result, findings):
        machine = f" --devices {options.devices}" if options.devices else ""
        output.print_text(f"\nwhat to change: simplace suggest {options.target}{machine} tries changes, and times them")
    found = list_verdicts(findings)
    judging.write_reports(options, found)
    if result.failure:
        return output.report_error(result.failure)
    return int(any(finding.severity != "note" for finding in findings))
