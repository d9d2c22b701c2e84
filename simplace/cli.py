"""The command line: parse, call, write, exit status.

Exit status 0: done; 1: a check found differences; 2: something the user can fix, reported in one line on stderr; of a
program that ends with an error, that program's own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from simplace._version import __version__
from simplace.commands.help_text import ExamplesFormatter
from simplace.commands.output import check_distinct, report_error, say_error, shorten_text
from simplace.commands.streams import discard_stdout, flush_stdout, no_room, usable_streams
from simplace.errors import SimplaceError, join_alternatives

# In the order of --help; only the one that is asked for is imported.
_COMMANDS = (
    "show", "report", "explain", "check", "doctor", "diff", "export", "kernels", "schedule", "memory", "suggest",
    "measure",
)  # fmt: skip

_EXAMPLES = """\
examples:
  simplace show model.py\twhat runs where, and does TensorFlow agree
  simplace show model.py --devices cpu:1,gpu:2 -o f.svg\tthe same for two GPUs, with a figure
  simplace show model.py:train_step -- --epochs 1\tone function of a script, with the script's own arguments
  simplace explain model.py dense/MatMul\twhy one node is where it is
  simplace diff model.py --pin 'dense*=CPU'\twhat would move, and because of which node
  simplace check saved_model/ --hard\tcompare with TensorFlow, soft placement off
  simplace kernels Cast --dtype int32\twhich devices have a kernel
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words, script_arguments = _split_arguments(list(sys.argv[1:] if arguments is None else arguments))
    with usable_streams():
        try:
            return _run_command(words, script_arguments)
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            discard_stdout()
            return 0
        except KeyboardInterrupt:
            say_error("interrupted")
            return 130
        except OSError as error:
            complaint = no_room(error)
            if complaint is None:
                raise
            discard_stdout()
            return report_error(complaint)


def _run_command(words: list[str], script_arguments: tuple[str, ...]) -> int:
    options = _parse_options(words)
    options.script_arguments = script_arguments
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        _check_surroundings(words)
        check_distinct(options)
        status = command(options)
    except SimplaceError as error:
        status = report_error(error)
    flush_stdout()
    return status


def _check_surroundings(words: Sequence[str]) -> None:
    """Raise an error for arguments that no file can be named, and for a working directory that has been removed."""
    if any("\0" in word for word in words):
        raise SimplaceError("an argument contains a NUL character, which no name can have")
    try:
        os.getcwd()
    except OSError as error:
        raise SimplaceError(f"the working directory cannot be used ({error.strerror}); change to another one") from None


def _split_arguments(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _parse_options(words: list[str]) -> argparse.Namespace:
    """Parse the arguments; exit with a line that tells which option or command was meant where one is unknown."""
    parser = _build_parser(words[:1] if words and words[0] in _COMMANDS else _COMMANDS)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        known = _list_options(next(word for word in words if word in _COMMANDS))
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_find_meant(unknown[0].partition('=')[0], known)}")
    return options


def _find_meant(option: str, known: list[str]) -> str:
    """Return which other commands have an unknown option, or which known option is closest; "" if none is."""
    import difflib

    others = [name for name in _COMMANDS if option in _list_options(name)]
    if others:
        return f"; {option} is an option of simplace {join_alternatives(others)}"
    close = difflib.get_close_matches(option, known, n=1)
    return f", did you mean {close[0]}?" if close else ""


def _list_options(command: str) -> list[str]:
    import re

    parsers = argparse.ArgumentParser(add_help=False).add_subparsers()
    import_module(f"simplace.commands.{command}").add(parsers)
    return re.findall(r"--[a-z-]+", parsers.choices[command].format_usage())


class _Parser(argparse.ArgumentParser):
    """Write an error in one line, which the whole usage would push off a small screen."""

    def error(self, message: str) -> NoReturn:
        say_error(f"{shorten_text(message)} (see {self.prog} --help)")
        self.exit(2)


def _build_parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="simplace",
        description="Replay, check, explain and draw how TensorFlow places a program on devices.",
        epilog=_EXAMPLES,
        formatter_class=ExamplesFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simplace {__version__}")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in commands:
        import_module(f"simplace.commands.{name}").add(parsers)
    return parser
