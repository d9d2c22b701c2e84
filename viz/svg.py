"""Tidy the SVG that Graphviz writes: no links, names on hover, fonts that each system has, titles above lines."""

from __future__ import annotations

import copy
import re
from xml.etree import ElementTree

from viz.names import visible

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}title"
_FAMILY = "DejaVu Sans,Verdana,sans-serif"  # Verdana has the same widths, where DejaVu is missing


def tidy(svg: bytes) -> bytes:
    """Rewrite Graphviz's SVG: the hover text of an element becomes its `<title>`, the link around it goes.

    Cluster titles, which Graphviz lets edges cross, are drawn last, with a rim in the colour of their cluster.

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
    _lift_titles(root)
    root.set("role", "img")
    return _write(root)


def described(svg: bytes, title: str, description: str) -> bytes:
    """Put a title and a description first in an SVG, where programs that read it aloud look for them.

    >>> b"<title>a</title><desc>c</desc>" in described(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a", "c")
    True
    """
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for tag, text in (("desc", description), ("title", title)):
        if text:
            element = ElementTree.Element(f"{{{_SVG}}}{tag}")
            element.text = visible(text)
            root.insert(0, element)
    return _write(root)


def prefix_ids(svg: str, prefix: str) -> str:
    """Put `prefix` before each element id, so that several drawings fit on one page.

    >>> prefix_ids('<g id="node1"/>', "a-")
    '<g id="a-node1"/>'
    """
    return re.sub(r'(<[a-z]+ [^<>]*?\bid=")', rf"\g<1>{prefix}", svg)


def _write(root: ElementTree.Element) -> bytes:
    """Return the file; encoding it as a whole is quicker than letting `tostring` encode part by part."""
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n".encode(errors="xmlcharrefreplace")


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


def _lift_titles(root: ElementTree.Element) -> None:
    """Move the text of clusters to the end; the rim is a copy below it, for not all programs know `paint-order`."""
    drawing = root.find(f"{{{_SVG}}}g")
    if drawing is None:
        return
    clusters = [group for group in drawing if group.get("class") == "cluster"]
    titles = ElementTree.SubElement(drawing, f"{{{_SVG}}}g", {"class": "titles"}) if clusters else drawing
    for cluster in clusters:
        outline = next((part for part in cluster if part.get("fill") is not None and part.get("points")), None)
        outline = outline if outline is not None else cluster.find(f"{{{_SVG}}}path")
        colour = outline.get("fill", "none") if outline is not None else "none"
        for text in cluster.findall(f"{{{_SVG}}}text"):
            cluster.remove(text)
            if colour != "none":
                rim = copy.deepcopy(text)
                rim.attrib |= {"fill": colour, "stroke": colour, "stroke-width": "4", "aria-hidden": "true"}
                titles.append(rim)
            titles.append(text)
