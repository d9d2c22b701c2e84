"""The options that subcommands share: the target and its machine, numbers, the choice of a program."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from simplace.errors import SimplaceError

if TYPE_CHECKING:
    from simplace.api import Placements, Settings
    from simplace.progress import Stage
    from simplace.result import Placed

_TIMEOUT = 300.0  # seconds
_STDERR = 2  # the file descriptor
_MOST = 1_000_000  # threads, steps, calls, trips: more would only take all of the memory


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> argparse.Action:
    """Add the target, which is returned, and all that `read_settings` reads."""
    target = parser.add_argument(
        "target", metavar="TARGET", nargs="?" if optional else None, help="model.py, model.py:function, a SavedModel "
        "directory, .pb, .pbtxt or .keras; a script's own arguments follow after --"
    )  # fmt: skip
    add_machine(parser)
    return target


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add what `read_settings` reads besides the target."""
    what = "such as cpu:1,gpu:2, or the tasks of a cluster, such as ps=cpu:1+2xworker=gpu:2, or a TOML file of either"
    parser.add_argument("--devices", metavar="LIST", help=what)
    parser.add_argument("--visible", metavar="N,N", help="the physical GPUs that the program sees, in this order")
    soft = parser.add_mutually_exclusive_group()
    soft.add_argument("--soft", dest="soft", action="store_true", default=None, help="turn soft placement on")
    soft.add_argument("--hard", dest="soft", action="store_false", help="turn soft placement off")
    parser.add_argument("--calls", metavar="N", type=parse_calls, default=10, help="compute N calls of each function "
                        "and signature, or all; later ones return the latest values "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--no-jit", dest="jit", action="store_false", help="ignore jit_compile: show where TensorFlow "
                        "places the ops that XLA would compile")  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=parse_seconds,
                        help=f"end a script after S seconds (default: {_TIMEOUT:g})")  # fmt: skip
    add_kernels(parser)


def add_kernels(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the kernel table: TensorFlow's version, and a file of extra kernels."""
    parser.add_argument("--kernels", metavar="FILE", default="", help="a TOML file with the kernels of custom ops")
    parser.add_argument("--tensorflow", metavar="V", default="", help="use the kernels and rules of this version, such "
                        "as 2.18 (files only; default: the installed one)")  # fmt: skip


def read_settings(options: argparse.Namespace, stage: Stage) -> Settings:
    """Read what `add_target` added."""
    from simplace import api

    return api.settings(
        options.devices,
        options.visible,
        soft_placement=options.soft,
        arguments=options.script_arguments,
        calls=options.calls,
        timeout=read_timeout(options),
        kernels=options.kernels,
        tensorflow=options.tensorflow,
        jit=options.jit,
        stdout=_STDERR if getattr(options, "json", None) == "-" else None,
        stage=stage,
    )


def read_timeout(options: argparse.Namespace) -> float:
    """Return the seconds of `--timeout`, where it was not given the default."""
    return _TIMEOUT if options.timeout is None else float(options.timeout)


def select_program(result: Placements, options: argparse.Namespace) -> Placements:
    """Return the result with the program of `--program` alone where it was given."""
    return result.only(options.program) if options.program else result


def add_gpu(parser: argparse.ArgumentParser) -> None:
    """Add `--gpu`."""
    parser.add_argument("--gpu", metavar="NAME", default="a100", help="the GPU model, such as t4, a100, h100 or "
                        "what the driver calls them; docs/costs.md has the list (default: %(default)s)")  # fmt: skip


def add_cpu(parser: argparse.ArgumentParser) -> None:
    """Add `--cpu`."""
    parser.add_argument("--cpu", metavar="NAME", default="", help="the CPU, such as epyc-7763 or what /proc/cpuinfo "
                        "calls it, '16 cores, 2.9 GHz, 512 bit, 2 fma, 200 GB/s', or a cost file of simplace measure; "
                        "docs/costs.md has the list (default: one of 2 cores)")  # fmt: skip


def add_cores(parser: argparse.ArgumentParser) -> None:
    """Add `--cores`; 0 stands for those of `--cpu`."""
    parser.add_argument("--cores", metavar="N", type=parse_positive, default=0,
                        help="how many threads run at once (default: the cores of --cpu, or of the CPU that a cost "
                        "file was measured on, else 2)")  # fmt: skip


def add_gpu_memory(parser: argparse.ArgumentParser) -> None:
    """Add `--gpu-memory-fraction`, None where it is not given."""
    parser.add_argument("--gpu-memory-fraction", metavar="F", type=float,
                        help="per_process_gpu_memory_fraction, 0 for all but TensorFlow's reserve "
                        "(default: that of the program's sessions, else 0)")  # fmt: skip


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add `--run`."""
    parser.add_argument("--run", metavar="FETCH", help="of a session, the run that fetches this tensor or runs this "
                        "op, or the run of this FILE:LINE (default: the one that needs the most ops)")  # fmt: skip


def add_grappler(parser: argparse.ArgumentParser) -> None:
    """Add --grappler."""
    parser.add_argument("--grappler", action="store_true", help="have TensorFlow's Grappler optimize the graph first, "
                        "for the GPU of --gpu")  # fmt: skip


def add_outcomes(parser: argparse.ArgumentParser) -> None:
    """Add --trips and --branch."""
    parser.add_argument("--trips", metavar="LOOP=N", action="append", default=[], help="iterations of a while loop")
    parser.add_argument("--branch", metavar="NODE=N", action="append", default=[], help="the branch of a condition "
                        "that is taken; of an If, 1 is the then branch")  # fmt: skip


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, int]:
    """Return the numbers by name of an option such as `--trips while=20`; raise `SimplaceError` for another text."""
    pairs = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            pairs[name] = parse_whole(number)
        except argparse.ArgumentTypeError:
            name = ""
        if not name:
            raise SimplaceError(f"cannot read {option} {text!r}; write a name and a whole number, such as while=20")
    return pairs


def one_program(result: Placements, name: str | None) -> Placed:
    """Return the program called `name`, the largest where it is None."""
    return result.program(name) if name else result.largest()


def parse_positive(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or not 1 <= _parse_digits(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0 (at most {_MOST:,})")
    return _parse_digits(text)


def parse_calls(text: str) -> int:
    """Read how many calls of a function are computed; "all" is -1."""
    return -1 if text == "all" else parse_positive(text)


def parse_whole(text: str) -> int:
    """Read a whole number."""
    if not text.removeprefix("-").isdecimal() or abs(_parse_digits(text)) > _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number (at most {_MOST:,})")
    return _parse_digits(text)


def _parse_digits(text: str) -> int:
    """Read digits, the first ten alone: more than ten are too many, whatever they are, and thousands take long."""
    return int(text[:10])


def parse_seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
