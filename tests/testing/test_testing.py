"""assert_placed: on files, on scripts and on live functions."""

import pytest

from simplace.errors import TargetError
from simplace.testing import assert_placed
from tests.worlds import constant, node

GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("dense/MatMul", "MatMul", "a", "a", device="/GPU:0")])


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    return file


def test_it_passes_and_returns_the_result(graph):
    result = assert_placed(graph, {"MatMul*": "GPU:0", "a": ["CPU:0", "GPU:1"]}, devices="cpu:1,gpu:2")
    assert [node.name for node in result.nodes] == ["a", "dense/MatMul"]


def test_it_fails_with_the_reason(graph):
    with pytest.raises(AssertionError) as caught:
        assert_placed(graph, ["MatMul*=GPU:1", "a=cpu"], devices="cpu:1,gpu:2")
    assert str(caught.value) == (
        "1 of 2 requirements not met on CPU:0, GPU:0, GPU:1 (devices as given: cpu:1,gpu:2):\n"
        "  MatMul*=GPU:1: graph: dense/MatMul (MatMul) is on GPU:0. It requested /GPU:0 and got GPU:0."
    )


def test_anything_else_is_refused():
    with pytest.raises(TargetError, match="a int cannot be placed"):
        assert_placed(3, {"a": "cpu"})


@pytest.mark.tf
def test_a_live_function_and_its_variables():
    import tensorflow as tf

    weights = tf.Variable(tf.ones([2, 2]), name="weights")
    count = tf.Variable(3)

    @tf.function
    def inner(x):
        return x + 1.0

    @tf.function
    def step(x, power):
        if tf.reduce_sum(x) > 0:
            x = inner(x)
        text = tf.strings.as_string(x)
        return tf.matmul(x, weights) ** power * tf.cast(count, tf.float32), text

    required = {"MatMul*": "GPU:0", "op:AsString": "CPU:0", "op:MatMul": "!cpu", "cond/*add*": "GPU:0"}
    result = assert_placed(step, required, "cpu:1,gpu:2", arguments=[tf.TensorSpec([2, 2])], keywords={"power": 2})
    where = {node.name: node.device.rpartition("device:")[2] for node in result.nodes if node.op == "_Arg"}
    assert where == {"x": "GPU:0", "matmul_readvariableop_resource": "GPU:0", "cast_readvariableop_resource": "CPU:0"}
    with pytest.raises(AssertionError) as caught:
        assert_placed(step, {"MatMul": "GPU:1"}, "cpu:1,gpu:2", arguments=[tf.ones([2, 2]), 2])
    assert "step: MatMul (MatMul) is on GPU:0" in str(caught.value)
    assert "test_testing.py:" in str(caught.value)
    assert_placed(step.get_concrete_function(tf.ones([2, 2]), 2), {"MatMul": "cpu:0"}, "cpu:1")


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_script(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(
        "import sys\nimport tensorflow as tf\n\n@tf.function\ndef f(x):\n    with tf.device(sys.argv[1]):\n"
        "        return tf.matmul(x, x)\n\nf(tf.ones([2, 2]))\n"
    )
    assert_placed(script, {"MatMul": "GPU:1"}, devices="cpu:1,gpu:2", arguments=["/GPU:1"])
    with pytest.raises(AssertionError, match=r"MatMul .MatMul. is on GPU:0 .*model.py:7"):
        assert_placed(script, {"MatMul": "GPU:1"}, devices="cpu:1,gpu:2", arguments=["/GPU:0"])
