"""End a child process, with all that it started, when the process that wants its answer is gone."""

from __future__ import annotations

import os
import signal
import threading

_INTERVAL = 1.0  # seconds between two looks


def end_with_parent() -> None:
    """Watch the parent from a thread; kill this process group when it ends, even by a signal it could not catch.

    The process must lead a group of its own.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_INTERVAL)  # not time.sleep, which the program may replace
    os.killpg(0, signal.SIGKILL)
