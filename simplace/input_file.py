"""Read a file that anybody may have written, within limits of size and nesting.

Every file that a command reads comes through here. A named pipe, a device, a folder, a file that is too large or
nested too deep, a damaged, encrypted or exploding archive is an `UnreadableError`; text that is no JSON or TOML is a
`MalformedError`. Both messages leave the file's name to the caller.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from simplace.errors import MalformedError, UnreadableError

MIB = 1 << 20
LARGEST_MESSAGE = 2047 * MIB  # protobuf's own limit
LARGEST_MODEL_TEXT = 32 * MIB
LARGEST_LOG = 256 * MIB
LARGEST_JSON = 12 * MIB  # whose lists and tables take twenty times as much memory, and seconds
LARGEST_TOML = MIB // 4
DEEPEST = 100  # levels of nesting, as many as protobuf allows
_LARGEST_PIECE = 4 * MIB  # of a zip archive, its directory with all names included
_LONGEST_PATH, _LONGEST_NAME = 4095, 255  # bytes, on Linux
_MOST_DOTS = 256  # in a line of TOML, where a dotted key takes a time that is the square of its parts
_MOST_BITS = 64
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


def read_bytes(path: str | Path, most: int = LARGEST_MESSAGE) -> bytes:
    """Return what a regular file of at most `most` bytes holds; raise `UnreadableError` for anything else."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnreadableError(f"it has {size:,} bytes, and at most {most:,} are read")
        data = file.read(size + 1)  # one more, for a file that grows meanwhile
    if len(data) > most:
        raise UnreadableError(f"it has more than {most:,} bytes, which is the most that is read")
    return data


def open_file(path: str | Path) -> io.BufferedReader:
    """Open a regular file to read; raise `UnreadableError` for anything else, without waiting for a pipe's writer."""
    check_name(str(path))
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    kind = stat.S_IFMT(os.fstat(number).st_mode)
    if kind != stat.S_IFREG:
        os.close(number)
        raise UnreadableError(f"it is {_KINDS.get(kind, 'not a regular file')}; give a file")
    return os.fdopen(number, "rb")


_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
}


def check_name(text: str) -> None:
    """Raise `UnreadableError` for what no file can be called."""
    if "\0" in text:
        raise UnreadableError("the name contains a NUL character, which no file can have")
    encoded = os.fsencode(text)
    if len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME:
        raise UnreadableError(
            f"the name is too long; a file name has at most {_LONGEST_NAME} bytes between two slashes"
        )


def read_text(path: str | Path, most: int) -> str:
    """Return the text of a file in UTF-8."""
    try:
        return read_bytes(path, most).decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"not text in UTF-8: {error}") from error


def read_json(path: str | Path, most: int = LARGEST_JSON) -> Any:
    """Return the value that a JSON file holds."""
    return parse_json(read_bytes(path, most))


def parse_json(data: bytes) -> Any:
    """Return the value of JSON, at most `DEEPEST` levels deep.

    >>> parse_json(b"[1" + b"]")
    [1]
    >>> parse_json(b"[" * 200 + b"]" * 200)
    Traceback (most recent call last):
    simplace.errors.UnreadableError: it is nested more than 100 levels deep
    """
    return _parse_values(json.loads, data)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the tables that a TOML file holds, at most `DEEPEST` levels deep."""
    import tomllib  # few commands read any

    text = read_text(path, LARGEST_TOML)
    if max((line.count(".") for line in text.splitlines()), default=0) > _MOST_DOTS:
        raise UnreadableError(f"there are more than {_MOST_DOTS} dots in a line")
    values: dict[str, Any] = _parse_values(tomllib.loads, text)
    return values


def read_members(path: str | Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """Return members of a zip archive by name, each of at most so many bytes; a member that is not there is left out.

    Raise `MalformedError` for a file that is no zip archive.
    """
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(_Bounded(file)) as archive:
                there = {info.filename: info for info in archive.infolist()}
                return {
                    name: _read_member(archive, there[name], most) for name, most in limits.items() if name in there
                }
        except zipfile.BadZipFile as error:
            raise MalformedError(str(error)) from error
        except (zlib.error, struct.error, EOFError, NotImplementedError, OSError, ValueError) as error:
            raise UnreadableError(f"the archive is damaged: {error}") from error


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.flag_bits & _ENCRYPTED:
        raise UnreadableError(f"{info.filename} in it is encrypted")
    if info.compress_type not in _COMPRESSIONS:
        raise UnreadableError(f"{info.filename} in it is compressed in a way that is not read (number "
                              f"{info.compress_type}); write it with deflate")  # fmt: skip
    if info.file_size > most:
        raise UnreadableError(f"{info.filename} in it has {info.file_size:,} bytes, and at most {most:,} are read")
    with archive.open(info) as member:
        return member.read(most + 1)


class _Bounded:
    """Reader of a file in pieces for `zipfile`, which takes the size of an archive's directory from the archive."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes; a directory that comes out short is refused as truncated."""
        return self._file.read(_LARGEST_PIECE if size < 0 else min(size, _LARGEST_PIECE))


def _parse_values(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        values = parse(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # a number of thousands of digits, too
        raise MalformedError(str(error)) from error
    _check_values(values)
    return values


def _check_values(value: Any) -> None:
    """Raise `UnreadableError` for nesting beyond `DEEPEST` and for numbers that take more than 64 bits."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(each, int) and each.bit_length() > _MOST_BITS for each in level):
            raise UnreadableError(f"there is a number in it of more than {_MOST_BITS} bits")
        level = [item for each in level for item in _list_items(each)]
        if not level:
            return
    raise _too_deep()


def _list_items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> UnreadableError:
    return UnreadableError(f"it is nested more than {DEEPEST} levels deep")
