"""Child processes that are forked from one which has imported what they need: one import for many of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from simplace.oracle.launch import Fork, ForkServers

ROOT = Path(__file__).resolve().parents[1]
# The server. A child has its own standard streams, environment, folder and process group.
_SERVER = """\
import gc, importlib, json, os, socket, sys
number, searched, *modules = sys.argv[1:]
sys.path[:0] = [searched] if searched else []
for module in modules:
    importlib.import_module(module)
gc.freeze()
connection = socket.socket(fileno=int(number))
while True:
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 18, 3)
    if not data:
        os._exit(0)
    pid = os.fork()
    if pid == 0:
        break
    for descriptor in descriptors:
        os.close(descriptor)
    connection.send(str(pid).encode())
    connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
connection.close()
os.setsid()
for ours, theirs in zip((0, 1, 2), descriptors, strict=True):
    os.dup2(theirs, ours)
    os.close(theirs)
request = json.loads(data)
os.chdir(request["directory"])
os.environ.clear()
os.environ.update(request["environment"])
sys.argv = ["-c", *request["arguments"]]
status = 1
try:
    exec(request["code"], {"__name__": "__main__"})
    status = 0
except SystemExit as end:
    status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
except BaseException as error:
    sys.excepthook(type(error), error, error.__traceback__)
finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)
"""


class WarmProcesses(ForkServers):
    """Processes that have imported modules in an environment."""

    def start(
        self,
        modules: Sequence[str],
        code: str,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str],
        own: Mapping[str, str] | None = None,
        searched: str = str(ROOT),
        streams: tuple[int, int, int] = (0, 1, 2),
    ) -> Fork:
        """Run code where the modules are imported under `environment`; `own` are more variables, of the child alone."""
        key = (tuple(modules), searched, tuple(sorted(environment.items())))

        def command(number: int) -> list[str]:
            return [sys.executable, "-P", "-c", _SERVER, str(number), searched, *modules]

        assert len(self._servers) < 50, "a variable of `environment` that differs each time belongs to `own`"
        request = {"code": code, "arguments": list(arguments), "directory": os.getcwd()}
        request |= {"environment": {**environment, **(own or {})}}
        return self.fork(key, command, environment, request, streams)

    def run(
        self, *what: Any, stdin: bytes = b"", timeout: float | None = None, **how: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run code as `start` does, to its end; raise `subprocess.TimeoutExpired` after `timeout` seconds."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.flush()
            given.seek(0)
            child = self.start(*what, streams=(given.fileno(), out.fileno(), err.fileno()), **how)
            try:
                status = child.wait(timeout)
            finally:
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGKILL)
                    child.wait()
            return subprocess.CompletedProcess([], status, _content(out), _content(err))

    def run_tensorflow(
        self, code: str, *arguments: str, folder: Path = ROOT, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run code where TensorFlow has been imported under these variables; return what it printed, as text."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        environment.pop("PYTEST_CURRENT_TEST", None)
        code = f"import os; os.chdir({str(folder)!r})\n{dedent(code)}"
        done = self.run(["tensorflow", "keras"], code, arguments, environment=environment, timeout=600)
        out, err = done.stdout.decode(), done.stderr.decode(errors="replace")
        return subprocess.CompletedProcess([], done.returncode, out, err)


RUN_SCRIPT = """
    import runpy, sys
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _content(file: Any) -> bytes:
    file.seek(0)
    found: bytes = file.read()
    return found


def draw_by(warm: WarmProcesses, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `subprocess.run` for `viz.engine`: it runs the bundled Graphviz in forks, other programs by `run`."""

    def run_or_fork(
        command: Sequence[str], *, input: bytes, timeout: float, env: Mapping[str, str], **how: Any
    ) -> subprocess.CompletedProcess[bytes]:
        if command[:2] != [sys.executable, "-P"]:
            found: subprocess.CompletedProcess[bytes] = run(command, input=input, timeout=timeout, env=env, **how)
            return found
        lasting = dict(env)
        # of each drawing its own; read when the first text is measured
        own = {name: lasting.pop(name) for name in ("FONTCONFIG_FILE", "LIBTHAI_DICTDIR")}
        code = f"import runpy, sys; sys.argv[0] = {command[2]!r}; runpy.run_path({command[2]!r}, run_name='__main__')"
        streams = {"stdin": input, "timeout": timeout}
        return warm.run(["pygraphviz"], code, command[3:], environment=lasting, own=own, searched="", **streams)

    return run_or_fork
