"""Kill any process of a run: the others end by themselves, and the next run leaves no file of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from simplace.errors import ProgramError
from simplace.oracle import observe
from simplace.oracle.protocol import NO_ROOM
from simplace.program.observation import EarlyEnd
from tests.oracle.test_orphan import within

ROOT = Path(__file__).resolve().parents[2]
MARK = "SIMPLACE_TEST_LEFT_BEHIND"
PATIENT = 300  # seconds: the machine may be busy
WAITS = """
import subprocess, sys
from pathlib import Path
import tensorflow as tf
@tf.function
def generated(x):  # AutoGraph writes a file
    if x > 0:
        x += 1
    return x
generated(tf.constant(1))
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
Path(sys.argv[1]).touch()
import time
time.sleep(900)
"""
COMPILER = """#!/bin/sh
> {ready} > $TMPDIR/object
{python} -c "import time; time.sleep(900)"
"""


class World:
    """A folder for temporary files and caches, and the processes that were started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary, self.ready = folder, folder / "tmp", folder / "ready"
        self.temporary.mkdir()
        places = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(folder / "cache")}
        self.environment = {**os.environ, **places, "PYTHONPATH": str(ROOT), MARK: str(folder)}

    def start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "simplace", *words]
        return subprocess.Popen(
            command,
            env={**self.environment, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=hear_signals,
        )

    def processes(self) -> list[int]:
        wanted = f"{MARK}={self.folder}".encode()
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if wanted in _environment(path)]

    def left(self) -> list[str]:
        places = (self.temporary, self.folder / "cache/simplace")
        files = (path.name for place in places if place.exists() for path in place.iterdir())
        return sorted(name for name in files if not name.endswith((".so", ".zip")))


def hear_signals() -> None:
    """Take signals as in a terminal: under nohup, or in the background of a shell, some would be ignored."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def script(world: World) -> str:
    file = world.folder / "waits.py"
    file.write_text(WAITS)
    return str(file)


def next_run(world: World) -> None:
    """Start simplace again, on a script that does nothing."""
    (world.folder / "nothing.py").write_text("")
    world.start("show", str(world.folder / "nothing.py"), "--devices", "cpu:1").communicate()


@pytest.mark.tf
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_the_parent(number: signal.Signals, world: World) -> None:
    """For SIGINT and SIGTERM, tests/cli/test_scripts.py does the same."""
    parent = world.start("show", script(world), "--devices", "cpu:1", "--", str(world.ready))
    assert within(PATIENT, world.ready.exists)
    assert within(PATIENT, lambda: len(world.processes()) == 3)  # a new process has no environment at first
    parent.send_signal(number)
    _, said = parent.communicate()
    if number != signal.SIGKILL:
        assert (world.left(), parent.returncode) == ([], 128 + number)
        assert said == b""
    assert within(PATIENT, lambda: world.processes() == [])
    if number == signal.SIGKILL:
        next_run(world)
    assert world.left() == []


@pytest.mark.tf
def test_the_child(world: World) -> None:
    parent = world.start("show", script(world), "--devices", "cpu:1", "--", str(world.ready))
    assert within(PATIENT, world.ready.exists)
    assert within(PATIENT, lambda: len(world.processes()) == 3)
    child = next(pid for pid in world.processes() if os.getpgid(pid) == pid and pid != parent.pid)
    os.kill(child, signal.SIGKILL)
    _, said = parent.communicate()
    assert (parent.returncode, b"ended by signal SIGKILL" in said) == (137, True)
    assert within(PATIENT, lambda: world.processes() == [])
    assert world.left() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_parent_while_it_compiles(number: signal.Signals, world: World) -> None:
    compiler = world.folder / "cc"
    compiler.write_text(COMPILER.format(ready=world.ready, python=sys.executable))
    compiler.chmod(0o755)
    (world.folder / "nothing.py").write_text("")
    parent = world.start("show", str(world.folder / "nothing.py"), "--devices", "gpu:1", CC=str(compiler))
    assert within(PATIENT, world.ready.exists)
    parent.send_signal(number)
    parent.communicate()
    assert within(PATIENT, lambda: world.processes() == [])
    compiler.write_text("#!/bin/sh\nexit 1\n")
    again = world.start("show", str(world.folder / "nothing.py"), "--devices", "gpu:1", CC=str(compiler))
    assert again.wait(timeout=PATIENT) == 2
    assert world.left() == []


def test_the_compiler(world: World) -> None:
    compiler = world.folder / "cc"
    compiler.write_text("#!/bin/sh\nkill -9 $$\n")
    compiler.chmod(0o755)
    (world.folder / "nothing.py").write_text("")
    parent = world.start("show", str(world.folder / "nothing.py"), "--devices", "gpu:1", CC=str(compiler))
    _, said = parent.communicate()
    assert parent.returncode == 2
    assert said.startswith(b"simplace: the C compiler ")
    assert (said.count(b"\n"), world.left(), world.processes()) == (1, [], [])


def test_no_room_for_the_answer_is_no_error_of_the_program(tmp_path: Path) -> None:
    code = (
        "from simplace.oracle.child.recorder import leaving_without_room\n"
        "try:\n"
        "    with leaving_without_room(): open('/dev/full', 'w').write('x' * 100_000)\n"
        "except OSError: print('the program handled it')\n"
    )
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (NO_ROOM, b"", b"")


def test_no_room_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe.shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))
    observe._require_room(str(tmp_path / "run"), None)
    told = rf"{tmp_path}: the disk is full, so the run cannot be recorded; set TMPDIR to a folder with free space"
    with pytest.raises(ProgramError, match=told):
        observe._require_room(str(tmp_path / "run"), EarlyEnd("exited", "status 1"))
