"""Output of the subcommands: checks before anything runs, the terminal's width, files, the line of an error."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from simplace.commands import terminal
from simplace.commands.streams import can_draw_tables
from simplace.errors import DrawingError, SimplaceError, UnreadableError

FIGURES = (".svg", ".png", ".pdf", ".dot")
_READ = ("target", "other", "devices", "versus_devices", "kernels", "costs", "log")  # options that may name a file
_WRITTEN = ("output", "file", "json", "trace", "junit", "sarif")
_OF_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb", "variables", "assets")


def print_text(text: str, out: TextIO | None = None, *, is_patch: bool = False) -> None:
    """Print text, to standard output or to `out`; every line that simplace itself prints is printed here.

    The lines of a patch are not wrapped, and have no colour, so that it can be taken from the terminal. Control
    characters are shown, not sent to the terminal: names, devices and messages come from untrusted files.
    """
    from viz.names import visible_lines

    stream, shown = out or sys.stdout, visible_lines(text)
    if not is_patch and (width := terminal.find_width(stream)):
        shown = terminal.wrap_lines(shown, width)
    try:
        if not is_patch and terminal.takes_colour(stream):
            terminal.print_coloured(shown, stream)
        else:
            print(shown, file=stream)
    except OSError:
        if out is not sys.stderr:  # an error on stderr cannot be reported anywhere
            raise


def say_error(line: str) -> None:
    """Print the one line of an error on stderr, with control characters made visible."""
    from viz.names import visible

    print_text(f"simplace: {visible(line)}", sys.stderr)


def report_error(error: SimplaceError) -> int:
    """Print the details, then the one line, on stderr; return the exit status."""
    sys.stdout.flush()
    if error.details:
        print_text(error.details.rstrip(), sys.stderr)
    say_error(shorten_text(str(error)))
    return error.status


def add_force(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option that allows replacing files."""
    parser.add_argument("--force", action="store_true", help="replace files, also those that simplace did not write")


def shorten_text(line: str, most: int = 2000) -> str:
    """Return a text with its middle left out where it is too long to read.

    >>> shorten_text("a" * 5 + "b" * 20 + "c" * 5, most=10)
    'aaaaa ... ccccc'
    """
    return line if len(line) <= most else f"{line[: most // 2]} ... {line[-(most // 2) :]}"


def check_distinct(options: argparse.Namespace) -> None:
    """Raise an error, before anything runs, for outputs that would replace an input, a foreign file or each other."""
    from simplace.views.file_mark import check_replaceable

    read = [name for each in _READ if (name := getattr(options, each, None))]
    sources = [Path(os.path.realpath(path)) for name in read for path in (name, name.rpartition(":")[0]) if path]
    taken: set[Path] = set()
    for name in (name for each in _WRITTEN if (name := getattr(options, each, None))):
        path = Path(os.path.realpath(name))
        if any(_is_of(path, source) for source in sources):
            raise DrawingError(f"{name}: is read by this command and would be lost; name another file to write")
        if path in taken:
            raise DrawingError(f"{name}: would be written twice; name a file for each")
        check_replaceable(name, options.force)
        taken.add(path)


def _is_of(path: Path, source: Path) -> bool:
    """Return whether a file is the source, or a part of the source that is a SavedModel."""
    is_there = os.path.exists(path)
    if is_there and os.path.exists(source) and path.samefile(source):
        return not source.is_dir()  # a folder is written into
    parts = path.relative_to(source).parts if path.is_relative_to(source) else ()
    return is_there and parts[:1] != () and parts[0] in _OF_SAVED_MODELS


def check_figure(name: str | None) -> None:
    """Raise an error, before anything runs, for a figure that could not be written."""
    if not name:
        return
    if Path(name).suffix.lower() not in FIGURES:
        raise DrawingError(f"{name}: a figure's name ends in {', '.join(FIGURES)}")
    check_writable(name)


def check_writable(name: str | None) -> None:
    """Raise an error, before anything runs, for a file that could not be written; "-" is standard output."""
    if not name or name == "-":
        return
    from simplace.input_file import check_name

    try:
        check_name(name)
    except UnreadableError as error:
        raise DrawingError(f"{name}: cannot write there: {error}") from None
    path = Path(name)
    if os.path.isdir(path):
        raise DrawingError(f"{name}: is a directory; name a file")
    if not os.path.isdir(path.parent):
        raise DrawingError(f"{name}: cannot write there, because there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DrawingError(f"{name}: cannot write there: permission denied")


def write_json(name: str, content: Any, overwrite: bool) -> None:
    """Write a JSON file; "-" is standard output."""
    from simplace.exports.steering import escape_json

    is_ascii = name == "-" and not can_draw_tables(sys.stdout)
    text = escape_json(json.dumps(content, indent=1, ensure_ascii=is_ascii)) + "\n"
    if name == "-":
        sys.stdout.write(text)
    else:
        write_output_file(name, text.encode(), overwrite)


def write_output_file(name: str | Path, data: bytes, overwrite: bool) -> None:
    """Write a file; raise a one-line error where that fails. `overwrite` is `--force`."""
    from simplace.views.file_mark import write_file

    write_file(name, data, overwrite)
