"""Start the child process: as a new Python, or as a fork of one that has imported TensorFlow already."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from simplace.errors import ProgramError
from simplace.oracle.orphan import run_group
from simplace.oracle.protocol import GIVEN_VARIABLES

SEARCHED = str(Path(__file__).resolve().parents[2])  # the folder that a child imports simplace from
_FILE = str(Path(__file__).with_name("start_child.py").resolve())
# TensorFlow, and what it imports, may read any other variable when it is imported.
_OF_ONE_RUN = (
    GIVEN_VARIABLES, "COLUMNS", "CUDA_VISIBLE_DEVICES", "PYTEST_CURRENT_TEST", "TF_DUMP_GRAPH_PREFIX", "XDG_CACHE_HOME",
)  # fmt: skip
_STDERR = 2  # the file descriptor


class Child(Protocol):
    """A child process, with the methods of `subprocess.Popen`; its pid is that of its process group."""

    @property
    def pid(self) -> int:
        """Return the number of the process."""

    def poll(self) -> int | None:
        """Return the exit status, None while the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status, negative for a signal; raise `subprocess.TimeoutExpired` after `timeout` s."""


Start = Callable[[Path, Mapping[str, str], int | None], Child]  # request file, environment, file for standard output


def start_process(request_file: Path, environment: Mapping[str, str], stdout: int | None) -> Child:
    """Start a child as a new process."""
    command = _start_command("simplace.oracle.child.process", str(request_file))
    return subprocess.Popen(command, env=environment, stdout=stdout, stderr=_errors.get(), start_new_session=True)


_chosen: ContextVar[Start] = ContextVar("_chosen", default=start_process)
_errors: ContextVar[int | None] = ContextVar("_errors", default=None)  # where children print their standard error


def start_as_chosen(request_file: Path, environment: Mapping[str, str], stdout: int | None) -> Child:
    """Start a child in the way that `starting_by` chose, or else as a new process."""
    return _chosen.get()(request_file, environment, stdout)


@contextmanager
def starting_by(start: Start) -> Iterator[None]:
    """Start the children of this thread in this way within the block, where their caller does not choose."""
    before = _chosen.set(start)
    try:
        yield
    finally:
        _chosen.reset(before)


@contextmanager
def sending_errors(to: int) -> Iterator[None]:
    """Send the standard error of the children of this thread to a file descriptor within the block."""
    before = _errors.set(to)
    try:
        yield
    finally:
        _errors.reset(before)


def open_errors() -> AbstractContextManager[TextIO]:
    """Open for text where children print their standard error."""
    to = _errors.get()
    return nullcontext(sys.stderr) if to is None else open(to, "w", encoding="utf-8", closefd=False)


class ForkServers:
    """Processes that have imported what their forks need, each started when first asked for; one fork at a time.

    Use it in a `with` statement: at its end they end.
    """

    def __init__(self) -> None:
        self._servers: dict[Hashable, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for server, connection in self._servers.values():
            connection.close()
            server.wait()

    def fork(
        self,
        key: Hashable,
        command: Callable[[int], Sequence[str]],
        environment: Mapping[str, str],
        request: Mapping[str, Any],
        streams: Sequence[int],
    ) -> Fork:
        """Send a request, with files, to the server of a key; `command` starts it, given its end of the connection."""
        if key not in self._servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                number = theirs.fileno()
                server = subprocess.Popen(command(number), env=environment, pass_fds=[number], start_new_session=True)
                self._servers[key] = server, ours
        _, connection = self._servers[key]
        socket.send_fds(connection, [json.dumps(request).encode()], streams)
        return Fork(connection)


class Forks(ForkServers):
    """Starts children as forks, which saves each the import of TensorFlow (about 5 s)."""

    def __call__(self, request_file: Path, environment: Mapping[str, str], stdout: int | None) -> Child:
        """Start a child."""
        lasting = {name: value for name, value in environment.items() if name not in _OF_ONE_RUN}
        own = {name: environment[name] for name in _OF_ONE_RUN if name in environment}
        request = {"request": str(request_file), "environment": own, "directory": os.getcwd()}
        errors = _errors.get()
        streams = [1 if stdout is None else stdout, _STDERR if errors is None else errors]
        return self.fork(tuple(sorted(lasting.items())), _server_command, lasting, request, streams)


@contextmanager
def starting_by_forks() -> Iterator[None]:
    """Start the children of this thread as forks within the block, unless another way has been chosen for them.

    Where the system lacks the sockets that forks need, they start as new processes.
    """
    if _chosen.get() is not start_process or sys.platform != "linux":
        yield
        return
    with Forks() as forks, starting_by(forks):
        yield


class Fork:
    """A forked child; the server sends its pid, then its exit status, negative for a signal."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._status: int | None = None
        self.pid = self._receive()

    def poll(self) -> int | None:
        """Return the exit status, None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status; raise `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._status is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked child", timeout or 0.0)
            self._status = self._receive()
        return self._status

    def _receive(self) -> int:
        answer = self._connection.recv(64)
        if not answer:
            raise ProgramError("the process that forks the child processes has ended")
        return int(answer)


def _server_command(number: int) -> list[str]:
    return _start_command("simplace.oracle.fork_server", str(number))


def ask_child(module: str, request_file: Path, timeout: float, *, slow: str, failed: str) -> None:
    """Run a module's `main` on a request file in a new Python, which ends with this process, and wait for its end.

    Raises `ProgramError`: `slow` where it takes more than `timeout` seconds, and `failed` with its last words where it
    fails.
    """
    start = f"import sys; sys.path[0] = sys.argv[1]; from {module} import main; sys.exit(main(*sys.argv[2:]))"
    try:
        done = run_group(
            [sys.executable, "-c", start, SEARCHED, str(request_file), str(os.getpid())], os.environ, timeout
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(slow) from None
    if done.returncode:
        last = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise ProgramError(f"{failed}: {last[-1] if last else 'it printed nothing'}", done.stderr)


def _start_command(module: str, given: str) -> list[str]:
    return [sys.executable, _FILE, SEARCHED, module, given, str(os.getpid())]
