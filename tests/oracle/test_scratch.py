"""The folder of a run goes with the run, or with the next one where the run was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simplace.errors import ProgramError
from simplace.oracle.scratch import scratch_folder
from viz.engine import run_graphviz
from viz.errors import LayoutError
from viz.scratch import read_start_time, sweep_folders
from viz.scratch import scratch_folder as drawing_folder

OWNER = """
import sys, time
from pathlib import Path
from viz.scratch import scratch_folder
with scratch_folder(sys.argv[2], Path(sys.argv[1])) as folder:
    Path(folder, "file").touch()
    print(folder, flush=True)
    time.sleep(900)
"""
NO_PROCESS = 4_194_305  # above the most that Linux gives


def owner(base: Path, kind: str = "simplace") -> tuple[subprocess.Popen[str], Path]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", OWNER, str(base), kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_the_users_own_and_goes(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
        assert Path(folder).name.startswith(f"simplace-{os.getpid()}-{read_start_time(os.getpid())}-")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_run_is_swept_by_the_next(tmp_path: Path) -> None:
    killed, left = owner(tmp_path)
    running, kept = owner(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "file").exists()
    with scratch_folder(tmp_path) as own:
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([kept.name, Path(own).name])
    running.send_signal(signal.SIGKILL)
    running.communicate()
    sweep_folders(tmp_path, "simplace")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_drawing_is_swept_by_the_next_drawing_and_the_next_run(tmp_path: Path) -> None:
    for sweeps in (scratch_folder(tmp_path), drawing_folder("viz", tmp_path)):
        killed, left = owner(tmp_path, "viz")
        running, kept = owner(tmp_path, "viz")
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert left.exists()
        with sweeps as own:
            assert sorted(path.name for path in tmp_path.iterdir()) == sorted([kept.name, Path(own).name])
        running.send_signal(signal.SIGKILL)
        running.communicate()
    sweep_folders(tmp_path, "viz")
    assert list(tmp_path.iterdir()) == []


def test_a_drawing_has_its_folder_named_after_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\necho "$FONTCONFIG_FILE"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("GRAPHVIZ_DOT", str(dot))
    config = Path(run_graphviz("digraph {}", "svg", 72, 60).decode().strip())
    assert config.parent.name.startswith(f"viz-{os.getpid()}-{read_start_time(os.getpid())}-")
    assert not config.parent.exists()


def test_a_drawing_without_room_for_its_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(LayoutError, match=r"no temporary file can be made \(No such file or directory\); set TMPDIR"):
        run_graphviz("digraph {}", "svg", 72, 60)


def test_only_what_is_surely_left_is_swept(tmp_path: Path) -> None:
    mine = tmp_path / f"simplace-{os.getpid()}-{read_start_time(os.getpid())}-a"
    recycled = (
        tmp_path / f"simplace-{os.getpid()}-{read_start_time(os.getpid()) + 1}-a"
    )  # its owner had the same number
    locked = tmp_path / f"simplace-{NO_PROCESS}-1-a"  # its owner lives where its number is not seen
    file, link, other = (tmp_path / name for name in (f"simplace-{NO_PROCESS}-1-b", f"simplace-{NO_PROCESS}-1-c", "x"))
    for folder in (mine, recycled, locked, other):
        folder.mkdir()
    file.touch()
    link.symlink_to(other)
    lock = os.open(locked, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    sweep_folders(tmp_path, "simplace")
    os.close(lock)
    assert set(tmp_path.iterdir()) == {mine, locked, file, link, other}


def test_no_room_for_it_is_said_in_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(ProgramError, match=r"no temporary folder can be made \(No such file or directory\); set TMPDIR"),
        scratch_folder(tmp_path / "none"),
    ):
        pass
