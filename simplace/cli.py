"""The command line: parse, call, write, exit status.

Exit status 0: done; 1: a check found differences; 2: something the user can mend, said in one line on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from simplace._version import __version__
from simplace.commands import check, diff, doctor, explain, export, kernels, measure, report, schedule, show
from simplace.commands.output import complain
from simplace.errors import SimplaceError

_COMMANDS = (show, report, explain, check, doctor, diff, export, kernels, schedule, measure)  # in the order of --help

_EXAMPLES = """\
examples:
  simplace show model.py                                what runs where, and does TensorFlow agree
  simplace show model.py --devices cpu:1,gpu:2 -o f.svg the same for two GPUs, with a figure
  simplace show model.py:train_step -- --epochs 1       one function of a script, with the script's own arguments
  simplace explain model.py dense/MatMul                why one node is where it is
  simplace diff model.py --pin 'dense*=CPU'             what would move, and because of which node
  simplace check saved_model/ --hard                    compare with TensorFlow, soft placement off
  simplace kernels Cast --dtype int32                   which devices have a kernel
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, script_arguments = _split(words)
    options = _parser().parse_args(words)
    options.script_arguments = script_arguments
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except SimplaceError as error:
        return complain(error)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("simplace: interrupted", file=sys.stderr)
        return 130


def _split(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simplace",
        description="Replay, check, explain and draw how TensorFlow places a program on devices.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simplace {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add(commands)
    return parser
