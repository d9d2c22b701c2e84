"""The words that subcommands share: the target and its machine, numbers, the choice of a program."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from simplace.errors import SimplaceError

if TYPE_CHECKING:
    from simplace.progress import Stage
    from simplace.result import Placed, Result
    from simplace.targets import Settings

_STDERR = 2  # the file descriptor


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the target and all that `settings` reads."""
    parser.add_argument(
        "target", metavar="TARGET", nargs="?" if optional else None, help="model.py, model.py:function, a SavedModel "
        "directory, .pb, .pbtxt or .keras; a script's own arguments follow after --"
    )  # fmt: skip
    add_machine(parser)


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add what `settings` reads besides the target."""
    what = "such as cpu:1,gpu:2, or the tasks of a cluster, such as ps=cpu:1+2xworker=gpu:2, or a TOML file of either"
    parser.add_argument("--devices", metavar="LIST", help=what)
    parser.add_argument("--visible", metavar="N,N", help="the physical GPUs that the program sees, in this order")
    soft = parser.add_mutually_exclusive_group()
    soft.add_argument("--soft", dest="soft", action="store_true", default=None, help="turn soft placement on")
    soft.add_argument("--hard", dest="soft", action="store_false", help="turn soft placement off")
    parser.add_argument("--max-calls", metavar="N", type=positive, default=10, help="stop a script once one function "
                        "was called N times and nothing new was placed (default: %(default)s)")  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=seconds, default=300.0,
                        help="end a script after S seconds (default: %(default)g)")  # fmt: skip
    add_kernels(parser)


def add_kernels(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the kernel table: TensorFlow's version, and a file of extra kernels."""
    parser.add_argument("--kernels", metavar="FILE", default="", help="a TOML file with the kernels of custom ops")
    parser.add_argument("--tensorflow", metavar="V", default="", help="the version whose kernels and rules count, such "
                        "as 2.18 (files only; default: the installed one)")  # fmt: skip


def settings(options: argparse.Namespace, stage: Stage) -> Settings:
    """Read what `add_target` added; where the devices come from goes to `options.devices_note`."""
    from simplace.machine_file import machine
    from simplace.targets import Settings

    found, options.devices_note = machine(options.devices, options.visible, os.environ)
    return Settings(
        machine=found,
        soft_placement=options.soft,
        arguments=options.script_arguments,
        max_calls=options.max_calls,
        time_limit=options.timeout,
        kernels=options.kernels,
        tensorflow=options.tensorflow,
        stdout=_STDERR if getattr(options, "json", None) == "-" else None,
        stage=stage,
    )


def named(result: Result, options: argparse.Namespace) -> Result:
    """Return the result with the note on its devices, and the program of `--program` alone where it was given."""
    result = result.with_devices_note(options.devices_note)
    return result.only(options.program) if options.program else result


def one_program(result: Result, name: str | None) -> Placed:
    """Return the program called `name`, the largest where it is None."""
    if name:
        return result.program(name)
    if not result.programs:
        raise SimplaceError(f"{result.target}: nothing was placed, so there is nothing to run")
    return largest(result)


def largest(result: Result) -> Placed:
    """Return the program with the most nodes, the first of several."""
    return max(result.programs, key=lambda placed: len(placed.placement.decisions))


def positive(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
