"""The options `--require`, `--junit` and `--sarif`: judge a result, write the verdicts, return the exit status."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from simplace.commands import output, terminal

if TYPE_CHECKING:
    from simplace.api import Placements
    from simplace.checks.requirements import Requirement
    from simplace.checks.verdicts import Problem, Verdict
    from simplace.result import Result

_SHOWN = 20


def add_requirements(parser: argparse.ArgumentParser) -> None:
    """Add `--require`."""
    parser.add_argument("--require", metavar="NODES=DEVICES", action="append", default=[],
                        help="exit with status 1 unless the nodes are on these devices, such as 'MatMul*=gpu:*', "
                        "'op:MatMul=gpu:0|gpu:1' or 'dense/*!=cpu:*'; may be repeated")  # fmt: skip


def add_reports(parser: argparse.ArgumentParser) -> None:
    """Add the files for continuous integration."""
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML")
    output.add_force(parser)
    parser.add_argument("--sarif", metavar="FILE", help="write every problem and finding as SARIF 2.1.0")


def check_first(options: argparse.Namespace) -> tuple[Requirement, ...]:
    """Raise an error, before anything runs, for files that could not be written; return the requirements."""
    check_writable(options)
    if not options.require:
        return ()
    from simplace.checks.requirements import parse_requirement

    return tuple(parse_requirement(text) for text in options.require)


def check_writable(options: argparse.Namespace) -> None:
    """Raise an error, before anything runs, for files that could not be written."""
    output.check_writable(getattr(options, "junit", None))
    output.check_writable(getattr(options, "sarif", None))


def judge_result(result: Result, requirements: Sequence[Requirement], out: TextIO) -> tuple[Verdict, ...]:
    """Judge a result by requirements; print to `out` whether they are met, or a table of what does not meet them."""
    if not requirements:
        return ()
    from simplace.checks.requirements import find_violations
    from simplace.checks.verdicts import of_requirements
    from simplace.views.text.requirement_table import requirement_table
    from viz import to_text

    unmet = find_violations(result, requirements)
    if unmet:
        output.print_text(
            f"\nrequirements not met\n\n{to_text(requirement_table(unmet, _SHOWN), terminal.find_width(out))}",
            out,
        )
    else:
        every = "the requirement is met" if len(requirements) == 1 else f"all {len(requirements)} requirements are met"
        output.print_text(f"\n{every}", out)
    return of_requirements(requirements, unmet)


def write_reports(options: argparse.Namespace, verdicts: Sequence[Verdict], findings: Sequence[Problem] = ()) -> None:
    """Write the files that were asked for; `findings` are problems that do not affect the exit status."""
    from simplace.exports.junit import write_junit
    from simplace.exports.sarif import write_sarif

    if options.junit:
        output.write_output_file(options.junit, write_junit(options.target, verdicts), options.force)
    if options.sarif:
        problems = [problem for verdict in verdicts for problem in verdict.problems]
        found = write_sarif(options.target, [*problems, *findings], Path.cwd())
        output.write_json(options.sarif, found, options.force)


def find_problems(options: argparse.Namespace, result: Placements) -> list[Problem]:
    """Return the doctor's findings for the SARIF file; they do not affect the exit status."""
    if not options.sarif:
        return []
    from simplace.exports.finding_verdicts import describe_problem

    return [describe_problem(finding) for finding in result.diagnose()]


def compute_exit_status(verdicts: Sequence[Verdict]) -> int:
    """Return 1 if any verdict has a problem, else 0."""
    return int(any(verdict.problems for verdict in verdicts))
