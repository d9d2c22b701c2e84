"""The child process: run one target under TensorFlow on an emulated machine, and write events."""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from simplace.oracle import protocol
from simplace.oracle.child.confine import confine_writing
from simplace.oracle.child.log_streams import redirect_log
from simplace.oracle.child.recorder import leaving_without_room
from simplace.oracle.orphan import end_with_parent


def main(request_file: str, parent: int | None = None) -> None:
    """Answer the request in `request_file` of a parent, by default of the present one."""
    end_with_parent(parent)
    request = protocol.request_from_json(Path(request_file).read_text(encoding="utf-8"))
    redirect_log(Path(request.directory))
    if request.mode != "script":
        os.environ["TMPDIR"] = request.directory
        confine_writing([Path(request.directory)])  # before TensorFlow starts threads
    try:
        from simplace.oracle.child import run_target  # TensorFlow prints while it is imported: after the redirection

        status = run_target.run_request(request)
    except BaseException as error:
        _record_failure(error, Path(request.directory))
        status = 1
    _leave_at_once(status)


def _record_failure(error: BaseException, directory: Path) -> None:
    """Write an unexpected error into the answer: it is an internal failure, not the program's."""
    whole = traceback.format_exception(error)
    failure = {"kind": "failure", "how": "internal", "text": "".join(whole), "line": whole[-1].strip()}
    with leaving_without_room(), (directory / protocol.EVENTS).open("a", encoding="utf-8") as events:
        events.write(json.dumps(failure) + "\n")


def _leave_at_once(status: int) -> None:
    """End the process although threads may still run, without TensorFlow's shutdown, which takes a second."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a reader that has gone, a stream that the program has closed
            stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1])
