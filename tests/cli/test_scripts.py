"""The command line on scripts: what a user's program can do wrong gets one clear line, after its own words."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import simplace
from simplace.cli import main
from tests.oracle.test_left_behind import hear_signals
from tests.oracle.test_orphan import runs, within

pytestmark = pytest.mark.tf
ROOT = Path(__file__).resolve().parents[2]
PATIENT = 300  # seconds: the machine may be busy

FUNCTION = """
import sys
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec([2, 2])])
def quiet(x):
    return x @ x

@tf.function
def never(x):
    return x

@tf.function
def step(x):
    with tf.device("/GPU:1"):
        return tf.matmul(x, x)

print("arguments:", sys.argv[1:])
"""


@pytest.fixture
def run(forked, tmp_path, monkeypatch, capfd):
    """Return a function that runs a command on a script and says how it ended and what it printed."""
    monkeypatch.chdir(tmp_path)

    def done(script, command, function="", *words):
        Path("model.py").write_text(script)
        status = main([command, f"model.py{function}", *words])
        return SimpleNamespace(returncode=status, **capfd.readouterr()._asdict())

    return done


@pytest.mark.parametrize(
    ("script", "status", "last"),
    [
        (
            "def go():\n    raise ValueError('mine')\ngo()\n",
            1,
            "model.py: the program stopped with ValueError: mine at model.py:2",
        ),
        ("def f(:\n", 1, "model.py: the program stopped with SyntaxError: invalid syntax at model.py:1"),
        ("print('hello')\n", 2, "calls no tf.function and runs no session"),
        ("import sys\nsys.exit(3)\n", 3, "model.py: the program ended with exit status 3"),
        ("import sys\nsys.exit('no data')\n", 1, "model.py: the program ended with exit status 1"),
        ("import os\nos._exit(0)\n", 2, "terminated early with exit status 0, as os._exit(0) does"),
        ("from . import other\n", 1, "Python, too, runs a script outside of any package"),
        ("raise ExceptionGroup('two', [ValueError('a')])\n", 1, "ExceptionGroup: two (1 sub-exception) at model.py:1"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", 139, "ended by signal SIGSEGV"),
    ],
    ids=[
        "raises",
        "syntax",
        "no function",
        "exits",
        "exits in words",
        "leaves",
        "relative",
        "group",
        "crashes",
    ],
)
def test_a_wrong_program_gets_one_line(run, script, status, last):
    done = run(script, "show", "")
    assert done.returncode == status
    line = done.err.rstrip().splitlines()[-1]
    assert line.startswith("simplace: ")
    assert last in line
    assert "simplace/" not in done.err, "no frame of ours is shown"


def test_a_program_that_hangs_gets_one_line(run):
    for limit in ("2", "20", "200"):  # a busy machine may need longer to get to the program
        done = run("import time\ntime.sleep(1000)\n", "show", "", "--timeout", limit)
        if "TensorFlow was still being imported" not in done.err:
            break
    ended = f"the program ran longer than {limit} s and was ended; --timeout gives it more"
    assert (done.returncode, done.out, done.err) == (2, "", f"simplace: model.py: {ended}\n")


EAGER = "import tensorflow as tf\nx = tf.ones(3)\nfor i in range(3):\n    x = x + 1.0\n"


def test_a_program_without_functions_is_shown_op_by_op(run):
    done = run(EAGER, "show", "", "--devices", "cpu:1,gpu:1")
    assert (done.returncode, done.err) == (0, "")
    assert "outside of functions: 5 eager ops, run 7 times" in done.out
    assert re.search(r"model.py:4 +GPU:0 +AddV2 ×3, _EagerConst +1 copy, 4 B", done.out)
    assert done.out.endswith("agrees with TensorFlow 2.21.0: 5/5 eager ops\n")


def test_a_line_of_eager_ops_is_explained(run):
    done = run(EAGER, "explain", "", "model.py:4", "--devices", "cpu:1,gpu:1")
    assert done.returncode == 0
    assert "AddV2 at model.py:4 runs 3 times on GPU:0." in done.out
    missing = run(EAGER, "explain", "", "AddV", "--devices", "cpu:1,gpu:1")
    assert (missing.returncode, "no eager op is called 'AddV'; did you mean" in missing.err) == (2, True)


def test_a_program_of_eager_ops_has_a_page(run):
    done = run(EAGER, "report", "", "-o", "page.html", "--devices", "cpu:1,gpu:1")
    assert (done.returncode, done.out) == (0, "agrees with TensorFlow 2.21.0: 5/5 eager ops\n")


def test_what_needs_a_graph_says_that_there_is_none(run):
    done = run(EAGER, "schedule", "", "--devices", "cpu:1")
    assert done.returncode == 2
    assert "all of it ran outside of functions, op by op, so there is no graph to draw or run" in done.err


@pytest.mark.parametrize("command", ["schedule", "memory"])
def test_what_failed_before_there_was_a_graph_says_why(run, command):
    done = run(
        "import tensorflow as tf\n\n@tf.function\ndef step(x):\n    return x, tf.no_op()\n\nstep(1.0)\n", command, ""
    )
    assert done.returncode == 1
    assert "the program stopped with TypeError" in done.err
    assert "so there is no graph" not in done.err


def test_the_traceback_is_the_user_s_own(run):
    done = run("import tensorflow as tf\n\ndef go():\n    tf.reshape([1], [7])\n\ngo()\n", "show", "")
    assert done.returncode == 1
    lines = [line.strip() for line in done.err.splitlines() if line.strip().startswith("File")]
    assert lines == ['File "model.py", line 6, in <module>', 'File "model.py", line 4, in go']


def test_what_an_exception_came_from_is_shown(run):
    script = "try:\n    {}['k']\nexcept KeyError as key:\n    raise ValueError('late') from key\n"
    done = run(script, "show", "")
    lines = [line.strip() for line in done.err.splitlines() if line.strip()]
    assert "KeyError: 'k'" in lines
    assert "The above exception was the direct cause of the following exception:" in lines
    assert lines[-1] == "simplace: model.py: the program stopped with ValueError: late at model.py:4"
    group = run("raise ExceptionGroup('two', [ValueError('a'), TypeError('b')])\n", "show", "")
    assert "| ValueError: a" in group.err
    assert "| TypeError: b" in group.err
    assert run("import sys\nsys.exit('no data')\n", "show", "").err.startswith("no data\n")


def test_a_program_that_changes_its_folder_finds_its_own_file(run):
    text = """
        import inspect, os
        import tensorflow as tf
        os.chdir(os.path.dirname(__file__))
        os.chdir("/")
        @tf.function
        def step(x):
            if tf.reduce_sum(x) > 0.0:
                return x * 2.0
            return x
        def stop():
            raise KeyError(inspect.getsource(stop)[:9])
        step(tf.ones([2]))
        stop()
    """
    done = run(dedent(text), "show", "")
    assert "agrees with TensorFlow" in done.out
    assert '  File "model.py", line 12, in stop\n    raise KeyError' in done.err
    assert "the program stopped with KeyError: 'def stop(' at model.py:12" in done.err


def test_programs_before_a_failure_are_shown(run):
    done = run(FUNCTION + "step(tf.ones([2, 2]))\nraise KeyError('late')\n", "show", "")
    assert done.returncode == 1
    assert "step: tf.function called on GPU:0" in done.out
    assert "KeyError: 'late'" in done.err


@pytest.mark.parametrize("words", [("show",), ("explain", "MatMul"), ("schedule",), ("check",)], ids=lambda w: w[0])
def test_a_failure_after_a_placement_never_exits_with_0(run, words):
    command, *rest = words
    done = run(FUNCTION + "step(tf.ones([2, 2]))\nraise KeyError('late')\n", command, "", *rest)
    assert done.returncode == 1
    assert done.err.rstrip().splitlines()[-1].startswith("simplace: model.py: the program stopped with KeyError")


def test_functions_never_called_are_named(run):
    done = run(FUNCTION, "show", "")
    assert done.returncode == 0
    assert "quiet: tf.function" in done.out
    assert "never is a tf.function that was never called: call it in the program, as in never(x)" in done.out


def test_a_check_says_what_it_did_not_see(run):
    report = "report.xml"
    done = run(FUNCTION + "step(tf.ones([2, 2]))\n", "check", "", "--junit", report)
    assert done.returncode == 0
    assert "; never (model.py:9) was not reached" in done.out
    assert '<skipped message="not called" />' in Path(report).read_text()
    complete = run(FUNCTION + "step(tf.ones([2, 2]))\n", "check", "", "--complete")
    assert complete.returncode == 1
    assert "not complete: never: not called" in complete.out


def test_a_predicted_failure_is_a_skipped_case_of_a_check(run):
    program = """
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def shout(x):
            return tf.strings.length(tf.strings.as_string(x))

        try:
            shout(tf.ones([2]))
        except tf.errors.InvalidArgumentError:
            print("no")
    """
    done = run(dedent(program), "check", "", "--junit", "report.xml", "--devices", "cpu:1,gpu:1")
    assert done.returncode == 0
    case, _ = ElementTree.parse("report.xml").findall(".//testcase[@name='runs where it is placed']/skipped")
    assert case.get("message").startswith("predicted to fail (not-compilable): XLA has no kernel for AsString")


def test_one_function_of_a_script(run):
    called = run(FUNCTION + "step(tf.ones([2, 2]))\n", "show", ":step", "--json", "-", "--", "-v", "3")
    assert [p["name"] for p in json.loads(called.out)["programs"]] == ["step"]
    assert "arguments: ['-v', '3']" in called.err
    missing = run(FUNCTION, "show", ":stop")
    assert (missing.returncode, "no tf.function of the name stop" in missing.err) == (2, True)


@pytest.mark.parametrize("command", ["show", "check", "doctor"])
def test_a_training_loop_is_computed_for_its_first_calls(run, command):
    loop = FUNCTION + "for i in range(1000):\n    step(tf.ones([2, 2]))\nprint('the end')\n"
    done = run(loop, command, "", "--calls", "5")
    assert done.returncode == int(command == "doctor")  # which finds that there is no device as `step` requests
    assert "the end" in done.out
    assert (
        "note: step was computed 5 times; 995 later calls returned the latest values (--calls all computes every one)."
        in done.out
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ending_it_ends_the_program_and_leaves_nothing(tmp_path, number, status):
    file, scratch = tmp_path / "model.py", tmp_path / "scratch"
    scratch.mkdir()
    file.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(1000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "simplace", "show", "model.py"]
    running = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals
    )
    pid = tmp_path / "pid"
    assert within(PATIENT, lambda: pid.exists() and pid.read_text() != "")
    running.send_signal(number)
    assert running.wait(timeout=PATIENT) == status
    assert "".join(running.stderr) == ("simplace: interrupted\n" if number == signal.SIGINT else "")
    assert list(scratch.iterdir()) == []
    assert within(PATIENT, lambda: not runs(int(pid.read_text()))), "what the program started ended"


@pytest.mark.usefixtures("forked")
def test_the_library_does_the_same(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(FUNCTION + "step(tf.ones([2, 2]))\n")
    result = simplace.place(f"{file}:step", devices="cpu:1,gpu:2")
    (placed,) = result
    assert placed.name == "step"
    assert {n.name: n.device[-5:] for n in result.nodes}["MatMul"] == "GPU:1"
    assert {n.name: n.source for n in result.nodes}["MatMul"].endswith("model.py:16")
    assert "It requested /device:GPU:1 and got GPU:1." in str(result.explain("MatMul"))
    assert [(c.tensor, c.size) for c in result.copies if c.source != c.target][:1] == [("x:0", 16)]
    assert set(result.to_networkx().nodes) == {n.name for n in result.nodes}
    assert result.to_json()["programs"][0]["agreement"]["same"] == len(result.nodes)
    assert "<svg" in result._repr_html_()
    assert result.agrees
