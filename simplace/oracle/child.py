"""The child process: run one target under TensorFlow on an emulated machine, and write down what happens."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path

from simplace.oracle import messages
from simplace.oracle.orphan import end_with_parent


def main(request_file: str) -> None:
    """Answer the request in `request_file`."""
    end_with_parent()
    request = messages.request_from_json(Path(request_file).read_text(encoding="utf-8"))
    _redirect(Path(request.directory))
    from simplace.oracle.inside import run  # TensorFlow prints while it is imported: only after the redirection

    was_stopped = run.run(request)
    if not was_stopped:
        threading._shutdown()  # type: ignore[attr-defined]  # the program's own threads go on after its last line
    _leave_at_once()


def _leave_at_once() -> None:
    """End the process although threads may still run, without taking TensorFlow down, which costs a second."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _redirect(directory: Path) -> None:
    """Send what TensorFlow prints to a file, and what the program prints to where it would have gone."""
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1, encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    log = os.open(directory / messages.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    out = os.open(directory / messages.OUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)  # it gets a second copy of the placement log
    os.dup2(log, 2)


if __name__ == "__main__":
    main(sys.argv[1])
