"""A step simulated with the graph that TensorFlow's Grappler makes of it, for a GPU that is not there."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path

import pytest

import simplace
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepKeywords

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
IMAGES = """
    import tensorflow as tf

    kernels = [tf.Variable(tf.random.normal([3, 3, 8, 8])) for _ in range(2)]

    def infer(x):
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return x

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(infer(x))
        for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
            kernel.assign_sub(gradient)
        return loss

    serve = tf.function(infer)
    images = tf.ones([4, 16, 16, 8])
    print(serve(images).shape, train(images).shape)
"""
SESSION = """
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()

    x = tf.placeholder(tf.float32, [4])
    two = tf.sqrt(tf.constant(4.0))
    y = (x * two) * tf.ones([4])
    unused = tf.exp(y)
    with tf.Session() as session:
        print(session.run(y, {x: [1.0, 2.0, 3.0, 4.0]}))
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> simplace.Placements:
    return placed(IMAGES, tmp_path_factory.mktemp("images"))


def placed(text: str, folder: Path) -> simplace.Placements:
    script = folder / "model.py"
    script.write_text(textwrap.dedent(text))
    return simplace.place(str(script), "cpu:1,gpu:1")


def count_ops(result: simplace.Placements, program: str, **options: object) -> Counter[str]:
    chosen: StepKeywords = {"grappler": True, **options}  # type: ignore[typeddict-item]
    return Counter(node.op for node in result.schedule(program, **chosen).estimated.graph.nodes)


def test_the_layout_of_images_depends_on_the_gpu(images: simplace.Placements) -> None:
    """Tensor cores take TF32 with the channels last; the gradients of float32 do not."""
    assert count_ops(images, "infer", gpu="a100")["Transpose"] == 0
    assert count_ops(images, "infer", gpu="p100")["Transpose"] == 2
    assert count_ops(images, "train", gpu="a100")["Transpose"] > 0


def test_what_grappler_adds_has_a_shape_a_line_and_a_time(images: simplace.Placements) -> None:
    schedule = images.schedule("infer", gpu="p100", grappler=True)
    graph, estimated = schedule.estimated.graph, schedule.estimated
    moved = {i: node for i, node in enumerate(graph.nodes) if node.op == "Transpose"}
    assert [estimated.output(i, 0).shape for i in moved] == [(4, 8, 16, 16), (4, 16, 16, 8)]  # type: ignore[union-attr]
    assert all("model.py:" in graph.source_line(i) for i in moved)
    assert all(estimated.kernels[i].device_s > 0 for i in moved)
    convolutions = [i for i, node in enumerate(graph.nodes) if node.op == "Conv2D"]
    assert {estimated.output(i, 0).shape for i in convolutions} == {(4, 8, 16, 16)}  # type: ignore[union-attr]


def test_a_run_of_a_session_keeps_what_it_fetches(tmp_path: Path) -> None:
    ops = count_ops(placed(SESSION, tmp_path), "Session.run")
    assert ops["Mul"] >= 1
    assert "Sqrt" not in ops
    assert "Exp" not in ops


def test_what_nobody_fetches_from_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.pbtxt"
    file.write_text('node { name: "a" op: "NoOp" }')
    with pytest.raises(SimplaceError, match="neither results nor effects"):
        simplace.place(str(file), "cpu:1").schedule(grappler=True)
