"""`simplace diff`: what moves between two targets, machines or settings, or under a what-if, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from simplace.commands import figures, output, terminal
from simplace.commands import options as words
from simplace.commands.help_text import ExamplesFormatter
from simplace.errors import DrawingError, SimplaceError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.analysis.step_times import StepTimes
    from simplace.api import Diff, Settings
    from simplace.progress import Stage

_NOTHING = (
    "nothing to compare with: name a second target, or change something with --versus-devices, --versus-soft, "
    "--versus-hard, --versus-tensorflow or --pin"
)
_EXAMPLES = """\
examples:
  simplace diff model.py --devices cpu:1,gpu:2 --versus-devices cpu:1,gpu:1
  simplace diff model.py --pin 'dense*/MatMul=CPU:0' -o moved.svg
  simplace diff saved_model/ --soft --versus-hard
  simplace diff before.pb after.pb --exit-code
"""


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "diff", help="what moves between two targets, machines or settings, and why",
        epilog=_EXAMPLES, formatter_class=ExamplesFormatter,
    )  # fmt: skip
    words.add_target(parser)
    parser.add_argument("other", metavar="OTHER", nargs="?", help="the target after the change (default: TARGET)")
    after = parser.add_argument_group("what differs after the change")
    after.add_argument("--versus-devices", metavar="LIST", help="other devices; a script runs again under them")
    softness = after.add_mutually_exclusive_group()
    softness.add_argument("--versus-soft", dest="versus_soft", action="store_true", default=None,
                          help="soft placement on")  # fmt: skip
    softness.add_argument("--versus-hard", dest="versus_soft", action="store_false", help="soft placement off")
    after.add_argument("--versus-tensorflow", metavar="VERSION", default="", help="the kernels and rules of another "
                       "version, such as 2.16")  # fmt: skip
    after.add_argument("--pin", metavar="NODE=DEVICE", action="append", default=[], help="what if NODE, a name or "
                       "a pattern such as 'dense*', requested DEVICE; may be repeated, the last one wins")  # fmt: skip
    parser.add_argument("--program", metavar="NAME", help="compare this program only")
    parser.add_argument("--table", action="store_true", help="list every cause and every copy")
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--costs", metavar="C", default="modelled", help="the cost model of the simulated step times: "
                        "modelled, analytic, flat, a file of recorded costs, none (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu", metavar="NAME", default="a100", help="the GPU model, for step times "
                        "(default: %(default)s)")  # fmt: skip
    words.add_cpu(parser)
    figures.add_figure(parser, "what changed", ("changes", "detail", "side-by-side"), detail="detail")
    parser.add_argument("--exit-code", action="store_true", help="exit with status 1 if anything differs")
    parser.set_defaults(command=_run_diff)


def _run_diff(options: argparse.Namespace) -> int:
    from simplace.costs.chosen_model import cost_model

    figures.check_figure(options)
    output.check_writable(options.json)
    if options.costs != "none":
        cost_model(options.costs, options.gpu, cpu=options.cpu)  # refuses before anything runs
    with show_progress() as stage:
        changes = _compare_results(options, stage)
        stage("comparing")
        times = [] if options.costs == "none" else _simulate_steps(changes, options)
    _print_changes(changes, times, options)
    if options.output:
        _draw_changes(changes, options)
    for result in (changes.before, changes.after):
        if result.failure:
            return output.report_error(result.failure)
    return 1 if options.exit_code and changes.differs else 0


def _simulate_steps(changes: Diff, options: argparse.Namespace) -> Sequence[StepTimes]:
    return changes.step_times(costs=options.costs, gpu=options.gpu, cpu=options.cpu)


def _compare_results(options: argparse.Namespace, stage: Stage) -> Diff:
    from simplace import api
    from simplace.changes.what_if import read_pin

    pins = [read_pin(text) for text in options.pin]
    settings = words.read_settings(options, stage)
    other = _other_settings(settings, options)
    runs_again = options.other is not None or options.versus_devices is not None
    if not (runs_again or pins or options.versus_soft is not None or options.versus_tensorflow):
        raise SimplaceError(_NOTHING)
    before = words.select_program(api.place(options.target, settings), options)
    if not runs_again:
        return api.diff(before, None, pins, options.versus_soft, options.versus_tensorflow)
    after = words.select_program(api.place(options.other or options.target, other), options)
    return api.diff(before, after, pins, None, options.versus_tensorflow)  # it ran with the other soft placement


def _other_settings(settings: Settings, options: argparse.Namespace) -> Settings:
    """Return the settings after the change."""
    from dataclasses import replace

    from simplace import api

    soft = settings.soft_placement if options.versus_soft is None else options.versus_soft
    settings = replace(settings, soft_placement=soft)
    if options.versus_devices is None:
        return settings
    found = api.settings(options.versus_devices, options.visible)
    return replace(settings, machine=found.machine, devices_note=found.devices_note)


def _print_changes(changes: Diff, times: Sequence[StepTimes], options: argparse.Namespace) -> None:
    from simplace.exports.change_report import report_changes
    from simplace.views.text.change_summary import change_summary

    out = sys.stderr if options.json == "-" else sys.stdout
    output.print_text(change_summary(changes, times, terminal.find_width(out), options.table), out)
    if options.json:
        output.write_json(options.json, report_changes(changes, times), options.force)


def _draw_changes(changes: Diff, options: argparse.Namespace) -> None:
    """Draw the program in which most nodes moved, the largest of several."""
    from simplace.views.figures.change_figure import FIGURES

    if not changes.programs:
        raise DrawingError("no figure: the two have no program in common")
    drawn = max(changes.programs, key=lambda change: (len(change.moves), change.compared))
    figure = figures.fit_figure(partial(FIGURES[options.figure], drawn), options)
    figures.write_figure(figure, f"what changed in {drawn.title}", options)
