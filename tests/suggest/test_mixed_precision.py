"""Mixed precision: what a loop of one's own has to do besides, and what Keras's fit does by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.suggestions.suggestion_sentences import lacks_loss_scaling
from simplace.suggestions.type_changes import find_mixed_precision
from tests.suggest.observed import observe

MODEL = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input([64]), tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.SGD(0.1)
"""
LOOP = """
@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.cast(model(batch), tf.float32)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

step(tf.ones([8, 64]))
"""
SCALED = LOOP.replace("tape.gradient(loss,", "tape.gradient(optimizer.scale_loss(loss),")
FIT = """
model.compile(optimizer, "mse", jit_compile=False)
model.fit(tf.ones([8, 64]), tf.ones([8, 64]), verbose=0)
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("program", "lacks"),
    [(LOOP, True), (SCALED, False), (FIT, False), (LOOP.replace("    optimizer", "    #"), False)],
    ids=["loop", "scaled", "fit", "no gradients"],
)
def test_a_loop_of_its_own_has_to_scale_the_loss(
    program: str, lacks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    observed = observe(MODEL + program, "cpu:1,gpu:1")
    (change,) = find_mixed_precision(observed.evidence)
    trial = observed.attempt(change)
    assert trial.after is not None, trial.error
    assert lacks_loss_scaling(trial) == lacks
