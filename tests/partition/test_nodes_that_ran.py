"""What TensorFlow's executor runs of a function is what is simulated of it, with Grappler and without."""

import textwrap
from pathlib import Path

import simplace
from benchmarks.nodes_that_ran import list_ran, list_simulated

SCRIPT = """
    import tensorflow as tf

    weights = tf.Variable(tf.zeros([16, 1]))

    def advance(i, x):  # the ones are folded, the remainders merged
        shape = tf.shape(x)
        chosen = tf.random.uniform(shape) < 0.5 * tf.ones(shape)
        rows, same_rows = tf.split(x, 2), tf.split(x, 2)  # not merged: a constant outside of the loop equals theirs
        x = tf.concat([rows[1], same_rows[0]], 0)
        return i + 1, tf.where(chosen, tf.tanh(x), -x) * tf.cast(i % 2 + i % 2, x.dtype) + x * x[0] - x[0] * x

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - y))  # what is squared waits for a gradient that is folded
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss, tf.while_loop(lambda i, _: i < 4, advance, (0, x))[1]

    print(step(tf.ones([8, 16]), tf.ones([8, 1]))[0].shape)
"""


def test_the_same_nodes_run(tmp_path: Path) -> None:
    script = tmp_path / "step.py"
    script.write_text(textwrap.dedent(SCRIPT))
    result = simplace.place(str(script), "cpu:1")
    simulated, ran = list_simulated(result), list_ran(script, "drop")
    assert simulated == ran
    assert any("truediv" in name for name in simulated)
    assert len(simulated) > 15
    rewritten = list_simulated(result, grappler=True)
    assert rewritten.keys() == list_ran(script, "keep").keys()
    assert len(rewritten) < len(simulated)
