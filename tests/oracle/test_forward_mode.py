"""Functions that TensorFlow makes itself, as for gradients in forward mode, are never what stands for the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.api import Settings, place
from simplace.machine.machine import Machine

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

HEAD = """\
import tensorflow as tf
w = tf.Variable(tf.ones([4, 4]))
x = tf.ones([3, 4])
step = tf.function(lambda y: tf.reduce_sum(y * 2.0))
matmul = tf.function(tf.matmul)
with tf.autodiff.ForwardAccumulator(primals=w, tangents=tf.ones([4, 4])) as acc:
    y = tf.reduce_sum(tf.nn.softmax(x @ w) ** 2, axis=0)
"""


def _place(path: Path, rest: str) -> tuple[str, bool, list[str], list[str]]:
    """Return the program that is drawn, whether all work is eager, TensorFlow's own functions, and what is found."""
    path.write_text(HEAD + rest)
    result = place(str(path), Settings(Machine(gpus=1)))
    assert result.agrees
    programs = [placed.placement.program for placed in result]
    own = sorted({program.name for program in programs if program.is_internal})
    return result.largest().name, result.works_eagerly, own, [one.rule for one in result.diagnose()]


def test_the_function_of_the_user_is_the_step(tmp_path: Path) -> None:
    drawn, is_eager, own, found = _place(tmp_path / "model.py", "    z = step(y)\n")
    assert (drawn, is_eager, own) == ("<lambda> (forward)", False, ["_jvp_exact_shapes"])
    assert "retraced" not in found


def test_a_program_without_functions_of_its_own_works_eagerly(tmp_path: Path) -> None:
    drawn, is_eager, own, _ = _place(tmp_path / "model.py", "print(acc.jvp(y))\n")
    assert (drawn, is_eager, own) == ("_jvp_exact_shapes", True, ["_jvp_exact_shapes"])


def test_an_op_that_the_user_makes_a_function_of_is_the_users(tmp_path: Path) -> None:
    drawn, is_eager, own, _ = _place(tmp_path / "model.py", "print(matmul(x, w))\n")
    assert (drawn, is_eager, own) == ("matmul", False, ["_jvp_exact_shapes"])
