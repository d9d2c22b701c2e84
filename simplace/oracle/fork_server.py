"""The process that children are forked from: import TensorFlow once, then fork a child for each request."""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
from pathlib import Path

from simplace.oracle import protocol
from simplace.oracle.child import process
from simplace.oracle.child.log_streams import drop_log
from simplace.oracle.orphan import end_with_parent


def main(number: str, parent: int) -> None:
    """Serve the requests that come over the socket with this file descriptor until it is closed.

    A request is a JSON object with "request", the path of a request file, "environment", variables to set, and
    "directory", the one to work in; it comes with file descriptors for the child's standard output and standard error.
    The answer is the child's pid, then its exit status.
    """
    end_with_parent(parent)
    _import_tensorflow()
    request_file = _serve_requests(socket.socket(fileno=int(number)))
    if request_file is None:
        os._exit(0)  # TensorFlow's shutdown takes long, and nothing waits to be written
    process.main(str(request_file))


def _serve_requests(connection: socket.socket) -> Path | None:
    """Return a request file in each forked child, None in the server when all is done."""
    own_pid = os.getpid()
    while True:
        data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 2)
        if not data:
            return None
        request = json.loads(data)
        pid = os.fork()
        if pid == 0:
            connection.close()
            os.setsid()
            for ours, theirs in zip((1, 2), descriptors, strict=True):
                os.dup2(theirs, ours)
                os.close(theirs)
            os.chdir(request["directory"])
            os.environ.update(request["environment"])
            os.environ[protocol.FORKED_FROM] = str(own_pid)
            return Path(request["request"])
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(pid).encode())
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _import_tensorflow() -> None:
    """Import what children need; discard what TensorFlow prints meanwhile."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    drop_log()
    importlib.import_module("simplace.oracle.child.run_target")
    os.dup2(kept, 2)
    os.close(kept)
    os.close(nowhere)
    gc.freeze()  # children never collect what all of them share, so its pages stay shared
