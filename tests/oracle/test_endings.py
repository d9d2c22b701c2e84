"""However a run ends, it is told as what it is: by the program, by TensorFlow, by a signal, or by simplace itself."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, place
from simplace.cli import main
from simplace.doctor.failures import predict_failures
from simplace.errors import ProgramError
from simplace.machine.machine import Machine

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

PLACED = """\
import atexit, os, signal, sys, threading, time
import tensorflow as tf
@tf.function
def f(x):
    return x + 1.0
f(tf.ones([2]))
"""
BROKEN = """\
from simplace.oracle.child import functions
def broken(*args):
    raise TypeError("broken")
functions.list_sizes = broken
"""


def ending(tmp_path: Path, text: str, gpus: int = 1, timeout: float | None = None) -> tuple[str, str]:
    """Run what follows a function that is placed; return the line about how it ended, and what comes before it."""
    path = tmp_path / "model.py"
    path.write_text(PLACED + dedent(text))
    failure = place(str(path), Settings(Machine(gpus=gpus), timeout=timeout)).failure
    return (str(failure).removeprefix(f"{path}: "), failure.details) if failure else ("", "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sys.exit()", ""),
        ("sys.exit(0)", ""),
        ("sys.exit(3)", "the program ended with exit status 3"),
        ("sys.exit(True)", "the program ended with exit status 1"),
        ("sys.exit(256)", "the program ended with exit status 256"),
        ("os._exit(3)", "the program ended with exit status 3"),
        ("os._exit(0)", "the program's process terminated early with exit status 0, as os._exit(0) does"),
        ("atexit.register(os._exit, 4)", "the program ended with exit status 4"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "the program's process was ended by signal SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGUSR1)", "the program's process was ended by signal SIGUSR1"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", "the program's process was ended by signal 37"),
    ],
)
def test_a_program_that_leaves(tmp_path: Path, text: str, line: str) -> None:
    assert ending(tmp_path, text) == (line, "")


@pytest.mark.parametrize(
    "text",
    [
        "sys.exit(7)",
        "sys.exit(-1)",
        "sys.exit('no data')",
        "raise ValueError",
        "raise KeyboardInterrupt",
        "os._exit(3)",
        "os.abort()",
    ],
)
def test_the_exit_status_is_the_programs_own(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(PLACED + text)
    plain = subprocess.run([sys.executable, str(path)], stderr=subprocess.DEVNULL, check=False).returncode
    seen = main(["show", str(path), "--devices", "cpu:1,gpu:1"])
    assert seen == (plain if plain >= 0 else 128 - plain)  # of what a signal ended, as a shell tells it


def test_a_hook_for_exceptions_is_called(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = """\
    import traceback
    def tell(kind, error, frames):
        print(kind.__name__, error, [frame.name for frame in traceback.extract_tb(frames)])
        if error.args == (4,):
            sys.exit(4)
    def fail(value):
        raise ValueError(value)
    sys.excepthook = tell
    """
    line, _ = ending(tmp_path, dedent(text) + "fail(3)")
    assert line == f"the program stopped with ValueError: 3 at {tmp_path}/model.py:13"
    assert capfd.readouterr().out == "ValueError 3 ['<module>', 'fail']\n"
    assert ending(tmp_path, dedent(text) + "fail(4)") == ("the program ended with exit status 4", "")
    assert ending(tmp_path, "sys.excepthook = lambda *error: undefined\nfail")[0].startswith(
        "the program stopped with Name"
    )
    assert "Error in sys.excepthook:" in capfd.readouterr().err


def test_the_text_that_a_program_leaves_with(tmp_path: Path) -> None:
    assert ending(tmp_path, "sys.exit('no data')") == ("the program ended with exit status 1", "no data")


def test_a_text_that_cannot_be_told(tmp_path: Path) -> None:
    text = """\
    class Text:
        def __str__(self):
            raise ValueError("no text")
    sys.exit(Text())
    """
    assert ending(tmp_path, text) == ("the program ended with exit status 1", "")


def test_an_exception_that_has_no_text(tmp_path: Path) -> None:
    text = """\
    class Silent(Exception):
        def __str__(self):
            raise ValueError("no text")
    raise Silent
    """
    line, _ = ending(tmp_path, text)
    assert line == f"the program stopped with Silent: <exception str() failed> at {tmp_path}/model.py:10"


def test_an_error_that_autograph_tells_of(tmp_path: Path) -> None:
    text = """\
    @tf.function
    def g(x):
        if x > 0:
            raise_here(x)
        return x
    g(tf.constant(1))
    """
    line, _ = ending(tmp_path, text)
    assert line == f"the program stopped with NameError: name 'raise_here' is not defined at {tmp_path}/model.py:12"


def test_a_thread_that_leaves_or_fails_ends_no_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = """\
    def fail():
        raise KeyError("mine")
    for target in (sys.exit, fail):
        thread = threading.Thread(target=target, name=target.__name__)
        thread.start()
        thread.join()
    """
    path = tmp_path / "model.py"
    path.write_text(PLACED + dedent(text))
    result = place(str(path), Settings(Machine(gpus=1)))
    assert result.failure is None
    assert f"The thread fail ended with KeyError: 'mine' at {path}:8." in result.remarks
    told = capfd.readouterr().err
    assert "Exception in thread fail:" in told
    assert "simplace/" not in told.replace(str(tmp_path), "")


def test_a_thread_that_outlives_the_last_line(tmp_path: Path) -> None:
    assert ending(tmp_path, "threading.Timer(0.5, os._exit, [5]).start()") == (
        "the program ended with exit status 5",
        "",
    )
    text = "threading.Thread(target=time.sleep, args=[1000]).start()\nopen(__file__ + '.end', 'w').close()"
    for limit in (3.0, 30.0, 600.0):  # a busy machine may need longer to get to the last line
        with suppress(ProgramError):  # nothing was placed
            line, _ = ending(tmp_path, text, timeout=limit)
            if (tmp_path / "model.py.end").exists():
                break
    assert line == f"the program ran longer than {limit:g} s and was ended; --timeout gives it more"


def test_a_process_that_the_program_forks_tells_nothing(tmp_path: Path) -> None:
    text = """\
    child = os.fork()
    if child == 0:
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    """
    assert ending(tmp_path, text) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "with tf.Graph().as_default():\n    tf.compat.v1.Session().run(tf.ones([1]))",
        "@tf.function\ndef g(x):\n    return tf.reduce_sum(x)\nwith tf.Graph().as_default():\n"
        "    tf.compat.v1.Session().run(g(tf.ones([2])))",
    ],
)
def test_an_error_of_simplace_is_not_the_program_s(tmp_path: Path, text: str) -> None:
    line, details = ending(tmp_path, BROKEN + text)
    assert line.startswith("simplace itself failed, not the program: TypeError: broken at ")
    assert line.endswith("; please report this, with the lines above")
    assert "simplace/oracle/child/sessions.py" in details


def test_an_error_of_simplace_in_a_thread(tmp_path: Path) -> None:
    text = """\
    graph = tf.Graph()
    with graph.as_default():
        one = tf.ones([1])
    thread = threading.Thread(target=tf.compat.v1.Session(graph=graph).run, args=[one])
    thread.start()
    thread.join()
    """
    line, _ = ending(tmp_path, BROKEN + dedent(text))
    assert line.startswith("simplace itself failed, not the program: TypeError: broken at ")


def test_an_error_of_simplace_after_the_program(tmp_path: Path) -> None:
    line, _ = ending(tmp_path, "from simplace.oracle.child import devices\ndel devices.describe_context")
    assert line.startswith("simplace itself failed, not the program: AttributeError: ")


@pytest.mark.parametrize(
    "text",
    [
        "with tf.device(lambda op: {}['mine']), tf.Graph().as_default():\n    tf.ones([1])",
        "with tf.Graph().as_default(), tf.compat.v1.device(lambda op: {}['mine']):\n    tf.ones([1])",
        "with tf.Graph().as_default():\n    with tf.compat.v1.colocate_with(tf.ones([1])):\n        {}['mine']",
    ],
)
def test_an_error_that_passes_through_simplace_is_the_program_s(tmp_path: Path, text: str) -> None:
    line, details = ending(tmp_path, text)
    assert line.startswith("the program stopped with ")
    assert "simplace" not in details.replace(str(tmp_path), "")


def test_too_deep_a_recursion_is_the_program_s(tmp_path: Path) -> None:
    line, _ = ending(tmp_path, "def deep(x):\n    return deep(tf.identity(x))\ndeep(tf.ones([1]))")
    assert line.startswith("the program stopped with RecursionError: ")


@pytest.mark.parametrize("use", ["print(tf.ones([1]))", "tf.compat.v1.Session(graph=tf.Graph())"])
def test_memory_growth_of_one_of_two_gpus(tmp_path: Path, use: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import tensorflow as tf\n"
        "tf.config.experimental.set_memory_growth(tf.config.list_physical_devices('GPU')[0], True)\n"
        f"{use}\n"
    )
    result = place(str(path), Settings(Machine(gpus=2)))
    assert result.failure is not None
    assert str(result.failure) == (
        f"{path}: the program stopped with ValueError: Memory growth cannot differ between GPU devices at {path}:3"
    )
    assert result.failure.details.splitlines()[1:3:2] == [f'  File "{path}", line 3, in <module>']
    (told,) = predict_failures(result)
    assert (told.rule, told.source, told.error) == (
        "memory-growth", f"{path}:3", "Memory growth cannot differ between GPU devices",
    )  # fmt: skip
    assert not result.agrees


def test_memory_growth_of_one_gpu_beside_a_split_one(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import tensorflow as tf\n"
        "split, whole = tf.config.list_physical_devices('GPU')\n"
        "parts = [tf.config.LogicalDeviceConfiguration(memory_limit=1024)] * 2\n"
        "tf.config.set_logical_device_configuration(split, parts)\n"
        "tf.config.experimental.set_memory_growth(whole, True)\n"
        "print(len(tf.config.list_logical_devices('GPU')), tf.ones([1]))\n"
    )
    assert place(str(path), Settings(Machine(gpus=2))).failure is None


def test_an_error_of_our_own_that_the_program_handles(tmp_path: Path) -> None:
    text = f"{BROKEN}try:\n    f(tf.ones([3]))\nexcept Exception:\n    pass\n"
    assert ending(tmp_path, text)[0].startswith("simplace itself failed, not the program: TypeError: broken at ")
