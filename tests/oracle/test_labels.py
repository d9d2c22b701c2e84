"""What the programs of a run are called: by what they are to Keras, by the line where one name is not enough."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Write a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("model.py").write_text(dedent(text))


KERAS = """\
    import keras, numpy as np
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, name="hidden"), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd", jit_compile=False)
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model.fit(x, y, verbose=0, validation_data=(x, y))
    model.predict(x, verbose=0)
    model.train_on_batch(x, y)
"""


def test_the_steps_of_keras(write) -> None:
    write(KERAS)
    result = simplace.place("model.py", "gpu:1")
    steps = [(placed.name, placed.title) for placed in result if placed.placement.program.kind == "function"]
    assert steps == [
        ("multi_step_on_iterator", "fit, train step (model.py:5)"),
        ("multi_step_on_iterator", "fit, test step (model.py:5)"),
        ("one_step_on_data_distributed", "predict, predict step (model.py:6)"),
        ("one_step_on_data", "train_on_batch, train step (model.py:7)"),
    ]
    assert result.largest().title == "fit, train step (model.py:5)"
    assert result.program("fit, test step").title == "fit, test step (model.py:5)"
    titles = [program["label"] for program in result.to_json()["programs"]]
    assert len(set(titles)) == len(titles)
    assert result.agrees


def test_functions_of_one_name(write) -> None:
    write("""\
        import tensorflow as tf
        w = tf.Variable(tf.ones([2, 2]))
        def make(scale):
            @tf.function
            def step(x):
                return tf.matmul(x, w) * scale
            return step
        @tf.function
        def reset():
            w.assign(tf.random.normal([2, 2]) + tf.random.normal([2, 2]) + tf.random.normal([2, 2]) + 1.0)
        one, two = make(1.0), make(2.0)
        reset()
        one(w)
        two(w)
        for rows in (3, 4):
            one(tf.ones([rows, 2]))
    """)
    result = simplace.place("model.py", "gpu:1")
    assert [placed.title for placed in result] == [
        "reset", "step (model.py:13)", "step (model.py:14)", "step (model.py:16)", "step (model.py:16) #2"
    ]  # fmt: skip
    assert [placed.is_initializer for placed in result] == [True, False, False, False, False]
    assert len(result.program("reset").placement.decisions) > len(result.largest().placement.decisions)
    assert result.largest().title == "step (model.py:13)"
