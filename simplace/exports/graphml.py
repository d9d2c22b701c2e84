"""Write a placed graph as GraphML, for Gephi, yEd, Cytoscape and networkx: `device` is a node's attribute."""

from __future__ import annotations

from io import BytesIO

from simplace.explain import reasons as why
from simplace.explain.sentences import state_reason
from simplace.exports.steering import escape_xml
from simplace.exports.xml_text import replace_illegal
from simplace.graph.interchange import to_networkx
from simplace.placement.placement import Placement


def write_graphml(placement: Placement) -> bytes:
    """Return the document, UTF-8; characters that XML cannot contain are replaced, and names made unique again."""
    import networkx as nx

    graph = to_networkx(placement.graph, placement.device)
    for i in placement.decisions:
        node = graph.nodes[placement.graph.names[i]]
        node["because"] = str(state_reason(placement, why.find_reason(placement, i)))
        node["line"] = placement.notes(i).at
    names = _safe_names(list(graph.nodes))
    graph = nx.relabel_nodes(graph, names)
    for _, attributes in graph.nodes(data=True):
        for key, value in attributes.items():
            attributes[key] = replace_illegal(value) if isinstance(value, str) else value
    written = BytesIO()
    nx.write_graphml_xml(graph, written, named_key_ids=True)
    return escape_xml(written.getvalue().decode()).encode()


def _safe_names(names: list[str]) -> dict[str, str]:
    r"""Return a unique name that XML can contain for each name.

    >>> _safe_names(["a", "b\x01", "b\x02"])
    {'a': 'a', 'b\x01': 'b�', 'b\x02': 'b�#2'}
    """
    safe: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = wanted = replace_illegal(name)
        number = 1
        while wanted in taken:
            number += 1
            wanted = f"{plain}#{number}"
        taken.add(wanted)
        safe[name] = wanted
    return safe
