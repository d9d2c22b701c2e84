"""`simplace show`: summarise where everything runs; write tables, figures, JSON."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, TextIO

from simplace.commands import figures, judging, output, terminal
from simplace.commands import options as words
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.result import Result


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("show", help="summarise where everything runs; write tables, figures, JSON")
    words.add_target(parser)
    parser.add_argument("--table", action="store_true", help="list every node and every copy")
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--program", metavar="NAME", help="show and draw this program only")
    figures.add_figure(parser, "the device graph", ("overview", "placement", "partition", "colocation", "eager"),
                       detail="placement")  # fmt: skip
    judging.add_requirements(parser)
    parser.set_defaults(command=_run_show)


def _run_show(options: argparse.Namespace) -> int:
    from simplace.graph.collector import paused_collector

    figures.check_figure(options)
    output.check_writable(options.json)
    with paused_collector():  # while modules are imported, too
        from simplace.api import place

        requirements = judging.check_first(options)
        with show_progress() as stage:
            result = words.select_program(place(options.target, words.read_settings(options, stage)), options)
        _print_report(result, options)
        if options.output:
            _draw_placement(result, options)
        verdicts = judging.judge_result(result, requirements, sys.stderr if options.json == "-" else sys.stdout)
    return output.report_error(result.failure) if result.failure else judging.compute_exit_status(verdicts)


def _print_report(result: Result, options: argparse.Namespace) -> None:
    from simplace.api.judged_step import judge_step
    from simplace.views.text import summary

    out: TextIO = sys.stderr if options.json == "-" else sys.stdout
    width = terminal.find_width(out)
    output.print_text(summary.write_summary(result, width, None if options.table else summary.COPIES), out)
    if options.table:
        from simplace.views.text import tables
        from viz import to_text

        for placed in result.programs:
            output.print_text(f"\n{summary.write_title(placed)}\n\n{to_text(tables.node_table(placed), width)}", out)
        if result.eager is not None:
            from simplace.views.text import eager_tables
            from simplace.views.text.eager_summary import write_eager_title

            told = to_text(eager_tables.op_table(result.eager), width)
            output.print_text(f"\n{write_eager_title(result.eager)}\n\n{told}", out)
    if options.json:
        from simplace.api.simulated_step import find_simulated
        from simplace.exports.json_report import report_result

        output.write_json(options.json, report_result(result, find_simulated(result, only_cheap=True)), options.force)
    verdict = judge_step(result, only_cheap=True, lists_findings=True)
    if verdict:
        output.print_text(f"\n{verdict}", out)
    covered = summary.coverage_line(result)
    output.print_text("\n" + "\n".join([*filter(None, [covered]), summary.agreement_line(result)]), out)


def _draw_placement(result: Result, options: argparse.Namespace) -> None:
    from simplace.views.figures.eager_figure import draws_eager_ops, eager_figure
    from simplace.views.figures.placed_figures import FIGURES

    if draws_eager_ops(result, options.figure):
        figure = figures.fit_figure(lambda limit: eager_figure(result, limit), options)
        figures.write_figure(figure, "the eager ops", options)
        return
    drawn = result.largest()
    others = f", which does the most work of {len(result.programs)} programs" if len(result.programs) > 1 else ""
    figure = figures.fit_figure(lambda limit: FIGURES[options.figure](drawn, limit), options)
    figures.write_figure(figure, f"{drawn.title}{others}", options)
