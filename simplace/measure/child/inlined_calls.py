"""The calls in a function's graph inlined, as they are where TensorFlow runs the function: a session leaves them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import is_partitioned_call
from simplace.oracle.child.tf_private import tf_optimizer


def inline_calls(definition: Any, wanted: Iterable[str]) -> Any:
    """Return a GraphDef whose calls Grappler has inlined, with the nodes `wanted`; the same one where it has no call.

    Its function optimizer names the nodes of a body as TensorFlow does where it lowers a function's own graph
    (InlineFunctionBody in tensorflow/core/common_runtime/inline_function_utils.cc).
    """
    if not any(is_partitioned_call(node.op) for node in definition.node):
        return definition
    meta = tf.compat.v1.MetaGraphDef(graph_def=definition)
    meta.collection_def["train_op"].node_list.value.extend(wanted)
    config = tf.compat.v1.ConfigProto()
    rewrites = config.graph_options.rewrite_options
    rewrites.optimizers.append("function")
    rewrites.min_graph_nodes = -1  # a small graph, too
    rewrites.meta_optimizer_iterations = rewrites.ONE
    return tf_optimizer.OptimizeGraph(config, meta)
