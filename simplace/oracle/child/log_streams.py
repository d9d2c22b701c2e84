"""C's standard streams, through which TensorFlow logs, redirected to files.

File descriptors 1 and 2 stay what the user has given: Python, the `std::cout` and `std::cerr` of `tf.print`
(kernels/logging_ops.cc) and other processes write to them, in their order, and the program may replace them. By C's
`stderr` TensorFlow's log is written (absl's and tsl/platform/default/logging.cc), by `stdout` the placer's second copy
of it. Up to version 2.20, TensorFlow keeps the stream that is `stderr` at its first message, so the stream that takes
its place stays, also where the file changes: in a process that is forked.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from simplace.oracle import protocol

_CXX = "libstdc++.so.6"
_INITIALIZE = "_ZNSt8ios_base4InitC1Ev"  # std::ios_base::Init: std::cout writes by the stream that is C's `stdout` then
_LINE_BUFFERED, _UNBUFFERED = 1, 2  # _IOLBF and _IONBF of stdio.h
_ROOM = 64  # bytes, for an object without members
_POINTER = ctypes.c_void_p


_streams: dict[str, ctypes.c_void_p] = {}  # those that are C's `stdout` and `stderr` now, by these names


def redirect_log(directory: Path) -> None:
    """Write into files what TensorFlow logs from now on, at once; show each line that Python prints when it ends."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    _redirect_streams(directory / protocol.OUT, directory / protocol.LOG)


def drop_log() -> None:
    """Discard what TensorFlow logs from now on, until `redirect_log` has it written."""
    _redirect_streams(Path(os.devnull), Path(os.devnull))


def _redirect_streams(out: Path, log: Path) -> None:
    if not _streams:
        ctypes.CDLL(_CXX)[_INITIALIZE](ctypes.create_string_buffer(_ROOM))
    _redirect_stream("stdout", out, _LINE_BUFFERED)
    _redirect_stream("stderr", log, _UNBUFFERED)


def _redirect_stream(name: str, path: Path, buffering: int) -> None:
    library = ctypes.CDLL(None)
    library.fopen.restype = library.freopen.restype = _POINTER
    known, mode = _streams.get(name), b"ae"
    opened = library.freopen(os.fsencode(path), mode, known) if known else library.fopen(os.fsencode(path), mode)
    if not opened:
        raise OSError(f"{path} cannot be opened")
    stream = _streams[name] = _POINTER(opened)
    library.setvbuf(stream, None, buffering, 0)
    _POINTER.in_dll(library, name).value = stream.value
