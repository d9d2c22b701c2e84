"""Write a placed graph as GraphML, for Gephi, yEd, Cytoscape and networkx: `device` is a node's attribute."""

from __future__ import annotations

from io import BytesIO

from simplace.explain import reasons as why
from simplace.explain.sentences import tell_reason
from simplace.exports.steering import xml_escaped
from simplace.exports.xml_text import xml_text
from simplace.graph.interchange import to_networkx
from simplace.placement.placement import Placement


def graphml(placement: Placement) -> bytes:
    """Return the document, UTF-8; characters that XML cannot hold are replaced, and names made unique again."""
    import networkx as nx

    graph = to_networkx(placement.graph, placement.device)
    for i in placement.decisions:
        node = graph.nodes[placement.graph.names[i]]
        node["because"] = str(tell_reason(placement, why.reason(placement, i)))
        node["line"] = placement.notes(i).at
    names = _safe_names(list(graph.nodes))
    graph = nx.relabel_nodes(graph, names)
    for _, attributes in graph.nodes(data=True):
        for key, value in attributes.items():
            attributes[key] = xml_text(value) if isinstance(value, str) else value
    written = BytesIO()
    nx.write_graphml_xml(graph, written, named_key_ids=True)
    return xml_escaped(written.getvalue().decode()).encode()


def _safe_names(names: list[str]) -> dict[str, str]:
    r"""Map names to names that XML can hold, each to one of its own.

    >>> _safe_names(["a", "b\x01", "b\x02"])
    {'a': 'a', 'b\x01': 'b�', 'b\x02': 'b�#2'}
    """
    safe: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = wanted = xml_text(name)
        number = 1
        while wanted in taken:
            number += 1
            wanted = f"{plain}#{number}"
        taken.add(wanted)
        safe[name] = wanted
    return safe
