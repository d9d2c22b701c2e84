"""The standard streams and signals of the process: closed, full, in a limited encoding, terminated early."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from simplace.errors import SimplaceError

_DRAWN = "─→…×·↵⇥"  # what tables and sentences are drawn with
_PLAIN = str.maketrans(_DRAWN, "->.x.//")  # each as wide as what it stands for
_HANDLER = "simplace.plain"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def usable_streams() -> Iterator[None]:
    """Make standard streams writable, and run every `finally` when a signal ends the process.

    A stream whose encoding lacks a character gets a plain one, or the character's number.
    """
    _open_closed()
    codecs.register_error(_HANDLER, _replace_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not can_draw_tables(stream):
            stream.reconfigure(errors=_HANDLER)
    with _tidy_ends():
        yield


def can_draw_tables(stream: TextIO) -> bool:
    """Return whether a stream's encoding has the characters that tables are drawn with."""
    try:
        _DRAWN.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def flush_stdout() -> None:
    """Flush stdout; a failure can be reported here, but not at the interpreter's exit."""
    sys.stdout.flush()


def no_room(error: OSError) -> SimplaceError | None:
    """Return the message for a failed write to standard output; None for any other error."""
    if error.filename is not None or error.errno not in _NO_ROOM:
        return None
    return SimplaceError(f"standard output: cannot write: {error.strerror}; send it somewhere with room")


def discard_stdout() -> None:
    """Redirect standard output to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed() -> None:
    """Open the null device for each closed standard stream, before another file takes its descriptor."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
        setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "backslashreplace").decode(), error.end


@contextlib.contextmanager
def _tidy_ends() -> Iterator[None]:
    """Make SIGTERM and SIGHUP unwind the stack, which removes temporary folders and ends the child process."""
    signals = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    ours = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in ours:
        signal.signal(number, _exit_on_signal)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit_on_signal(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
