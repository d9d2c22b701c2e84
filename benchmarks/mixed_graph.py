"""Build graphs of any size out of one block of ops that TensorFlow users write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_INPUT, _OUTPUT = "block_input", "block_output"
_SCOPED = ("shared_name", "frame_name", "container")  # attributes that name something of the graph
_GROUP = b"loc:@"


def mixed_graph(count: int) -> bytes:
    """Return a GraphDef of at least `count` nodes: copies of the block, each fed by the one before it."""
    from tensorflow.core.framework import graph_pb2

    block = _block()
    graph = graph_pb2.GraphDef(versions=block.versions)
    graph.node.add().CopyFrom(next(node for node in block.node if node.name == _INPUT))
    previous = _INPUT
    number = 0
    while len(graph.node) < count:
        graph.node.extend(_copies(block, f"block_{number}/", previous))
        previous = f"block_{number}/{_OUTPUT}"
        number += 1
    return bytes(graph.SerializeToString())


def _copies(block: Any, prefix: str, previous: str) -> Iterator[Any]:
    renamed = {node.name: previous if node.name == _INPUT else prefix + node.name for node in block.node}
    for node in block.node:
        if node.name == _INPUT:
            continue
        copy = type(node)()
        copy.CopyFrom(node)
        copy.name = renamed[node.name]
        for i, text in enumerate(node.input):
            control, name = ("^", text[1:]) if text.startswith("^") else ("", text)
            name, colon, slot = name.partition(":")
            copy.input[i] = f"{control}{renamed[name]}{colon}{slot}"
        for i, group in enumerate(node.attr["_class"].list.s) if "_class" in node.attr else ():
            copy.attr["_class"].list.s[i] = _GROUP + renamed[group[len(_GROUP) :].decode()].encode()
        for name in _SCOPED:
            if name in node.attr and node.attr[name].s:
                copy.attr[name].s = prefix.encode() + node.attr[name].s
        yield copy


def _block() -> Any:
    """Write dense layers, both kinds of variables, pins, colocation, shapes, integers, a condition and a loop."""
    import tensorflow.compat.v1 as tf

    graph = tf.Graph()
    with graph.as_default():
        tf.disable_control_flow_v2()
        x = tf.placeholder(tf.float32, [None, 64], name=_INPUT)
        with tf.device("/gpu:0"):
            weights = tf.get_variable("weights", [64, 64], use_resource=True, initializer=tf.zeros_initializer())
            bias = tf.get_variable("bias", [64], use_resource=False, initializer=tf.ones_initializer())
            h = tf.nn.relu(tf.matmul(x, weights) + bias)
        with tf.device("/gpu:1"):
            h = tf.nn.tanh(tf.matmul(h, weights.read_value(), transpose_b=True))
            mean, variance = tf.nn.moments(h, [0])
            h = (h - mean) * tf.math.rsqrt(variance + 1e-3)
        rows = tf.shape(h)[0]
        h = h / tf.cast(tf.maximum(rows, 1), tf.float32)
        with tf.device("/cpu:0"):
            table = tf.one_hot(tf.range(rows) % 64, 64)
            label = tf.strings.as_string(rows)
        with tf.colocate_with(bias):
            h = h + table * tf.cast(tf.strings.length(label), tf.float32)
        h = tf.cond(rows > 3, lambda: h * 2.0, lambda: tf.identity(h))
        _, h = tf.while_loop(lambda i, _: i < 3, lambda i, value: (i + 1, tf.nn.relu(value) + 1.0), (0, h))
        gradient = tf.matmul(h, h, transpose_a=True)
        update = weights.assign_sub(0.1 * gradient, read_value=False)
        with tf.control_dependencies([update, tf.assign_add(bias, tf.reduce_sum(gradient, 0))]):
            tf.identity(h, name=_OUTPUT)
    return graph.as_graph_def()
