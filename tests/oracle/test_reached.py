"""The last line says what TensorFlow was not seen to place, and what ended a run early."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, place
from simplace.errors import ProgramError
from simplace.machine.machine import Machine
from simplace.program.observation import Unreached
from simplace.result import Result
from simplace.views.text import summary

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

KINDS = """\
    import tensorflow as tf
    @tf.function
    def train(x):
        return inner(x) * 2.0
    @tf.function
    def inner(x):
        return x + 1.0
    @tf.function
    def test_step(x):
        return x
    @tf.function
    def mapped(x):
        return x + 1
    @tf.function
    def broken(x):
        raise ValueError("no")
    class Model(tf.Module):
        @tf.function
        def go(self, x):
            return x * 3.0
        @tf.function
        def stay(self, x):
            return x * 3.0
    Model().go(tf.ones([2]))
    with tf.GradientTape() as tape:
        x = tf.ones([3])
        tape.watch(x)
        y = train(x)
    tape.gradient(y, x)
    mapped.get_concrete_function(tf.constant(1))
    try:
        broken(1.0)
    except ValueError:
        pass
    session = tf.compat.v1.Session(graph=tf.Graph())
"""
ALL_SEEN = """\
    import functools
    import tensorflow as tf
    def step(scale, x):
        return x * scale
    double = tf.function(functools.partial(step, 2.0))
    @tf.function(jit_compile=True)
    def compiled(x):
        return x + 1.0
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def quiet(x):
        return x
    @tf.function
    def outer(x):
        @tf.function
        def inner(y):
            return y * 2.0
        return inner(x) + 1.0
    outer(double(compiled(tf.ones([2]))))
    traced = tf.function(lambda x: x - 1.0).get_concrete_function(tf.TensorSpec([2]))
    traced(tf.ones([2]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.constant(1.0) + 2.0)
"""
ONE_LEFT = """\
    import tensorflow as tf
    @tf.function
    def step(x):
        return x + 1.0
    @tf.function
    def test_step(x):
        return x
    step(tf.ones([2]))
"""
RETRACED = """\
    inner = tf.function(lambda x: sum([x] * 500))
    @tf.function
    def large(x):
        return x, inner(tf.ones([2]))
    for i in range(60): large(tf.ones([i]))
    print("the end")
"""
GROWING = """\
    with tf.Graph().as_default():
        y = sum([tf.ones([2])] * 500)
        session = tf.compat.v1.Session()
        for _ in range(60):
            y = y + 1.0
            session.run(y)
"""
EAGERLY = """\
    import tensorflow as tf
    @tf.function
    def step(x):
        return x + 1.0
    step(tf.ones([2]))
    tf.config.run_functions_eagerly(True)
    @tf.function
    def test_step(x):
        return x
    test_step(1.0)
    tf.config.run_functions_eagerly(False)
"""
UNPLACED = """\
    import tensorflow as tf
    @tf.function
    def broken(x):
        raise ValueError("no")
    @tf.function
    def left(x):
        return x
    try:
        broken(1.0)
    except ValueError:
        pass
    tf.config.run_functions_eagerly(True)
    @tf.function(input_signature=[tf.TensorSpec([2])])
    def eager(x):
        print("eager", x.shape)
        return x + 1.0
    eager(tf.ones([2]))
"""

Run = Callable[..., Result]


def agreement_line(found: Result) -> str:
    """Return the last line without the number of eager ops."""
    return re.sub(r", \d+/\d+ eager ops", "", summary.agreement_line(found))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def place_text(text: str, target: str = "model.py", timeout: float = 900.0) -> Result:
        Path("model.py").write_text(dedent(text))
        return place(target, Settings(Machine(gpus=1), timeout=timeout))

    return place_text


def test_what_no_call_reached_is_named_with_its_line(run: Run) -> None:
    found = run(KINDS)
    assert found.unreached == (
        Unreached("test_step", "model.py:8", "not called"),
        Unreached("mapped", "model.py:11", "only traced"),
        Unreached("broken", "model.py:14", "call failed"),
        Unreached("stay", "model.py:21", "not called"),
        Unreached("Session", "model.py:35", "not called"),
    )
    functions = [placed for placed in found if placed.placement.program.kind == "function"]
    count = sum(placed.agreement.total for placed in functions if placed.agreement)
    assert agreement_line(found) == (
        f"agrees with TensorFlow {found.tensorflow}: {count}/{count} nodes; "
        "test_step (model.py:8), stay (model.py:21) and Session (model.py:35) were not reached; "
        "the call of broken (model.py:14) failed before it was placed; "
        "mapped (model.py:11) was traced, but no call of it was placed"
    )


def test_a_program_whose_functions_were_all_seen_says_nothing_more(run: Run) -> None:
    found = run(ALL_SEEN)
    assert agreement_line(found).endswith(" nodes")
    assert (found.unreached, found.ending) == ((), "")


def test_what_ended_a_run_is_in_its_last_line(run: Run) -> None:
    for limit in (3.0, 30.0, 600.0):  # a busy machine may need longer to get to the call
        with suppress(ProgramError):  # nothing was placed
            late = run(ONE_LEFT + "    import time; time.sleep(1000)\n", timeout=limit)
            if any(placed.agreement and placed.agreement.total == 5 for placed in late):
                break
    raised = run(ONE_LEFT + "    raise KeyError\n")
    left = run(ONE_LEFT + "    import sys; sys.exit(3)\n")
    growing = run(ONE_LEFT + GROWING)
    lines = [agreement_line(replace(each, tensorflow="X")) for each in (late, raised, left)]
    rest = "test_step (model.py:5) was not reached"
    assert lines == [
        f"agrees with TensorFlow X: 5/5 nodes, until the time limit ended the run; {rest}",
        f"agrees with TensorFlow X: 5/5 nodes, until the program stopped with an exception; {rest}",
        f"agrees with TensorFlow X: 5/5 nodes, until the program exited with an error; {rest}",
    ]
    assert agreement_line(growing).endswith(f" nodes, until simplace stopped the program; {rest}")
    said = "The program was stopped at model.py:14: Session.run was placed 50 times, each time with another graph"
    assert growing.remarks[0].startswith(said)


def test_a_large_function_is_traced_again_and_again_to_the_end(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    found = run(ONE_LEFT + RETRACED)
    assert (found.ending, sum(placed.name.startswith("large") for placed in found)) == ("", 50)
    assert capfd.readouterr().out == "the end\n"
    said = (
        "large was placed 60 times, each time with another signature or other devices; the last 10 are not shown "
        "(--calls all shows every one)."
    )
    assert said in found.remarks
    assert found.coverage is not None
    assert found.coverage.missing


def test_one_function_alone_says_nothing_of_others(run: Run) -> None:
    assert agreement_line(run(ONE_LEFT, "model.py:step")).endswith("5/5 nodes")
    assert agreement_line(run(ONE_LEFT).only("step")).endswith("5/5 nodes")


def test_only_what_no_call_reached_is_said_to_be_uncalled(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    found = run(UNPLACED)
    assert found.unreached == (
        Unreached("broken", "model.py:2", "call failed"),
        Unreached("left", "model.py:5", "not called"),
        Unreached("eager", "model.py:13", "eager"),
    )
    assert [remark for remark in found.remarks if "called" in remark] == [
        "left is a tf.function that was never called: call it in the program, as in left(x), or give it an "
        "input_signature."
    ]
    assert capfd.readouterr().out == "eager (2,)\n"


def test_functions_that_run_eagerly_are_named_as_such(run: Run) -> None:
    assert agreement_line(run(EAGERLY)).endswith(
        "5/5 nodes; test_step (model.py:7) was not traced, since functions run eagerly"
    )


MANY_OF_ONE_NAME = """\
import tensorflow as tf
inner = tf.function(lambda x: sum([x] * 500))
{functions}
for function in functions:
    function(tf.ones([2]))
print("the end")
"""


def test_functions_of_one_name_are_many_functions_not_one_that_is_traced_again(run: Run) -> None:
    each = ",\n".join(f"    tf.function(lambda x: inner(x) + {i}.0)" for i in range(52))
    found = run(MANY_OF_ONE_NAME.format(functions=f"functions = [\n{each},\n]"))
    assert (found.ending, len(found.programs), found.remarks) == ("", 52, ())


def test_a_small_function_may_be_traced_again_for_each_of_many_shapes(run: Run) -> None:
    found = run(ONE_LEFT + "    for i in range(99): step(tf.ones([i]))\n")
    assert found.ending == ""
    assert len([placed for placed in found.programs if placed.name == "step"]) == 99


def test_sessions_of_many_lines_are_not_one_that_is_given_new_nodes_again(run: Run) -> None:
    each = "with tf.Graph().as_default(), tf.Session() as session:\n    session.run(sum([tf.ones([])] * 400))\n"
    head = "import tensorflow.compat.v1 as tf\n"
    found = run(head + each * 52)
    assert (found.ending, len(found.programs), found.remarks) == ("", 52, ())
