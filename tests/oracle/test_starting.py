"""Children that are forked: they see what new processes see, and end as those do."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from simplace.errors import ProgramError
from simplace.machine.machine import Machine
from simplace.oracle.launch import sending_errors, start_process, starting_by
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import FORKED_FROM, Options

SCRIPT = """
import os
import sys
import threading
import tensorflow as tf

@tf.function
def f(x):
    with tf.device("/GPU:0"):
        return x @ x

f(tf.ones([2, 2]))
print("done", sys.argv, os.getcwd(), os.environ.get("COLUMNS"))
print("to standard error", file=sys.stderr)
threading.Timer(0.5, print, ["from a thread after the last line"]).start()
"""

pytestmark = pytest.mark.tf


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(SCRIPT)
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(1000)\n")
    (tmp_path / "crasher.py").write_text("import os\nos.abort()\n")
    return tmp_path


def seen(script, gpus, start, printed):
    with printed.open("w") as out:
        return observe_script(script, ("word",), Machine(gpus=gpus), Options(), out.fileno(), start)


def test_a_fork_sees_what_a_new_process_sees(folder, forks, monkeypatch, capfd):
    for gpus in (2, 0):
        monkeypatch.setenv("COLUMNS", f"{100 + gpus}")
        monkeypatch.chdir(folder if gpus else folder.parent)
        new = seen(folder / "model.py", gpus, start_process, folder / "new.txt")
        forked = seen(folder / "model.py", gpus, forks, folder / "forked.txt")
        assert new.failure is None
        assert [program.log for program in forked.programs] == [program.log for program in new.programs]
        assert forked.devices == new.devices
        assert len(new.programs[0].log) > 2
        assert (folder / "forked.txt").read_text() == (folder / "new.txt").read_text()
        assert f"{os.getcwd()} {100 + gpus}\nfrom a thread after the last line" in (folder / "new.txt").read_text()
        assert capfd.readouterr().err.count("to standard error\n") == 2


def test_standard_error_goes_where_it_is_sent(folder, forks, capfd):
    for start in (start_process, forks):
        with (folder / "errors.txt").open("w") as errors, sending_errors(errors.fileno()):
            seen(folder / "model.py", 0, start, folder / "out.txt")
        assert (folder / "errors.txt").read_text() == "to standard error\n"
        assert "to standard error" not in (folder / "out.txt").read_text()
    assert capfd.readouterr().err == ""


def test_a_fork_is_started_where_it_was_chosen(folder, forks):
    (folder / "asker.py").write_text(f"import os\nprint({FORKED_FROM!r} in os.environ)\n")
    with (folder / "out.txt").open("w") as out:
        with starting_by(forks):
            observe_script(folder / "asker.py", stdout=out.fileno())
        observe_script(folder / "asker.py", stdout=out.fileno())
    assert (folder / "out.txt").read_text().split() == ["True", "False"]


def test_a_fork_that_crashes_says_so(folder, forks):
    ended = seen(folder / "crasher.py", 1, forks, folder / "out.txt").failure
    assert (ended.how, ended.text) == ("crashed", "the program's process was ended by signal SIGABRT")


def test_a_fork_is_ended_after_its_time(folder, forks):
    with open(os.devnull, "w") as nowhere:
        for limit in (2.0, 20.0, 200.0):  # on a busy machine the program may not have begun
            with suppress(ProgramError):
                options = Options(timeout=limit)
                ended = observe_script(folder / "sleeper.py", (), Machine(), options, nowhere.fileno(), forks).failure
                break
    assert (ended.how, ended.text) == ("timed out", f"the program ran longer than {limit:g} s and was ended")
