"""The command line: parse, call, write, exit status.

Exit status 0: done; 1: a check found differences; 2: something the user can mend, said in one line on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from simplace import cli_schedule
from simplace._version import __version__
from simplace.errors import DrawingError, SimplaceError
from simplace.progress import Stage, progress

if TYPE_CHECKING:
    from simplace.result import Result
    from simplace.targets import Settings

_STDERR = 2  # the file descriptor
_FIGURES = (".svg", ".png", ".pdf", ".dot")

_EXAMPLES = """\
examples:
  simplace show model.py                                what runs where, and does TensorFlow agree
  simplace show model.py --devices cpu:1,gpu:2 -o f.svg the same for two GPUs, with a figure
  simplace show model.py:train_step -- --epochs 1       one function of a script, with the script's own arguments
  simplace explain model.py dense/MatMul                why one node is where it is
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
        return _complain(error)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("simplace: interrupted", file=sys.stderr)
        return 130


def _complain(error: SimplaceError) -> int:
    """Print the details, then the one line, on stderr."""
    sys.stdout.flush()
    if error.details:
        print(error.details.rstrip(), file=sys.stderr)
    print(f"simplace: {error}", file=sys.stderr)
    return 2


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
    show = commands.add_parser("show", help="summarise where everything runs; write tables, figures, JSON")
    _add_target(show)
    show.add_argument("--table", action="store_true", help="list every node and every copy")
    show.add_argument("--json", metavar="FILE", help='write everything as JSON; "-" is standard output')
    show.add_argument("-o", "--output", metavar="FIGURE", help=f"draw the device graph: {', '.join(_FIGURES)}")
    show.add_argument("--program", metavar="NAME", help="show and draw this program only")
    show.add_argument("--nodes", metavar="N", type=_positive, default=40, help="boxes a figure may have before name "
                      "scopes collapse (default: %(default)s)")  # fmt: skip
    show.set_defaults(command=_show)
    explain = commands.add_parser("explain", help="say why a node is on its device, step by step")
    _add_target(explain)
    explain.add_argument("node", metavar="NODE", help="a node's name, or the end of it where that is unique")
    explain.add_argument("--program", metavar="NAME", help="look in this program only")
    explain.set_defaults(command=_explain)
    check = commands.add_parser("check", help="compare with TensorFlow's own placement; status 1 if they differ")
    _add_target(check)
    check.add_argument("--log", metavar="FILE", help="compare with this placement log, of any TensorFlow, instead")
    check.set_defaults(command=_check)
    kernels = commands.add_parser("kernels", help="list the device types and data types an op has kernels for")
    kernels.add_argument("op", metavar="OP", help="an op's name, such as MatMul")
    kernels.add_argument("--dtype", metavar="D", help="only kernels that take this data type, such as int32")
    kernels.add_argument("--kernels", metavar="FILE", default="", help="a TOML file with the kernels of custom ops")
    kernels.set_defaults(command=_kernels)
    cli_schedule.add(commands, _add_target, _settings)
    return parser


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="TARGET", help="model.py, model.py:function, a SavedModel directory, .pb, .pbtxt or .keras; "
        "a script's own arguments follow after --"
    )  # fmt: skip
    parser.add_argument("--devices", metavar="LIST", help="such as cpu:1,gpu:2, or a TOML file of a machine")
    parser.add_argument("--visible", metavar="N,N", help="the physical GPUs that the program sees, in this order")
    soft = parser.add_mutually_exclusive_group()
    soft.add_argument("--soft", dest="soft", action="store_true", default=None, help="turn soft placement on")
    soft.add_argument("--hard", dest="soft", action="store_false", help="turn soft placement off")
    parser.add_argument("--max-calls", metavar="N", type=_positive, default=10, help="stop a script once one function "
                        "was called N times and nothing new was placed (default: %(default)s)")  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=_seconds, default=300.0,
                        help="end a script after S seconds (default: %(default)g)")  # fmt: skip
    parser.add_argument("--kernels", metavar="FILE", default="", help="a TOML file with the kernels of custom ops")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _show(options: argparse.Namespace) -> int:
    from simplace.targets import place

    _check_outputs(options)
    with progress() as stage:
        result = _named(place(options.target, _settings(options, stage)), options)
    _print_report(result, options)
    if options.output:
        _draw(result, options)
    return _complain(result.failure) if result.failure else 0


def _print_report(result: Result, options: argparse.Namespace) -> None:
    from simplace.views import summary, tables
    from viz import to_text

    out: TextIO = sys.stderr if options.json == "-" else sys.stdout
    width = _width(out)
    print(summary.summary(result, width, None if options.table else summary.COPIES), file=out)
    if options.table:
        for placed in result.programs:
            print(f"\n{summary.title(placed)}\n\n{to_text(tables.node_table(placed), width)}", file=out)
    if options.json:
        _write_json(result, options.json)
    print(f"\n{summary.agreement_line(result)}", file=out)


def _explain(options: argparse.Namespace) -> int:
    from simplace.targets import place

    with progress() as stage:
        result = _named(place(options.target, _settings(options, stage)), options)
    print(result.explain(options.node))
    return 0


def _check(options: argparse.Namespace) -> int:
    from simplace.targets import check, compare_with_log, place
    from simplace.views import summary, tables
    from viz import to_text

    log = _read_log(options.log) if options.log else None
    with progress() as stage:
        settings = _settings(options, stage)
        result = (
            check(options.target, settings) if log is None else compare_with_log(place(options.target, settings), log)
        )
    for placed in result.programs:
        if placed.agreement is not None and placed.agreement.differences:
            print(f"{placed.name}\n{to_text(tables.difference_table(placed), _width(sys.stdout))}\n")
    print(summary.agreement_line(result, f"the log {options.log}" if options.log else ""))
    if result.failure:
        return _complain(result.failure)
    return 0 if result.agrees else 1


def _kernels(options: argparse.Namespace) -> int:
    from simplace.graph import dtypes
    from simplace.kernels.extra import load_extra
    from simplace.kernels.summary import kernel_rows
    from simplace.kernels.table import KernelTable
    from simplace.views.kernel_table import kernel_table, lacking_notes
    from viz import to_text

    table = KernelTable.shipped()
    if options.kernels:
        table = table.with_extra(load_extra(Path(options.kernels)))
    try:
        dtype = dtypes.parse(options.dtype) if options.dtype else None
    except ValueError as error:
        raise SimplaceError(f"{error}; one is float32, int64 or string") from None
    rows = kernel_rows(table, options.op, dtype)
    notes = () if dtype is None else lacking_notes(table, options.op, dtype)
    print(to_text(kernel_table(options.op, rows, table.name, notes), _width(sys.stdout)))
    return 0


def _settings(options: argparse.Namespace, stage: Stage) -> Settings:
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
        stdout=_STDERR if getattr(options, "json", None) == "-" else None,
        stage=stage,
    )


def _named(result: Result, options: argparse.Namespace) -> Result:
    result = result.with_devices_note(options.devices_note)
    return result.only(options.program) if options.program else result


def _read_log(name: str):  # type: ignore[no-untyped-def]
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


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse, before anything runs, what could not be written in the end."""
    if options.output:
        if Path(options.output).suffix.lower() not in _FIGURES:
            raise DrawingError(f"{options.output}: a figure's name ends in {', '.join(_FIGURES)}")
        _check_writable(options.output)
    if options.json and options.json != "-":
        _check_writable(options.json)


def _check_writable(name: str) -> None:
    path = Path(name)
    if path.is_dir():
        raise DrawingError(f"{name}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DrawingError(f"{name}: cannot write there, because there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DrawingError(f"{name}: cannot write there: permission denied")


def _write_json(result: Result, name: str) -> None:
    from simplace.exports.json_report import report

    text = json.dumps(report(result), indent=1, ensure_ascii=False) + "\n"
    if name == "-":
        sys.stdout.write(text)
    else:
        _write(Path(name), text.encode())


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise DrawingError(f"{path}: cannot write: {error.strerror}") from None


def _draw(result: Result, options: argparse.Namespace) -> None:
    from simplace.views.placement_figure import placement_figure
    from viz import LayoutError, draw, to_dot

    drawn = max(result.programs, key=lambda placed: len(placed.placement.decisions))
    figure = placement_figure(drawn, options.nodes)
    path = Path(options.output)
    kind = path.suffix.lower()[1:]
    try:
        with progress() as stage:
            stage(f"drawing {path}")
            data = to_dot(figure).encode() if kind == "dot" else draw(figure, kind)  # type: ignore[arg-type]
    except LayoutError as error:
        raise DrawingError(f"{path}: {error}") from None
    _write(path, data)
    others = f", the largest of {len(result.programs)} programs" if len(result.programs) > 1 else ""
    print(f"drew {drawn.name}{others}: {path}", file=sys.stderr)


def _width(stream: TextIO) -> int | None:
    import shutil

    return shutil.get_terminal_size().columns if stream.isatty() else None
