"""Whether the program catches what TensorFlow raises: then it is a note, with the line of the `except`."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.api import Placements, Settings, place
from simplace.doctor.advice import advise_on_finding
from simplace.explain.finding import Failure
from simplace.exports.failure_report import list_predicted
from simplace.machine.machine import Machine
from simplace.views.text import summary

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

OPS = """\
import contextlib
import tensorflow as tf
tf.config.set_soft_device_placement(False)
x = tf.constant(["a"])
def length():
    with tf.device("GPU:0"):
        return tf.strings.length(x)
"""
CALLS = """\
import contextlib, unittest, tensorflow as tf; case = unittest.TestCase()
with tf.device("CPU:0"):
    v = tf.Variable([1.0])
@tf.function(jit_compile=True)
def f(x):
    return x + v
x = tf.constant([1.0])
"""


def _place(path: Path, text: str) -> Placements:
    path.write_text(text)
    return place(str(path), Settings(Machine(gpus=1)))


def _list_levels(result: Placements) -> list[tuple[str, str | None]]:
    """Return the level of each finding, and the number of the line where the program catches its error."""
    return [(one.severity, one.caught_at and one.caught_at.rpartition(":")[2]) for one in result.diagnose()]


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("try:\n    length()\nexcept tf.errors.InvalidArgumentError:\n    pass", ("note", "10")),
        ("try:\n    length()\nexcept (KeyError, Exception) as e:\n    print(type(e))", ("note", "10")),
        ("try:\n    length()\nexcept KeyError:\n    pass", ("error", None)),
        ("try:\n    length()\nexcept Exception:\n    raise SystemExit(0)", ("note", "")),
        ("try:\n    length()\nexcept Exception:\n    raise SystemExit(1)", ("error", None)),
        ("try:\n    length()\nexcept Exception as e:\n    kept = e\nraise kept", ("error", None)),
        ("try:\n    length()\nexcept Exception as e:\n    raise KeyError from e", ("error", None)),
        ("with contextlib.suppress(tf.errors.OpError):\n    length()", ("note", "8")),
        ("try:\n    length()\nfinally:\n    print(x)", ("error", None)),
        ("try:\n    pass\nexcept Exception:\n    pass\nelse:\n    length()", ("error", None)),
    ],
)
def test_an_op_that_is_refused(rest: str, found: tuple[str, str | None], tmp_path: Path) -> None:
    assert _list_levels(_place(tmp_path / "model.py", OPS + rest)) == [found]


def test_a_function_that_is_refused(tmp_path: Path) -> None:
    rest = "step = tf.function(length)\ntry:\n    step()\nexcept tf.errors.InvalidArgumentError:\n    print('on')\n"
    result = _place(tmp_path / "model.py", OPS + rest)
    assert _list_levels(result) == [("note", "11")]
    caught = f"(INVALID_ARGUMENT, caught at {tmp_path}/model.py:11)"
    assert f"refused: TensorFlow does not place this graph {caught}" in summary.write_summary(result)


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("try:\n    f(x)\nexcept tf.errors.InvalidArgumentError:\n    print('no XLA')", ("note", "10")),
        ("try:\n    f(x)\nexcept tf.errors.NotFoundError:\n    print('no XLA')", ("error", None)),
        ("try:\n    f(x)\nexcept Exception:\n    raise", ("error", None)),
        ("try:\n    f(x)\nexcept Exception as e:\n    if x[0] > 1.0: raise e", ("error", None)),
        ("try:\n  try:\n    f(x)\n  except Exception:\n    raise\nexcept Exception:\n    pass", ("note", "13")),
        ("try:\n    f(x)\nexcept Exception:\n    exit(1)", ("error", None)),
        ("for _ in range(2):\n  try:\n    f(x)\n  except Exception:\n    pass", ("note", "11")),
        ("try:\n    f(x)\nexcept Exception:\n    f = tf.identity\nf(x)", ("note", "10")),
        ("with contextlib.suppress(KeyError, tf.errors.OpError):\n    f(x)", ("note", "8")),
        ("with contextlib.suppress(KeyError):\n    f(x)", ("error", None)),
        ("with contextlib.closing(contextlib.ExitStack()):\n    f(x)", ("error", None)),
        ("with contextlib.suppress(AssertionError), case.assertRaises(Exception):\n    f(x)", ("note", "8")),
    ],
)
def test_a_call_that_is_foretold_to_fail(rest: str, found: tuple[str, str | None], tmp_path: Path) -> None:
    result = _place(tmp_path / "model.py", CALLS + rest)
    assert _list_levels(result) == [found]
    verb = "raises" if found[0] == "note" else "fails"
    assert summary.failure_lines(list_predicted(result)).startswith(f"{verb} when run: XLA compiles f for GPU:0")


XLA_ERRORS = """\
import unittest, tensorflow as tf
@tf.function(jit_compile=True)
def lacks_kernel(x):
    return tf.strings.length(tf.strings.as_string(x))
@tf.function
def calls_it(x):
    return lacks_kernel(x) + 1
@tf.function(jit_compile=True)
def grows(n):
    x = tf.zeros([1])
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
        x = tf.concat([x, x], 0)
    return x
case, seen = unittest.TestCase(), []
for times in range(2):
    for step, value in ((lacks_kernel, 1.0), (calls_it, 1.0), (grows, 3)):
        try:
            step(tf.constant(value))
        except tf.errors.InvalidArgumentError as error:
            seen.append(step.__name__ if error.op is None else "")
    with case.assertRaises(tf.errors.InvalidArgumentError):
        lacks_kernel(tf.constant(2.0))
assert seen == 2 * ["lacks_kernel", "calls_it", "grows"], seen
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_an_error_of_xla_comes_to_the_program_that_catches_it(gpus: int, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(XLA_ERRORS)
    result = place(str(path), Settings(Machine(gpus=gpus)))
    assert result.failure is None
    found = [one for one in result.diagnose() if isinstance(one, Failure)]
    assert {(one.rule, one.severity, one.was_raised) for one in found} == {
        ("not-compilable", "note", True),
        *([("xla-refuses", "note", True)] if gpus else []),
    }
    assert all("; the program goes on." in advise_on_finding(one).what for one in found)


def test_an_error_of_a_gpu_alone_is_foretold(tmp_path: Path) -> None:
    result = _place(
        tmp_path / "model.py", CALLS + "try:\n    f(x)\nexcept Exception:\n    pass\nassert float(f(x)[0]) == 2.0"
    )
    assert result.failure is None
    assert "the call was computed" in advise_on_finding(result.diagnose()[0]).what


@pytest.mark.parametrize(
    ("rest", "level"),
    [("try:\n    f(x, text)\nexcept tf.errors.InvalidArgumentError:\n    pass", "note"), ("f(x, text)", "error")],
)
def test_a_string_that_xla_is_given_is_no_refusal(rest: str, level: str, tmp_path: Path) -> None:
    text = "import tensorflow as tf\nx, text = tf.constant([1.0]), tf.constant(['a'])\n"
    text += "@tf.function(jit_compile=True)\ndef f(x, text):\n    return 2 * x\n"
    result = _place(tmp_path / "model.py", f"{text}{rest}")
    (found,) = (one for one in result.diagnose() if isinstance(one, Failure))
    assert (found.rule, found.severity, found.nodes) == ("not-copied", level, ("f",))
    assert "Can't copy Tensor with type string" in found.error
    (placed,) = result.programs
    assert placed.agreement is not None
    assert (placed.agreement.holds, str(placed.agreement)) == (True, "1/1 nodes")
    assert (result.failure is None) == (level == "note")


UNCAUGHT = """\
import numpy as np, tensorflow as tf
class Length(tf.keras.layers.Layer):
    def call(self, x):
        return x * tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)
model = tf.keras.Sequential([Length(), tf.keras.layers.Dense(1)])
model.compile(loss="mse", optimizer="sgd")
model.fit(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), verbose=0)
print("Keras has it compiled only where it sees a GPU")
@tf.function(jit_compile=True)
def lacks_kernel(x):
    return tf.strings.length(tf.strings.as_string(x))
try:
    lacks_kernel(tf.constant(1.0))
finally:
    print("finally")
print("not reached")
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_an_error_of_xla_that_nothing_catches_ends_the_program(gpus: int, tmp_path: Path, capfd) -> None:
    path = tmp_path / "model.py"
    path.write_text(UNCAUGHT)
    result = place(str(path), Settings(Machine(gpus=gpus)))
    assert capfd.readouterr().out == "Keras has it compiled only where it sees a GPU\nfinally\n"
    assert (result.ending, getattr(result.failure, "status", None)) == ("raised", 1)
    found = {(one.rule, one.severity, one.source.rpartition(":")[2]) for one in result.diagnose()}
    assert {("not-compilable", "error", "11"), *([("not-compilable", "error", "4")] if gpus else [])} <= found


RANDOM = """\
import tensorflow as tf
def draw(seed):
    return tf.random.stateless_uniform([2], seed, 0, 1000, tf.int32), tf.random.stateless_normal([2], seed) > 0
compiled, plain = tf.function(draw, jit_compile=True), tf.function(draw)
@tf.function
def calls(seed):
    return compiled(seed)
for step in (compiled, plain, calls):
    print(*(each.numpy().tolist() for each in step(tf.constant([1, 2]))))
"""


def test_random_numbers_are_those_of_xla_where_it_compiles(tmp_path: Path, capfd) -> None:
    path, printed = tmp_path / "model.py", []
    path.write_text(RANDOM)
    for gpus in (0, 1):
        assert place(str(path), Settings(Machine(gpus=gpus))).failure is None
        printed.append(capfd.readouterr().out)
    compiled, plain, called = printed[0].splitlines()
    assert (printed[0], compiled) == (printed[1], called)
    assert compiled != plain


FITTED_IN_A_TRY = """\
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
try:
    model = tf.keras.Sequential([tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(2)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.rand(64, 8).astype("float32"), np.random.randint(0, 2, 64)
    print(f"{model.fit(x, y, verbose=0, shuffle=False).history['loss'][0]:.4f}")
except Exception as error:
    print(error)
"""


def test_a_step_that_keras_compiles_by_itself_has_the_numbers_of_the_cpu(tmp_path: Path, capfd) -> None:
    path = tmp_path / "model.py"
    path.write_text(FITTED_IN_A_TRY)
    for gpus in (0, 1):
        assert place(str(path), Settings(Machine(gpus=gpus))).failure is None
    without, with_gpu = capfd.readouterr().out.splitlines()
    assert without == with_gpu
