"""`simplace check`: compare with TensorFlow's own placement or a log of it, and with real steps (`--schedule`)."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from simplace.commands import judging, output, terminal
from simplace.commands import options as words
from simplace.commands.measure import add_steps, run_steps
from simplace.progress import show_progress


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("check", help="compare with TensorFlow's own placement; status 1 if they differ")
    words.add_target(parser)
    judging.add_requirements(parser)
    judging.add_reports(parser)
    parser.add_argument(
        "--log", metavar="FILE", default="", help="compare with this placement log, of any TensorFlow, instead"
    )
    parser.add_argument("--schedule", action="store_true", help="compare simulated with real steps, on this "
                        "computer's CPU")  # fmt: skip
    parser.add_argument("--complete", action="store_true", help="exit with status 1 also if a part of the program "
                        "was not compared, such as a function that no call reached")  # fmt: skip
    add_steps(parser, "with --schedule: ")
    parser.set_defaults(command=lambda options: _check_schedule(options) if options.schedule else _run_check(options))


def _run_check(options: argparse.Namespace) -> int:
    from simplace import api
    from simplace.checks.verdicts import list_not_compared, of_agreement, of_failure, of_predictions
    from simplace.exports.failure_report import list_predicted
    from simplace.views.text import eager_tables, summary, tables
    from viz import to_text
    from viz.names import visible

    requirements = judging.check_first(options)
    with show_progress() as stage:
        result = api.check(options.target, words.read_settings(options, stage), options.log)
    for placed in result.programs:
        if placed.agreement is not None and placed.agreement.differences:
            table = to_text(tables.difference_table(placed), terminal.find_width(sys.stdout))
            output.print_text(f"{visible(placed.title)}\n{table}\n")
    if result.eager_agreement is not None and result.eager_agreement.differences:
        table = to_text(
            eager_tables.difference_table(result.eager_agreement, result.devices),
            terminal.find_width(sys.stdout),
        )
        output.print_text(f"eager ops\n{table}\n")
    predicted = list_predicted(result)
    if predicted:
        output.print_text(f"{summary.failure_lines(predicted, terminal.find_width(sys.stdout))}\n")
    demanded = judging.judge_result(result, requirements, sys.stdout)
    for note in summary.note_lines(result, terminal.find_width(sys.stdout)):
        output.print_text(note)
    output.print_text(summary.agreement_line(result, f"the log {options.log}" if options.log else ""))
    if copies := summary.copies_line(result):
        output.print_text(copies)
    if result.coverage is not None and result.coverage.missing:
        output.print_text(summary.coverage_line(result))
    verdicts = (*of_failure(result), *of_agreement(result), *demanded)
    unseen = list_not_compared(verdicts)
    reported = (*verdicts, *of_predictions(predicted))
    judging.write_reports(options, reported, [*unseen, *judging.find_problems(options, result)])
    if result.failure:
        return output.report_error(result.failure)
    if unseen and options.complete:
        output.print_text(f"not complete: {'; '.join(problem.message for problem in unseen)}")
    return 0 if result.agrees and not (options.complete and unseen) and not judging.compute_exit_status(demanded) else 1


def _check_schedule(options: argparse.Namespace) -> int:
    run_steps(options, calibrates=False)
    return 0
