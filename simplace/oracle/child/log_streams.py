"""C's standard streams, through which TensorFlow logs, redirected to files.

File descriptors 1 and 2 stay what the user has given: Python, the `std::cout` and `std::cerr` of `tf.print`
(kernels/logging_ops.cc) and other processes write to them, in their order, and the program may replace them. By C's
`stderr` TensorFlow's log is written (absl's and tsl/platform/default/logging.cc), by `stdout` the placer's second copy
of it.
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


def redirect_log(directory: Path) -> None:
    """Write into files what TensorFlow logs from now on, at once; show each line that Python prints when it ends."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    ctypes.CDLL(_CXX)[_INITIALIZE](ctypes.create_string_buffer(_ROOM))
    _replace_stream("stdout", directory / protocol.OUT, _LINE_BUFFERED)
    _replace_stream("stderr", directory / protocol.LOG, _UNBUFFERED)


def _replace_stream(name: str, path: Path, buffering: int) -> None:
    library = ctypes.CDLL(None)
    library.fopen.restype = _POINTER
    stream = _POINTER(library.fopen(os.fsencode(path), b"ae"))
    if not stream:
        raise OSError(f"{path} cannot be opened")
    library.setvbuf(stream, None, buffering, 0)
    _POINTER.in_dll(library, name).value = stream.value
