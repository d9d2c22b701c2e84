"""Functions that stand in for each other: which one a call calls, compared with TensorFlow's Grappler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from simplace.graph.graph_def import parse_graph_def
from simplace.placement.implementation_selector import LEAST_NODES, select_implementation

CPU, GPU = "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"
Implementation = tuple[str, Callable[..., Any]]


def make_graph(tf: Any, own: Implementation, others: Sequence[Implementation], *, differentiates: bool) -> Any:
    """Return a GraphDef that calls an implementation, whose library has others, and their gradients if asked for."""

    def make(implementation: Implementation) -> Any:
        device, body = implementation
        attributes = {"api_implements": "layer", "api_preferred_device": device}
        return tf.function(body, experimental_attributes=attributes, autograph=False)

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2, 2], name="x")
        y = make(own)(x)
        for other in others:
            traced = make(other).get_concrete_function(x)
            traced.add_to_graph()
            traced.add_gradient_functions_to_graph()
        results = [y, *(tf.gradients(y, x) if differentiates else ())]
        for i, result in enumerate(results):
            tf.identity(tf.sqrt(result), name=f"result_{i}")
        return graph.as_graph_def()


def ask_grappler(tf: Any, graph: Any, device: str) -> dict[str, str]:
    """Return which function each call of a graph on a device calls when Grappler has optimized it, without its mark."""
    from simplace.oracle.child.grappler import optimize_graph

    for node in graph.node:
        node.device = device
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.meta_optimizer_iterations = 1
    kept = [node.name for node in graph.node if node.name.startswith("result")]
    devices = [{"name": name, "type": kind} for name, kind in ((CPU, "CPU"), (GPU, "GPU"))]
    made = optimize_graph(tf, graph, kept, {}, devices, config)
    return {
        node.name: node.attr["f"].func.name.partition("_specialized_for_")[0]
        for node in made.node
        if node.op.endswith("PartitionedCall")
    }


def square(x: Any) -> Any:
    import tensorflow as tf

    return tf.matmul(x, x)


def sum_up(x: Any) -> Any:
    import tensorflow as tf

    return tf.einsum("ij,jk->ik", x, x)


def stack(x: Any) -> Any:
    import tensorflow as tf

    return tf.stack([x, x])


def double(x: Any) -> Any:
    import tensorflow as tf

    return tf.cast(tf.matmul(x, x), tf.float64)


@pytest.mark.tf
@pytest.mark.parametrize("device", [CPU, GPU])
@pytest.mark.parametrize("differentiates", [False, True], ids=["inference", "gradient"])
@pytest.mark.parametrize(
    ("own", "others"),
    [
        (("CPU", square), [("GPU", sum_up)]),
        (("GPU", square), [("CPU", sum_up)]),
        (("CPU", square), []),
        (("TPU", square), [("GPU", sum_up), ("GPU", sum_up)]),
        (("CPU", square), [("GPU", stack)]),
        (("CPU", square), [("GPU", double)]),
    ],
    ids=["for the other", "the reverse", "alone", "two for one", "of another shape", "of another type"],
)
def test_what_grappler_calls(own, others, differentiates: bool, device: str) -> None:
    import tensorflow as tf

    graph = make_graph(tf, own, others, differentiates=differentiates)
    told = ask_grappler(tf, graph, device)
    read = parse_graph_def(graph.SerializeToString())
    calls = {node.name: node.attrs["f"].name for node in read.nodes if node.op.endswith("PartitionedCall")}
    assert calls
    assert len(read.nodes) >= LEAST_NODES
    kind = "GPU" if device == GPU else "CPU"
    found = {name: select_implementation(read.library[calls[name]], kind, read.library).name for name in calls}
    assert found == told


@pytest.mark.tf
def test_grappler_leaves_small_graphs() -> None:
    import tensorflow as tf

    graph = make_graph(tf, ("CPU", square), [("GPU", sum_up)], differentiates=False)
    (root,) = (node for node in graph.node if node.op == "Sqrt")
    (result,) = (node for node in graph.node if node.name == "result_0")
    result.input[0] = root.input[0]
    graph.node.remove(root)
    assert len(graph.node) < LEAST_NODES
    (told,) = ask_grappler(tf, graph, GPU).values()
    assert told.startswith("__inference_square")
