"""Tidy the SVG that Graphviz writes: no comments or links, names on hover, fonts that each system has."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}title"
_FAMILY = "DejaVu Sans,Verdana,sans-serif"  # Verdana has the same widths, where DejaVu is missing


def tidy(svg: bytes) -> bytes:
    """Rewrite Graphviz's SVG: the hover text of an element becomes its `<title>`, the link around it goes.

    Raises:
        xml.etree.ElementTree.ParseError: `svg` is not XML.
    """
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for group in list(root.iter(f"{{{_SVG}}}g")):
        _unlink(group)
    for parent in list(root.iter(f"{{{_SVG}}}g")):
        for group in [child for child in parent if {grandchild.tag for grandchild in child} == {f"{{{_SVG}}}title"}]:
            parent.remove(group)  # a cluster that only holds others together
    for text in root.iter(f"{{{_SVG}}}text"):
        text.set("font-family", _FAMILY)
    root.set("role", "img")
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def prefix_ids(svg: str, prefix: str) -> str:
    """Put `prefix` before each element id, so that several drawings fit on one page.

    >>> prefix_ids('<g id="node1"/>', "a-")
    '<g id="a-node1"/>'
    """
    return re.sub(r'(<[a-z]+ [^<>]*?\bid=")', rf"\g<1>{prefix}", svg)


def _unlink(group: ElementTree.Element) -> None:
    """Pull the content of `<g><a xlink:title=...>` up into `group`."""
    title = group.find(f"{{{_SVG}}}title")
    for child in list(group):
        link = child.find(f"{{{_SVG}}}a")
        if link is None:
            continue
        if title is not None and _LINK in link.attrib:
            title.text = link.attrib[_LINK]
        at = list(group).index(child)
        group.remove(child)
        for offset, element in enumerate(list(link)):
            group.insert(at + offset, element)
