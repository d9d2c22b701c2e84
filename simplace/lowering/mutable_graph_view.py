"""Leave out control inputs that say again what another input of the node does, as Grappler's view of a graph does.

Mirrors `AddAndDedupFanouts` of tensorflow/core/grappler/mutable_graph_view.cc, which each optimizer of tf.data makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from simplace.graph.node_def import FunctionDef, NodeDef
from simplace.graph.op_kinds import is_switch

_HANDS_ON = ("Identity", "RefIdentity", "IdentityN")


def drop_repeated_controls(function: FunctionDef) -> FunctionDef:
    """Return a function in which no node runs after one that it takes a tensor of, or twice after one.

    What hands on the tensor of a Switch tells which branch runs: a node that takes it runs after it, too.
    """
    nodes = {node.name: node for node in function.nodes}
    changed = tuple(_drop_in(node, nodes) for node in function.nodes)
    return function if changed == function.nodes else replace(function, nodes=changed)


def _drop_in(node: NodeDef, nodes: Mapping[str, NodeDef]) -> NodeDef:
    if not any(ref.startswith("^") for ref in node.inputs):
        return node
    taken: set[str] = set()
    controls: set[str] = set()
    kept: list[str] = []
    for ref in node.inputs:
        name = ref.removeprefix("^").partition(":")[0]
        if not (
            ref.startswith("^") and name in taken and (name in controls or not _tells_branch(nodes.get(name), nodes))
        ):
            kept.append(ref)
        taken.add(name)
        if ref.startswith("^"):
            controls.add(name)
    return node if len(kept) == len(node.inputs) else node._replace(inputs=tuple(kept))


def _tells_branch(node: NodeDef | None, nodes: Mapping[str, NodeDef]) -> bool:
    if node is None or node.op not in _HANDS_ON or not node.inputs or node.inputs[0].startswith("^"):
        return False
    source = nodes.get(node.inputs[0].partition(":")[0])
    return source is not None and is_switch(source.op)
