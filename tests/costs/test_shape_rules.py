"""Shapes of a frozen graph, which has none but those of its placeholders: the same as TensorFlow infers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.costs.shape_rules import infer_shape
from tests.executor.worlds import run
from tests.warm_processes import WarmProcesses

FREEZE = """
    import json, sys
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    k, d = tf.random.normal([3, 3, 6, 8]), tf.random.normal([3, 3, 8, 2])
    w, b, scale = tf.random.normal([128, 40]), tf.random.normal([40]), tf.ones([16])

    @tf.function(input_signature=[tf.TensorSpec([None, 19, 18, 3]), tf.TensorSpec([None, 7], tf.int32)])
    def infer(x, ids):
        x = tf.pad(x, [[0, 0], [1, 2], [0, 1], [0, 0]])
        x = tf.concat([x, tf.abs(x) * 2.0], -1)
        x = tf.nn.relu(tf.nn.conv2d(x, k, [1, 2, 2, 1], "VALID"))
        x = tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME", dilations=[2, 2])
        x, _, _ = tf.compat.v1.nn.fused_batch_norm(x, scale, scale, scale, scale, is_training=False)
        x = tf.nn.max_pool2d(x, 3, 2, "SAME") + tf.nn.avg_pool2d(x, 2, 2, "SAME")
        y = tf.reduce_mean(x, [1, 2], keepdims=True)
        x = tf.image.resize(x * tf.sigmoid(y), [6, 4], "nearest")[:, 1:-1, ::2]
        x = tf.transpose(x, [0, 3, 1, 2])
        rows = tf.reshape(x, [tf.shape(x)[0], 16, -1])
        rows = tf.reshape(tf.stack([rows, rows], 2), [-1, 128 // 8, 16])
        rows = tf.matmul(rows, rows, transpose_b=True)
        flat = tf.reshape(rows, [tf.shape(rows)[0], -1])[:, :128]
        logits = tf.nn.bias_add(flat @ w, b)
        best = tf.gather(w, tf.argmax(logits, 1), axis=0)[:, 0]
        words = tf.gather(tf.transpose(w), ids) + tf.reshape(best, [-1, 1, 1])
        first, second = tf.split(tf.nn.softmax(words), 2, axis=-1)
        large = tf.squeeze(tf.expand_dims(tf.reduce_max(words, 2), -1) > 0.5, -1)
        tiled = tf.tile(first, [1, 1, 2]) - tf.cast(tf.expand_dims(large, 2), tf.float32)
        tiled = tf.where(tiled > 0.0, tiled, tf.zeros_like(tiled))
        tiled += tf.expand_dims(tf.fill(tf.shape(second)[:2], 1.0), 2)
        wide = tf.broadcast_to(b, tf.shape(logits))
        return tiled, tf.unstack(logits, axis=1)[3], tf.slice(logits, [0, 4], [-1, 8]), wide

    frozen = convert_variables_to_constants_v2(infer.get_concrete_function()).graph.as_graph_def()
    tf.io.write_graph(frozen, *sys.argv[1:], as_text=False)
    with tf.Graph().as_default() as graph:
        ends = {"x": tf.compat.v1.placeholder(tf.float32, [8, 19, 18, 3]),
                "ids": tf.compat.v1.placeholder(tf.int32, [8, 7])}
        tf.graph_util.import_graph_def(frozen, input_map=ends, name="")

    def read(out):
        return out.shape.as_list() if out.shape.is_fully_defined() else None

    print(json.dumps({op.name: [read(out) for out in op.outputs] for op in graph.get_operations()}))
"""


@pytest.mark.tf
def test_shapes_of_a_frozen_graph_are_those_that_tensorflow_infers(tmp_path: Path, warm: WarmProcesses) -> None:
    done = warm.run_tensorflow(FREEZE, str(tmp_path), "frozen.pb")
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    placement = simplace.place(str(tmp_path / "frozen.pb"), "cpu:1,gpu:1").largest().placement
    schedule = schedule_placement(placement, costs="modelled", batch=8, optimizes=False)
    nodes, outputs = schedule.estimated.graph.nodes, schedule.estimated.outputs
    compared = 0
    for i, node in enumerate(nodes):
        for slot, (tensor, shape) in enumerate(zip(outputs[i], theirs.get(node.name, ()), strict=False)):
            if shape is not None:
                assert (node.name, slot, list(tensor.shape)) == (node.name, slot, shape)
                compared += 1
    assert compared > 60


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "values"),
    [
        ("AddV2", {}, [(2, 3), (4, 3)], []),
        ("Conv2D", {"strides": (1, 1, 1, 1), "padding": b"SAME"}, [(2, 3), (3, 3, 1, 1)], []),
        ("Mean", {}, [(2, 3), (1,)], [None, (2,)]),
        ("Reshape", {}, [(2, 3), (2,)], [None, (-1, 4)]),
        ("Reshape", {}, [(2, 3), (2,)], [None, (None, None)]),
        ("Transpose", {}, [(2, 3), (2,)], [None, (0, 0)]),
        ("ConcatV2", {}, [(2, 3), (2,), ()], [None, None, 0]),
        ("Unpack", {}, [()], []),
        ("GatherV2", {}, [(), (2,), ()], [None, None, 0]),
        ("Split", {"num_split": 0}, [(), (2,)], [0, None]),
        ("StridedSlice", {"new_axis_mask": 1}, [(2, 3), (1,), (1,), (1,)], [None, (0,), (1,), (1,)]),
        ("Tile", {}, [(2, 3), (1,)], [None, (2,)]),
        ("Relu", {}, [], []),
    ],
)
def test_what_does_not_fit_has_no_shape(op: str, attrs: dict, inputs: list, values: list) -> None:
    assert infer_shape(op, attrs, inputs, 0, values) is None


def test_a_size_that_is_added_to_itself_again_and_again_is_computed_once_each() -> None:
    """Each way from it to the constant would be walked else: 2 to the power of 60."""
    sums = "\n".join(f"a{i + 1} = AddV2(a{i}, a{i}) @c {{T=int32, _output_shapes=(dims(),)}}" for i in range(60))
    text = f"""
        a0 = Const() @c {{dtype=int32, value=number(0), _output_shapes=(dims(),)}}
        {sums}
        s = Pack(a60, a60) @c {{T=int32, N=2, _output_shapes=(dims(2),)}}
        f = Const() @c {{dtype=float, value=number(1), _output_shapes=(dims(),)}}
        filled = Fill(s, f) @c {{T=float}}
    """
    schedule = run(text, optimizes=False)
    found = {node.name: schedule.estimated.outputs[i] for i, node in enumerate(schedule.estimated.graph.nodes)}
    assert found["filled"][0].shape == (0, 0)
