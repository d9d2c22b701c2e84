"""A reader for each format that simplace writes: the format's own, or one that many people use."""

from __future__ import annotations

import json
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import junitparser
import networkx
import pygraphviz
import sarif_pydantic
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub import errors
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

from simplace.graph import graph_def

_VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}  # of HTML


class Tags(HTMLParser):
    """Read a page whose every element ends where it should."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(name: str, data: bytes) -> Any:
    """Read an output by the ending of its name."""
    (reader,) = [reader for ending, reader in _READERS.items() if name.endswith(ending)]
    return reader(data)


def devices(read_back: Any) -> list[dict[str, str]]:
    """Return the device of each node, a program each, from what was read of a graph; eager ops are no graph."""
    match read_back:
        case networkx.Graph():
            return [dict(read_back.nodes(data="device"))]
        case {"schema": "simplace/placement/1", "programs": programs}:
            graphs = (program for program in programs if program["kind"] != "eager")
            return [{node["name"]: node["device"] for node in program["nodes"]} for program in graphs]
        case _:
            return [{node.name: node.device for node in read_back.nodes}]


def _text(data: bytes) -> str:
    text = data.decode()
    assert text.strip()
    return text


def _json(data: bytes) -> Any:
    return json.loads(data, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _html(data: bytes) -> Tags:
    tags = Tags()
    tags.feed(data.decode())
    tags.close()
    assert tags.open == []
    return tags


def _svg(data: bytes) -> ElementTree.Element:
    root = ElementTree.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return root


def _dot(data: bytes) -> Any:
    return pygraphviz.AGraph(string=data.decode())


def _events(data: bytes) -> list[Any]:
    """Read as TensorBoard does where there is no TensorFlow, which checks the sums of each record."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "events.out.tfevents.1.simplace")
        file.write_bytes(data)
        return list(_records(PyRecordReader_New(str(file))))


def _records(reader: Any) -> Iterator[Any]:
    while True:
        try:
            reader.GetNext()
        except errors.OutOfRangeError:
            return
        yield event_pb2.Event.FromString(reader.record())


def _png(data: bytes) -> tuple[int, int]:
    """Return width and height; the parts after the signature are each (length, kind, content, checksum)."""
    at, kinds = 8, []
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        part, (checksum,) = (
            data[at + 4 : at + 8 + length],
            struct.unpack(">I", data[at + 8 + length : at + 12 + length]),
        )
        assert zlib.crc32(part) == checksum
        kinds.append(part[:4])
        at += 12 + length
    assert (data[:8], kinds[0], kinds[-1]) == (b"\x89PNG\r\n\x1a\n", b"IHDR", b"IEND")
    return struct.unpack(">II", data[16:24])


def _pdf(data: bytes) -> bytes:
    """Look whether the table of objects is where the last line says."""
    assert data.startswith(b"%PDF-1.")
    table = data.rstrip().removesuffix(b"%%EOF").split()[-1]
    assert data[int(table) :].startswith(b"xref")
    return data


_READERS: dict[str, Callable[[bytes], Any]] = {
    ".txt": _text,
    ".json": _json,
    ".html": _html,
    ".svg": _svg,
    ".dot": _dot,
    ".junit.xml": lambda data: junitparser.JUnitXml.fromstring(data),
    ".sarif": lambda data: sarif_pydantic.Sarif.model_validate(_json(data)),
    ".graphml": lambda data: networkx.read_graphml(BytesIO(data), force_multigraph=True),
    ".pb": graph_def.parse_graph_def,
    ".pbtxt": lambda data: graph_def.parse_text(data.decode()),
    ".tfevents": _events,
    ".png": _png,
    ".pdf": _pdf,
}
