"""Updates beside their variables: which assignments get a scope, and what TensorFlow's log says of the patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.executor.step_options import StepOptions
from simplace.suggestions.edits import apply_edits
from simplace.suggestions.estimated_step import estimate_pinned
from simplace.suggestions.gradient_changes import find_update_changes
from simplace.suggestions.suggestion_sentences import describe_change
from tests.suggest.observed import observe

PROGRAM = """\
import tensorflow as tf

with tf.device("/GPU:1"):
    weights = [tf.Variable(tf.ones([512, 512])) for _ in range(3)]

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        for weight in weights:
            with tf.device("/GPU:1"):
                x = tf.matmul(x, weight)
        loss = tf.reduce_sum(x)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.1 * gradient)
    return loss

step(tf.ones([8, 512]))
"""
SCOPED = PROGRAM.replace(
    "        weight.assign_sub(0.1 * gradient)\n",
    "        with tf.device(weight.device):\n            weight.assign_sub(0.1 * gradient)\n",
)

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


def test_an_update_in_a_loop_is_computed_where_each_variable_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    observed = observe(PROGRAM)
    evidence = observed.evidence
    alone, both = find_update_changes(evidence)
    assert describe_change(alone) == "model.py:14: compute the update on the device of its variable"
    assert [part.kind for part in both.list_parts()] == ["colocated-gradients", "updates-beside-variables"]
    assert apply_edits(evidence.files[0], alone.edits) == SCOPED
    trial = observed.attempt(both)
    assert trial.result is not None
    assert (trial.outcome, trial.result.agrees) == ("held", True)
    assert trial.gain > trial.gain_error
    estimate = estimate_pinned(evidence.placed, (), alone.pins, StepOptions())
    changed = observe(SCOPED)
    assert estimate is not None
    assert estimate.nanoseconds == changed.step.schedule.trace.makespan
    assert [part.kind for change in find_update_changes(changed.evidence) for part in change.list_parts()] == []


def test_an_update_that_is_where_its_variable_is_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    observed = observe(PROGRAM.replace("/GPU:1", "/GPU:0"))
    assert list(find_update_changes(observed.evidence)) == []
