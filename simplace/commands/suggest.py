"""`simplace suggest`: which lines of a script to change so that a step takes less time."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output, terminal
from simplace.errors import SimplaceError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.suggestions.find_suggestions import Suggestions

_MEANT = (
    "The program is run once as it is, and once with each change that is estimated to gain, on emulated devices; "
    "files are changed only with --apply. docs/suggest.md says which changes are tried, and what the times are worth."
)


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("suggest", help="find the lines to change so that a step takes less time",
                                 epilog=_MEANT)  # fmt: skip
    words.add_target(parser)
    parser.add_argument("--costs", metavar="C", default="modelled", help="modelled, analytic (a roofline), flat, "
                        "measured (on this computer's CPU, now), or a file of recorded costs; with the last two no "
                        "change is tried that makes other ops (default: %(default)s)")  # fmt: skip
    words.add_gpu(parser)
    words.add_cpu(parser)
    words.add_gpu_memory(parser)
    words.add_cores(parser)
    parser.add_argument("--seconds", metavar="S", type=words.parse_seconds, default=60.0,
                        help="search for about S seconds after the first run (default: %(default)g)")  # fmt: skip
    parser.add_argument("--program", metavar="NAME", default="",
                        help="the step to make faster (default: the largest program)")  # fmt: skip
    parser.add_argument("--apply", metavar="N", type=words.parse_positive, nargs="?", const=1, default=0,
                        help="change the files as in suggestion N (default: 1); FILE.orig keeps what "
                        "each was")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    output.add_force(parser)
    parser.set_defaults(command=_run_suggest)


def _run_suggest(options: argparse.Namespace) -> int:
    from simplace import api
    from simplace.costs.chosen_model import cost_model
    from simplace.executor.step_options import StepOptions
    from simplace.suggestions.suggestion_text import write_parts

    output.check_writable(options.json)
    known = "modelled" if options.costs == "measured" else options.costs
    cost_model(known, options.gpu, options.gpu_memory_fraction or 0.0, options.cpu)  # refuses before anything runs
    step = StepOptions(
        gpu=options.gpu, cpu=options.cpu, cores=options.cores, gpu_memory_fraction=options.gpu_memory_fraction,
        costs=options.costs,
    )  # fmt: skip
    with show_progress() as stage:
        settings = words.read_settings(options, stage)
        found = api.suggest(options.target, settings, step, options.seconds, options.program, options.timeout)
    out = sys.stderr if options.json == "-" else sys.stdout
    parts = list(write_parts(found, terminal.find_width(out)))
    for text, is_patch in parts[:-1]:
        output.print_text(f"{text}\n", out, is_patch=is_patch)
    output.print_text(parts[-1][0], out)
    if options.json:
        output.write_json(options.json, found.to_json(), options.force)
    if options.apply:
        _apply(found, options.apply)
    return 0


def _apply(found: Suggestions, number: int) -> None:
    """Write the files of a suggestion, each with a copy of what it was."""
    from simplace.suggestions.applying import apply_suggestion

    if number > len(found.best):
        raise SimplaceError(f"there is no suggestion {number} to apply: {len(found.best)} were made")
    for name, kept in apply_suggestion(found, found.best[number - 1]):
        output.print_text(f"changed {name}; what it was is in {kept}", sys.stderr)
