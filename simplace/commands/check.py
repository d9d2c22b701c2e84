"""`simplace check`: compare with TensorFlow's own placement or a log of it, and with real steps (`--schedule`)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.commands.schedule import thread_counts
from simplace.errors import SimplaceError
from simplace.progress import progress

if TYPE_CHECKING:
    from simplace.oracle.observation import LoggedNode


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("check", help="compare with TensorFlow's own placement; status 1 if they differ")
    words.add_target(parser)
    parser.add_argument("--log", metavar="FILE", help="compare with this placement log, of any TensorFlow, instead")
    parser.add_argument("--schedule", action="store_true", help="compare simulated with real steps of a graph file, "
                        "on this computer's CPU")  # fmt: skip
    parser.add_argument("--inter-op", metavar="N[,N...]", default="1,2", help="with --schedule: the settings to run "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=words.whole, default=12, help="with --schedule: steps to trace "
                        "(default: %(default)s)")  # fmt: skip
    parser.set_defaults(command=lambda options: _check_schedule(options) if options.schedule else _check(options))


def _check(options: argparse.Namespace) -> int:
    from simplace.targets import check, compare_with_log, place
    from simplace.views import summary, tables
    from viz import to_text

    log = _read_log(options.log) if options.log else None
    with progress() as stage:
        settings = words.settings(options, stage)
        result = (
            check(options.target, settings) if log is None else compare_with_log(place(options.target, settings), log)
        )
    for placed in result.programs:
        if placed.agreement is not None and placed.agreement.differences:
            print(f"{placed.name}\n{to_text(tables.difference_table(placed), output.width(sys.stdout))}\n")
    print(summary.agreement_line(result, f"the log {options.log}" if options.log else ""))
    if result.failure:
        return output.complain(result.failure)
    return 0 if result.agrees else 1


def _read_log(name: str) -> tuple[LoggedNode, ...]:
    from simplace.oracle.placement_log import parse

    try:
        text = Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SimplaceError(f"{name}: cannot read the log: {error.strerror}") from None
    entries = parse(text)
    if not entries:
        raise SimplaceError(
            f"{name}: no placement line in this log; one looks like `mul: (Mul): /job:localhost/replica:0/task:0/"
            "device:GPU:0`, and tf.debugging.set_log_device_placement(True) at the start of the program prints them"
        )
    return entries


def _check_schedule(options: argparse.Namespace) -> int:
    from simplace.schedule_check import check_schedule
    from simplace.targets import place
    from simplace.views.schedule_tables import agreement_table
    from viz import to_text

    options.devices = options.devices or "cpu:1,gpu:0"
    with progress() as stage:
        result = place(options.target, words.settings(options, stage))
        stage("running real steps")
        rows = check_schedule(
            Path(options.target),
            words.one_program(result, None).placement,
            inter_op=thread_counts(options.inter_op),
            steps=max(1, options.steps),
        )
    print(to_text(agreement_table(rows)))
    return 0
