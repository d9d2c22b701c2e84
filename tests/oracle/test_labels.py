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


def test_the_first_call_of_a_function_that_makes_variables_under_a_strategy(write) -> None:
    write("""\
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        made = []
        @tf.function
        def step(x):
            def of_replica(x):
                if not made:
                    made.append(tf.Variable(tf.ones([2, 2])))
                return tf.reduce_sum(tf.tanh(tf.matmul(x, made[0])))
            return strategy.reduce("SUM", strategy.run(of_replica, (x,)), axis=None)
        for _ in range(3):
            step(tf.ones([2, 2]))
    """)
    result = simplace.place("model.py", "gpu:2")
    assert [placed.title for placed in result] == ["step, first call (model.py:12)", "step"]
    assert result.largest().title == "step", "which runs again and again"
    assert len({placed.placement.program.owner for placed in result}) == 1
    assert result.agrees
    said = simplace.place("model.py", "gpu:2", calls=1).remarks
    assert said == (
        "step was computed once; 1 later call returned the latest values (--calls all computes every one).",
    )


def test_which_function_a_trace_is_of(write) -> None:
    write("""\
        import tensorflow as tf
        class Scale(tf.Module):
            @tf.function
            def __call__(self, x):
                return x * 2.0
        class Both(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([2])])
            def one(self, x):
                return x + 1.0
            @tf.function(input_signature=[tf.TensorSpec([2])])
            def other(self, x):
                return x - 1.0
        for _ in range(2):
            Scale()(tf.ones([2]))
        tf.saved_model.save(Both(), "both")
        loaded = tf.saved_model.load("both")
        loaded.one(tf.ones([2])), loaded.other(tf.ones([2]))
    """)
    calls = [placed.placement.program for placed in simplace.place("model.py", "gpu:1")]
    owners = {name: [program.owner for program in calls if program.name == name] for name in ("__call__",)}
    assert len(owners["__call__"]) == 2
    assert len(set(owners["__call__"])) == 1, "of one code of the program's own"
    loaded = [program for program in calls if program.name == "restored_function_body"]
    assert len({program.owner for program in loaded}) == len(loaded) == 2
    assert 0 not in {program.owner for program in loaded}


def test_a_package_is_a_library_in_any_folder_of_packages(write) -> None:
    kit = Path("elsewhere/site-packages/kit.py")
    kit.parent.mkdir(parents=True)
    kit.write_text("import tensorflow as tf\ndef double(x):\n    return tf.multiply(x, 2.0)\n")
    write("""\
        import sys
        import tensorflow as tf
        sys.path.append("elsewhere/site-packages")
        import kit
        @tf.function
        def step(x):
            return kit.double(x)
        kit.double(step(tf.ones([2])))
    """)
    result = simplace.place("model.py", "gpu:1")
    (notes,) = result.program("step").placement.program.notes.values()
    assert notes["Mul"].at == "model.py:7"
    eager = [placed.placement.op for placed in result.eager.ops]
    assert [(op.at, op.library) for op in eager if op.op == "Mul"] == [("model.py:8", "kit")]


def test_the_session_that_does_the_work_is_that_of_the_largest_run_not_of_the_largest_graph(write) -> None:
    write("""\
        import numpy as np, tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.get_variable("w", initializer=tf.ones([3, 2]))
        loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train, {x: np.ones([4, 3])})
            session.run(tf.report_uninitialized_variables())
    """)
    result = simplace.place("model.py", "gpu:1")
    assert [placed.title for placed in result] == ["Session.run", "Session.run (2)"]
    first, second = result
    assert len(second.placement.decisions) > len(first.placement.decisions), "the later one has the ops of the earlier"
    assert result.largest() is first, "which trains"
    assert result.agrees


LOOP_OVER_DATASET = """
import tensorflow as tf
w = tf.Variable(tf.ones([4, 4]))
rows = tf.data.Dataset.from_tensor_slices(tf.ones([6, 4])).map(lambda x: tf.sqrt(tf.exp(tf.sin(x)))).batch(2)
@tf.function
def train():
    total = 0.0
    for x in rows:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        total += loss
    return total
train()
"""


def test_the_body_of_a_loop_over_a_dataset_is_the_step(write) -> None:
    write(LOOP_OVER_DATASET)
    result = simplace.place("model.py", "gpu:1")
    assert result.largest().placement.program.known_as == "for: loop_body"
