"""End child processes, with all that they started, when their parent has ended.

Run as a script, with a process and a command, it runs the command until that process ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

_INTERVAL = 1.0  # seconds between two looks


def end_with_parent(parent: int | None = None) -> None:
    """Watch the parent from a thread; kill this process group when it ends, even by a signal it could not catch.

    The process must lead a group of its own. `parent` is the process that started it, where it may have ended since.
    """
    threading.Thread(target=_watch_parent, args=(parent or os.getppid(),), daemon=True).start()


def run_with_parent(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run any program; it ends, with all that it started, when this process ends."""
    return run_group([sys.executable, "-I", __file__, str(os.getpid()), *command], environment)


def run_group(
    command: Sequence[str], environment: Mapping[str, str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own, and end the whole group if waiting for it is interrupted.

    Raise `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = subprocess.Popen(command, **pipes, env=environment, text=True, errors="replace", start_new_session=True)  # type: ignore[call-overload]
    with started:
        try:
            out, err = started.communicate(timeout=timeout)
        except BaseException:
            end_group(started.pid)
            raise
    return subprocess.CompletedProcess(command, started.returncode, out, err)


def end_group(leader: int) -> None:
    """Kill a process group, or what is left of it."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _watch_parent(parent: int) -> None:
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_INTERVAL)  # not time.sleep, which the program may replace
    os.killpg(0, signal.SIGKILL)


def _main(parent: str, *command: str) -> int:
    end_with_parent(int(parent))
    status = subprocess.run(command, check=False).returncode
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
