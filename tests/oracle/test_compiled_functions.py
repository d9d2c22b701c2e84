"""Functions that XLA compiles, beside TensorFlow: where they run, and what it cannot compile."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.views.text.summary import write_title

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

COMPILED = """\
    import tensorflow as tf
    @tf.function(jit_compile=True)
    def inner(x):
        return tf.tanh(x) @ x
    @tf.function
    def outer(x):
        with tf.device("CPU:0"):
            y = inner(x)
        return inner(y) + 1.0
    inner(tf.ones([2, 2]))
    with tf.device("CPU:0"):
        inner(tf.ones([2, 2]))
    outer(tf.ones([2, 2]))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Write a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("model.py").write_text(dedent(text))


def test_what_is_compiled_is_on_the_device_of_its_call(write) -> None:
    write(COMPILED)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert [write_title(placed) for placed in result] == [
        "inner (model.py:10): tf.function called on GPU:0, 3 ops compiled by XLA, soft placement on",
        "inner (model.py:12): tf.function called on CPU:0, 3 ops compiled by XLA, soft placement on",
        "outer: tf.function called on GPU:0, 7 nodes, soft placement on",
    ]
    found = [[(found.device[-5:], len(found.ops)) for found in placed.clusters] for placed in result]
    assert found == [[("GPU:0", 3)], [("CPU:0", 3)], [("CPU:0", 3), ("GPU:0", 3)]]
    assert [placed.agreement.total for placed in result] == [1, 1, 7]
    assert result.agrees
    assert result.largest().name == "outer"


def test_a_program_that_asks_for_the_form_that_xla_makes(write) -> None:
    write("""\
        import tensorflow as tf
        v = tf.Variable([1.0, 2.0])
        @tf.function(jit_compile=True)
        def f(x):
            return tf.reduce_sum(x * v)
        x = tf.constant([3.0, 4.0]) * 1.0
        text = f.experimental_get_compiler_ir(x)(stage="hlo")
        assert text.startswith("HloModule") and "multiply" in text
        assert f.experimental_get_compiler_ir(tf.TensorSpec([2]))() == text
        assert "multiply" in f.experimental_get_compiler_ir(x)(stage="optimized_hlo")
        assert float(f(x)) == 11.0 and v.numpy().tolist() == [1.0, 2.0]
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert result.failure is None
    assert result.agrees
    (remark,) = [each for each in result.remarks if "experimental_get_compiler_ir" in each]
    assert remark.startswith("experimental_get_compiler_ir(stage='optimized_hlo') returns what XLA makes for the CPU")


def test_without_jit_tensorflow_places_the_ops(write) -> None:
    write(COMPILED)
    result = simplace.check("model.py", "cpu:1,gpu:1", jit=False)
    assert [placed.clusters for placed in result] == [(), (), ()]
    names = {node.name: node.device[-5:] for node in result.program("outer").placement.nodes}
    assert (names["PartitionedCall/Tanh"], names["PartitionedCall_1/Tanh"]) == ("CPU:0", "GPU:0")
    assert result.agrees


def test_keras_says_that_it_compiles(write) -> None:
    program = """\
        import keras, numpy as np
        model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)], name="small")
        model.compile(loss="mse", optimizer="sgd")
        model.fit(np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), verbose=0)
    """
    write(program)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert result.remarks == (
        "Keras compiles the steps of small at model.py:3 with XLA since it sees a GPU (jit_compile='auto'); "
        "compile(jit_compile=False) or --no-jit shows where TensorFlow places their ops.",
    )
    assert result.largest().title == "fit, train step (model.py:4)"
    write(program.replace('"sgd")', '"sgd", jit_compile=False)'))
    assert simplace.place("model.py", "cpu:1,gpu:1").remarks == ()
    write(program)
    (cluster,) = result.largest().clusters
    saved = "import tensorflow as tf\n" + dedent(program).replace("model.fit(", "tf.saved_model.save(model, 'saved') #")
    Path("model.py").write_text(saved)
    assert simplace.place("model.py", "cpu:1,gpu:1").remarks == ()  # no step is made
    write(program)
    plain = simplace.check("model.py", "cpu:1,gpu:1", jit=False)
    assert (plain.remarks, plain.largest().clusters) == ((), ())
    prefix = "StatefulPartitionedCall/"
    without = {node.name: node.device for node in plain.largest().placement.nodes if node.name.startswith(prefix)}
    assert {op.name for op in cluster.ops} <= without.keys()
    assert (result.agrees, plain.agrees) == (True, True)


UNCOMPILABLE = {
    "strings": "tf.strings.length(tf.strings.as_string(x))",
    "py_function": "tf.py_function(lambda a: a, [x], tf.float32)",
    "print": "(tf.print(x), x)[1]",
    "unneeded": "(tf.strings.as_string(x), x)[1]",
    "a constant of unknown size": "x[0] + tf.io.decode_raw(tf.constant(b'aaaa'), tf.float32)",
    "unneeded in a branch": "tf.cond(x[0] > 0.0, lambda: tf.size(tf.strings.as_string(x)), lambda: 0)",
}
COMPILABLE = {
    "loop": "tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])[0]",
    "unneeded in a call": "call(x)",
    "of a constant": "x + tf.cast(tf.strings.length('abc'), tf.float32)",
    "of constants": "x + tf.cast(tf.strings.to_hash_bucket_fast(tf.strings.join(['a', 'b']), 5), tf.float32)",
    "unique": "tf.unique(x)[0] * 2.0",
    "where": "tf.where(x > 0.0)",
    "assert": "(tf.debugging.assert_positive(x), x)[1]",
    "random": "tf.random.stateless_normal([3], [1, 2])",
}


CALLED = "@tf.function\ndef call(x):\n    return (tf.strings.as_string(x), x * 2.0)[1]"


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:1,gpu:1"])
def test_xla_compiles_what_is_said_to_be_compilable(devices: str, write) -> None:
    """TensorFlow compiles on the CPU here, with the same kernels of XLA's as for a GPU."""
    bodies = [*UNCOMPILABLE.values(), *COMPILABLE.values()]
    functions = [f"@tf.function(jit_compile=True)\ndef f{i}(x):\n    return {body}" for i, body in enumerate(bodies)]
    calls = "\n".join([
        "said = []",
        f"for f in ({', '.join(f'f{i}' for i in range(len(bodies)))}):",
        "    try:",
        "        f(tf.ones([3]))",
        "        said.append('compiled')",
        "    except tf.errors.InvalidArgumentError as error:",
        "        said.append('Detected unsupported operations' in str(error))",
        "open('said', 'w').write(repr(said))",
    ])  # fmt: skip
    write("\n".join(["import tensorflow as tf", CALLED, *functions, calls]))
    result = simplace.check("model.py", devices)
    assert (result.failure, result.agrees) == (None, True)
    said = [bool(found.unsupported) or "compiled" for placed in result for found in placed.clusters]
    assert said == ast.literal_eval(Path("said").read_text())
    assert said == [True] * len(UNCOMPILABLE) + ["compiled"] * len(COMPILABLE)
