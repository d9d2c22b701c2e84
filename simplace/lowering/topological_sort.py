"""The order that Grappler sorts a function's nodes into, for some optimizers of tf.data: first come, first served.

Mirrors `TopologicalSort` of tensorflow/core/grappler/utils/topological_sort.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simplace.graph.node_def import NodeDef


def sort_nodes(arguments: Iterable[str], nodes: Sequence[NodeDef]) -> list[NodeDef]:
    """Return the nodes of a function with these arguments, each after what it takes and what it runs after.

    A node comes when the last of these has come; where several do then, in the order that they had.
    """
    known = {node.name: node for node in nodes}
    names = [*arguments, *known]
    waits: dict[str, int] = dict.fromkeys(names, 0)
    takers: dict[str, list[str]] = {name: [] for name in names}
    for node in nodes:
        sources = {ref.removeprefix("^").partition(":")[0] for ref in node.inputs} & waits.keys()
        waits[node.name] = len(sources)
        for source in sources:
            takers[source].append(node.name)
    ready = [name for name in names if not waits[name]]
    for name in ready:
        for taker in takers[name]:
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
    return [known[name] for name in ready if name in known]
