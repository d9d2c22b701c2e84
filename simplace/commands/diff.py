"""`simplace diff`: what moves between two targets, two machines, two settings or under a supposition, and why."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simplace.commands import figures, output
from simplace.commands import options as words
from simplace.errors import DrawingError, SimplaceError
from simplace.progress import progress

if TYPE_CHECKING:
    from simplace.changes import Changes
    from simplace.importers.program import Pin
    from simplace.progress import Stage
    from simplace.result import Result
    from simplace.step_times import StepTimes
    from simplace.targets import Settings

_NOTHING = (
    "nothing to compare with: name a second target, or say what differs with --versus-devices, --versus-soft, "
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
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
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
    after.add_argument("--pin", metavar="NODE=DEVICE", action="append", default=[], help="suppose that NODE, a name or "
                       "a pattern such as 'dense*', requested DEVICE; may be repeated, the last one wins")  # fmt: skip
    parser.add_argument("--program", metavar="NAME", help="compare this program only")
    parser.add_argument("--table", action="store_true", help="list every cause and every copy")
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    parser.add_argument("--costs", metavar="C", default="analytic", help="what step times are simulated with: "
                        "analytic, flat, a file of recorded costs, or none (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu", metavar="NAME", default="a100", help="what the GPUs are, for step times "
                        "(default: %(default)s)")  # fmt: skip
    figures.add_figure(parser, "what changed", ("changes", "side-by-side"))
    parser.add_argument("--exit-code", action="store_true", help="exit with status 1 if anything differs")
    parser.set_defaults(command=_diff)


def _diff(options: argparse.Namespace) -> int:
    from simplace.changes import compare_results
    from simplace.scheduling import cost_model

    output.check_figure(options.output)
    output.check_writable(options.json)
    if options.costs != "none":
        cost_model(options.costs, options.gpu)  # refuses before anything runs
    with progress() as stage:
        before, after = _results(options, stage)
        changes = compare_results(before, after)
        stage("comparing")
        times = _times(changes, options)
    _print(changes, times, options)
    if options.output:
        _draw(changes, options)
    for result in (before, after):
        if result.failure:
            return output.complain(result.failure)
    return 1 if options.exit_code and changes.differs else 0


def _results(options: argparse.Namespace, stage: Stage) -> tuple[Result, Result]:
    from simplace.targets import place
    from simplace.what_if import read_pin

    pins = [read_pin(text) for text in options.pin]
    settings = words.settings(options, stage)
    other, note = _other_settings(settings, options)
    runs_again = options.other is not None or options.versus_devices is not None
    supposes = pins or options.versus_soft is not None or options.versus_tensorflow
    if not runs_again and not supposes:
        raise SimplaceError(_NOTHING)
    before = words.named(place(options.target, settings), options)
    after = before
    if runs_again:
        after = place(options.other or options.target, other).with_devices_note(note)
        after = after.only(options.program) if options.program else after
    return before, _supposed(after, pins, options, runs_again) if supposes else after


def _other_settings(settings: Settings, options: argparse.Namespace) -> tuple[Settings, str]:
    """Return the settings after the change, with the note on where its devices come from."""
    from simplace.machine_file import machine

    soft = settings.soft_placement if options.versus_soft is None else options.versus_soft
    settings = replace(settings, soft_placement=soft)
    if options.versus_devices is None:
        return settings, options.devices_note
    found, note = machine(options.versus_devices, options.visible, os.environ)
    return replace(settings, machine=found), note


def _supposed(result: Result, pins: list[Pin], options: argparse.Namespace, ran_so: bool) -> Result:
    """Apply what was not part of a run of its own."""
    from simplace.what_if import suppose

    soft = None if ran_so else options.versus_soft
    if not pins and soft is None and not options.versus_tensorflow:
        return result
    return suppose(result, pins, soft, options.versus_tensorflow)


def _times(changes: Changes, options: argparse.Namespace) -> list[StepTimes]:
    from simplace.step_times import step_times

    if options.costs == "none":
        return []
    chosen = {"costs": options.costs, "gpu": options.gpu}
    return [step_times(change, **chosen) for change in changes.programs]


def _print(changes: Changes, times: Sequence[StepTimes], options: argparse.Namespace) -> None:
    from simplace.exports.change_report import report
    from simplace.views.change_summary import change_summary

    out = sys.stderr if options.json == "-" else sys.stdout
    print(change_summary(changes, times, output.width(out), options.table), file=out)
    if options.json:
        output.write_json(options.json, report(changes, times))


def _draw(changes: Changes, options: argparse.Namespace) -> None:
    """Draw the program in which most nodes moved, the largest of several."""
    from simplace.views.change_figure import FIGURES

    if not changes.programs:
        raise DrawingError("no figure: the two have no program in common")
    drawn = max(changes.programs, key=lambda change: (len(change.moves), change.compared))
    figures.write_figure(
        FIGURES[options.figure](drawn, figures.boxes(options)), f"what changed in {drawn.name}", options
    )
