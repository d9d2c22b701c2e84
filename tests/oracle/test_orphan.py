"""No process is left behind when the one that started it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import subprocess, sys, time
from pathlib import Path
from simplace.oracle.orphan import end_with_parent
end_with_parent()
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
Path(sys.argv[1], "pids").write_text(f"{grandchild.pid}")
Path(sys.argv[1], "ready").touch()
time.sleep(1000)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def within(seconds: float, holds) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_a_child_ends_with_its_killed_parent_and_takes_its_own_children_along(tmp_path):
    (tmp_path / "child.py").write_text(CHILD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", PARENT, str(tmp_path / "child.py"), str(tmp_path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    child = int(parent.stdout.readline())
    assert within(300, (tmp_path / "ready").exists)
    grandchild = int((tmp_path / "pids").read_text())

    assert runs(child)
    assert runs(grandchild)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()

    assert within(300, lambda: not runs(child) and not runs(grandchild))
