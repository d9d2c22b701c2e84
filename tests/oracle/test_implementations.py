"""Functions that stand in for each other, as the layers of Keras 2 have them: one for CPUs and one for GPUs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
PROGRAM = """\
    import tensorflow as tf

    def make(device, body):
        attributes = {"api_implements": "layer", "api_preferred_device": device}
        return tf.function(body, experimental_attributes=attributes, autograph=False)

    @lambda body: make("CPU", body)
    def standard(x, w):
        return tf.matmul(x, w)

    @lambda body: make("GPU", body)
    def fused(x, w):
        return tf.einsum("ij,jk->ik", x, w) * tf.sqrt(1.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(standard(x, w.read_value()))
            other = fused.get_concrete_function(x, w.read_value())
            other.add_to_graph()
            other.add_gradient_functions_to_graph()
        return y, tape.gradient(y, w)

    w = tf.Variable(tf.ones([2, 2]))
    print(step(tf.ones([2, 2]))[0].numpy())
"""
SPECIALIZED = """\
    import tensorflow as tf

    @tf.function(experimental_attributes={"_noinline": True})
    def both(x):
        return tf.sin(x), tf.cos(x)

    @tf.function
    def step(x):
        return both(x)[0] + 1.0

    step(tf.ones([2]))
"""


@pytest.mark.parametrize(("devices", "called"), [("cpu:1", "standard"), ("gpu:1", "fused")])
def test_a_call_is_of_the_function_for_its_device(
    devices: str, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(dedent(PROGRAM))
    result = simplace.place("model.py", devices)
    assert "8.0" in capfd.readouterr().out, "computed on the CPU, by either"
    calls = [placed.name for placed in result if placed.placement.program.kind == "call"]
    assert calls == [f"{called} (forward)", f"{called} (backward)"]
    assert not result.coverage.missing, "what computes the values on the CPU is no part of the program"
    assert result.agrees


def test_a_function_that_is_specialized_for_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(dedent(SPECIALIZED))
    result = simplace.place("model.py", "cpu:1")
    step, both = result.programs
    assert (both.name, both.is_uncalled, both.unreplayed) == ("both", True, "function_optimizer")
    assert step.agreement.holds
    assert not result.coverage.missing
