"""`simplace measure`: record how long the ops of a program take on this computer's CPU, beside what is simulated."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output, terminal
from simplace.commands.trust import add_trust, require_trust
from simplace.errors import SimplaceError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.api.measuring import RealSteps
    from simplace.measure.measurement import MeasureOptions


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("measure", help="record how long ops take on this computer's CPU")
    parser.add_argument("target", metavar="TARGET", help="model.py, model.py:function, a SavedModel directory "
                        "(:signature for one), .pb or .pbtxt; a script's own arguments follow after --")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="write a cost file, for --costs, with the times of the "
                        "first setting")  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=words.parse_seconds, default=300.0,
                        help="end TensorFlow after S seconds (default: %(default)g)")  # fmt: skip
    output.add_force(parser)
    add_steps(parser)
    parser.set_defaults(command=_run_measure)


def add_steps(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Add the options of the steps to run; `when` begins each help."""
    parser.add_argument("--inter-op", metavar="N[,N...]", default="1,2", help=f"{when}the sizes of the inter-op pool "
                        "to run; -1: the caller's thread (default: %(default)s)")  # fmt: skip
    parser.add_argument("--intra-op", metavar="N", type=words.parse_positive, default=1, help=f"{when}size of the "
                        "intra-op pool: threads that share one op (default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=words.parse_positive, default=12, help=f"{when}steps to trace for "
                        "each (default: %(default)s)")  # fmt: skip
    parser.add_argument("--batch", metavar="N", type=words.parse_positive, default=32, help=f"{when}size of the "
                        "unknown first dimensions of placeholder inputs (default: %(default)s)")  # fmt: skip
    add_trust(parser, when)


def run_steps(options: argparse.Namespace, *, calibrates: bool) -> RealSteps:
    """Run the steps that `add_steps` describes, with the user's consent; print how they compare with simulated ones.

    `calibrates` finds out what this computer's CPU reaches, too, and says it.
    """
    from simplace import api
    from simplace.views.text.step_agreement import write_agreement

    require_trust(options)
    with show_progress() as stage:
        stage("running real steps", is_alone=True)
        found = api.measure_steps(options.target, _measure_options(options, calibrates))
    output.print_text(write_agreement(found, found.agreements, terminal.find_width(sys.stdout)))
    return found


def thread_counts(text: str) -> list[int]:
    """Read one count of threads or several, such as "1,2,4"; raise `SimplaceError` otherwise."""
    try:
        return [words.parse_whole(part.strip()) for part in text.split(",")]
    except argparse.ArgumentTypeError:
        raise SimplaceError(f"cannot read the thread counts {text!r}; write one or several, such as 1,2,4,8") from None


def _run_measure(options: argparse.Namespace) -> int:
    output.check_writable(options.output)
    found = run_steps(options, calibrates=True)
    if options.output:
        output.write_output_file(options.output, (json.dumps(found.to_json(), indent=1) + "\n").encode(), options.force)
        output.print_text(f"wrote {options.output}", sys.stderr)
    return 0


def _measure_options(options: argparse.Namespace, calibrates: bool) -> MeasureOptions:
    from simplace.measure.measurement import MeasureOptions

    return MeasureOptions(
        [(size, options.intra_op) for size in thread_counts(options.inter_op)],
        arguments=options.script_arguments,
        steps=options.steps,
        batch=options.batch,
        timeout=options.timeout,
        calibrates=calibrates,
    )
