"""File descriptors 1 and 2 that the program replaces by `os.dup2`, as it does to be quiet or to keep what is printed.

TensorFlow's log still goes where simplace reads it. Python prints into the program's file at once; what native code
prints, and a shell command, comes there when the descriptor is put back, and at the program's end.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from simplace.oracle import protocol
from simplace.oracle.child.patches import patch_method
from simplace.oracle.native_output import AWAY, BACK, drop_log

_SCRATCH = "replaced.txt"  # what native code prints to file descriptor 1 while it is replaced


class _Stream:
    """A native file descriptor that goes to a file of simplace's, and Python's stream of that name."""

    def __init__(self, native: int, python: int, held: Path, *, is_log: bool) -> None:
        self.native = native
        self.python = python
        self._is_log = is_log
        self._own = os.dup(native)  # simplace's file
        self._real = os.dup(python)  # what the user has given
        self._held = os.open(held, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._target: int | None = None
        self._start = 0

    def is_same(self, descriptor: int) -> bool:
        """Return whether a file descriptor is that of simplace's file, or of the user's."""
        return any(os.path.sameopenfile(descriptor, each) for each in (self._own, self._real))

    def replace(self, descriptor: int, put: Any) -> None:
        """Redirect Python's stream, and in the end native code's, to this file descriptor."""
        self.put_back(put)
        self._target = os.dup(descriptor)
        self._start = os.fstat(self._held).st_size
        put(self._target, self.python)
        if self._is_log:
            os.write(self._held, f"{AWAY}\n".encode())
        else:
            put(self._held, self.native)

    def put_back(self, put: Any) -> None:
        """Restore both streams; hand over what native code has printed meanwhile."""
        if self._target is None:
            return
        ctypes.CDLL(None).fflush(None)
        target, self._target = self._target, None
        with suppress(OSError):  # its reader has gone: native code would not be told either
            os.write(target, self._read())
        os.close(target)
        put(self._real, self.python)
        if self._is_log:
            os.write(self._held, f"{BACK}\n".encode())
        else:
            put(self._own, self.native)

    def duplicate_real(self) -> int:
        """Return a new file descriptor of what the user has given."""
        return os.dup(self._real)

    def _read(self) -> bytes:
        return drop_log(os.pread(self._held, os.fstat(self._held).st_size - self._start, self._start))


class ReplacedStreams:
    """Both streams, from when they are watched."""

    def __init__(self, directory: Path) -> None:
        out, log = directory / _SCRATCH, directory / protocol.LOG
        self._streams = (
            _Stream(1, sys.stdout.fileno(), out, is_log=False),
            _Stream(2, sys.stderr.fileno(), log, is_log=True),
        )
        self._process = os.getpid()
        self._put: Any = os.dup2

    def watch(self) -> None:
        """Observe the program from now on."""
        patch_method(os, "dup2", self._follow)

    def put_back(self) -> None:
        """Write what is left, at the program's end."""
        for stream in self._streams:
            stream.put_back(self._put)

    def _follow(self, put: Any) -> Any:
        self._put = put

        @functools.wraps(put)
        def follow(fd: int, fd2: int, inheritable: bool = True) -> int:
            stream = next((each for each in self._streams if fd2 in (each.native, each.python)), None)
            if stream is None or os.getpid() != self._process:
                return int(put(fd, fd2, inheritable))
            if stream.is_same(fd):
                stream.put_back(put)
            elif (other := next((each for each in self._streams if each.is_same(fd)), None)) is not None:
                real = other.duplicate_real()
                stream.replace(real, put)
                os.close(real)
            else:
                stream.replace(fd, put)
            return fd2

        return follow
