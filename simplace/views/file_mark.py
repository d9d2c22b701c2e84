"""The mark by which simplace knows a file that it wrote: a comment, or a field, wherever a format has room for one."""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import time
import zlib
from pathlib import Path

from simplace.errors import DrawingError

_MARK = b"made by simplace"
_XML = b"<!-- " + _MARK + b" -->\n"
# What is put after the end of a file, by how it begins.
_LAST = {b"<?xml": _XML, b"<!doctype html": _XML, b"digraph": b"// " + _MARK + b"\n"}
# What other formats hold anyway: schemas of our own, a tool's name, a label, an attribute of nodes.
_HELD = rb'"simplace/\w+/\d+"|"name": ?"simplace"|(?:placed|made|device) by simplace"|_simplace_because'
_OWN = re.compile(re.escape(_MARK) + b"|" + _HELD)
_PATIENCE = 3.0  # seconds
_LOOKED_AT = 1 << 16  # bytes, at either end
_PNG_END = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))


def add_mark(data: bytes) -> bytes:
    """Return what to write for the content of a file, so that the file is known again.

    >>> add_mark(b"<?xml version='1.0'?><svg/>")
    b"<?xml version='1.0'?><svg/><!-- made by simplace -->\\n"
    """
    if data.endswith(_PNG_END):
        return data.removesuffix(_PNG_END) + _png_chunk(b"tEXt", b"Software\0" + _MARK) + _PNG_END
    if data.startswith(b"%PDF"):
        before, last, number = data.rpartition(b"startxref")  # what comes before it is found by its place
        return before + b"% " + _MARK + b"\n" + last + number
    return data + next((last for first, last in _LAST.items() if data.startswith(first)), b"")


def check_replaceable(name: str | Path, overwrite: bool) -> None:
    """Raise `DrawingError` where writing a file would lose what somebody else wrote, unless it is to be lost."""
    path = Path(os.path.realpath(name))
    if not (overwrite or os.path.isdir(path) or is_own(path)):
        raise DrawingError(
            f"{name}: exists, and simplace did not write it; name another file, or overwrite it "
            "(--force; in Python, overwrite=True)"
        )


def write_file(name: str | Path, data: bytes, overwrite: bool = False) -> None:
    """Write a file with its mark; raise `DrawingError` if that fails, with no partial file left."""
    check_replaceable(name, overwrite)
    path, is_new = Path(name), not os.path.lexists(name)
    try:
        if path.is_fifo():
            _write_to_pipe(path, add_mark(data))
        else:
            path.write_bytes(add_mark(data))
    except OSError as error:
        if is_new:
            path.unlink(missing_ok=True)
        raise DrawingError(f"{name}: cannot write: {error.strerror}") from None


def is_own(path: Path) -> bool:
    """Return whether writing to a path loses nothing but what simplace wrote; a pipe or device contains nothing."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not found.st_size:
                return True
            head = file.read(_LOOKED_AT)
            file.seek(max(0, found.st_size - _LOOKED_AT))
            return _OWN.search(head) is not None or _OWN.search(file.read()) is not None
    except OSError:
        return not os.path.lexists(path)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe would wait for its writer


def _write_to_pipe(path: Path, data: bytes) -> None:
    """Write to a named pipe once somebody reads it, for which three seconds are enough."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > last:
                raise OSError(errno.ENXIO, "it is a named pipe that nobody reads") from None
        time.sleep(0.05)
    os.set_blocking(number, True)
    with os.fdopen(number, "wb") as file:
        file.write(data)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
