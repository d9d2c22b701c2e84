"""What subcommands write: files checked before anything runs, the width of the terminal, the line of an error."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from simplace.commands.streams import draws
from simplace.errors import DrawingError, SimplaceError

FIGURES = (".svg", ".png", ".pdf", ".dot")
_READ = ("target", "other", "devices", "versus_devices", "kernels", "costs", "log")  # options that may name a file
_WRITTEN = ("output", "file", "json", "trace", "junit", "sarif")
_OF_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb", "variables", "assets")


def complain(error: SimplaceError) -> int:
    """Print the details, then the one line, on stderr; return the exit status."""
    sys.stdout.flush()
    if error.details:
        print(error.details.rstrip(), file=sys.stderr)
    print(f"simplace: {error}", file=sys.stderr)
    return 2


def check_distinct(options: argparse.Namespace) -> None:
    """Refuse, before anything runs, to write over what is read, or two outputs into one file."""
    read = [name for each in _READ if (name := getattr(options, each, None))]
    sources = [path.resolve() for name in read for path in (Path(name), Path(name.rpartition(":")[0])) if path.name]
    taken: set[Path] = set()
    for name in (name for each in _WRITTEN if (name := getattr(options, each, None))):
        path = Path(name).resolve()
        if any(_is_of(path, source) for source in sources):
            raise DrawingError(f"{name}: is read by this command and would be lost; name another file to write")
        if path in taken:
            raise DrawingError(f"{name}: is to be written twice; name a file for each")
        taken.add(path)


def _is_of(path: Path, source: Path) -> bool:
    """Say whether a file is the source, or a part of the source that is a SavedModel."""
    if path.exists() and source.exists() and path.samefile(source):
        return not source.is_dir()  # a folder is written into
    parts = path.relative_to(source).parts if path.is_relative_to(source) else ()
    return path.exists() and parts[:1] != () and parts[0] in _OF_SAVED_MODELS


def check_figure(name: str | None) -> None:
    """Refuse, before anything runs, a figure that could not be written in the end."""
    if not name:
        return
    if Path(name).suffix.lower() not in FIGURES:
        raise DrawingError(f"{name}: a figure's name ends in {', '.join(FIGURES)}")
    check_writable(name)


def check_writable(name: str | None) -> None:
    """Refuse, before anything runs, a file that could not be written in the end; "-" is standard output."""
    if not name or name == "-":
        return
    path = Path(name)
    if path.is_dir():
        raise DrawingError(f"{name}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DrawingError(f"{name}: cannot write there, because there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DrawingError(f"{name}: cannot write there: permission denied")


def write_json(name: str, content: Any) -> None:
    """Write a JSON file; "-" is standard output."""
    is_ascii = name == "-" and not draws(sys.stdout)
    text = json.dumps(content, indent=1, ensure_ascii=is_ascii) + "\n"
    if name == "-":
        sys.stdout.write(text)
    else:
        write(name, text.encode())


def write(name: str | Path, data: bytes) -> None:
    """Write a file, or say in one line why not."""
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise DrawingError(f"{name}: cannot write: {error.strerror}") from None


def width(stream: TextIO) -> int | None:
    """Return the columns of the terminal that `stream` is; None for a file or a pipe."""
    import shutil

    return shutil.get_terminal_size().columns if stream.isatty() else None
