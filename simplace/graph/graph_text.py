"""Write a graph as text, a line a node, and read it back.

A line is `name = Op(input, other:1, ^control) [T=float32, _class=["loc:@a"]] @requested !assigned`; what is empty is
left out, a line that starts with `#` is a comment. An attribute is a data type, a number, `true`, `false`, `none`, a
"string", `shape(2, ?)` (`shape(*)` for an unknown rank), `tensor(int32, shape(), 3)`, `fn("name", T=float32)`, a `$T`
placeholder or a list of these in brackets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simplace.errors import TargetError
from simplace.graph import dtypes
from simplace.graph.builder import CONTROL, GraphBuilder, Node, OpTypes, Origin
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph, freeze_graph
from simplace.graph.node_def import AttrValue, FuncRef, NodeDef, Shape, ShapeAttr, TensorInfo

_LINE = re.compile(
    r"(?P<name>\S+) = (?P<op>[^\s(]+)\((?P<inputs>[^)]*)\)"
    r"(?: \[(?P<attrs>.*)\])?(?: @(?P<device>\S+))?(?: !(?P<assigned>\S+))?"
)
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?(?:inf|nan)\b|[-+]?[0-9][0-9.]*(?:e[-+]?[0-9]+)?)"""
    r"""|(?P<word>\$?[A-Za-z_][\w.]*)|(?P<mark>[\[\]()=,?*]))"""
)
_CONSTANTS: Mapping[str, AttrValue] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True)
class Line:
    """Record of one line: the node as a GraphDef would have it, and the device to which it is fixed ("" for none)."""

    node: NodeDef
    assigned: str = ""


def to_text(graph: Graph) -> str:
    """Write the nodes of a graph by id; edges of source and sink go unsaid.

    >>> to_text(parse_graph("a = Const() @/GPU:0", lambda op, attrs: ((), (1,))))
    'a = Const() @/GPU:0'
    """
    return "\n".join(_line_text(graph, i) for i in graph.op_ids)


def parse_graph(text: str, types: OpTypes) -> Graph:
    """Read a graph; see `build_graph`."""
    return freeze_graph(build_graph(text, types))


def build_graph(text: str, types: OpTypes) -> GraphBuilder:
    """Read a graph that may still be changed.

    Nodes are numbered as written, edges by the node they enter: data by slot, then control; then come the edges that
    connect nodes without any to source and sink. Raises `TargetError` for a text that is not a valid graph.
    """
    lines = parse_lines(text)
    builder = GraphBuilder(types)
    made: dict[str, Node] = {}
    for line in lines:
        name = line.node.name
        if name in made:
            raise TargetError(f"two nodes are called {name!r}; names must be unique in a graph")
        made[name] = builder.add_node_def(line.node, Origin("", name))
        made[name].assigned = line.assigned
    for line in lines:
        _add_inputs(builder, line.node, made)
    _tie_to_source_and_sink(builder)
    return builder


def parse_lines(text: str) -> list[Line]:
    """Read the lines of a text, one by one, without looking for what they refer to.

    >>> parse_lines("y = Neg(x:1, ^a) [T=float32]")[0].node.inputs
    ('x:1', '^a')
    """
    rows = (row.strip() for row in text.splitlines())
    return [_parse_line(row) for row in rows if row and not row.startswith("#")]


def _line_text(graph: Graph, i: int) -> str:
    attrs = f" [{_attrs_text(graph.attrs[i])}]" if graph.attrs[i] else ""
    requested = f" @{graph.requested[i]}" if graph.requested[i] else ""
    assigned = f" !{graph.assigned[i]}" if graph.assigned[i] else ""
    return f"{graph.names[i]} = {graph.ops[i]}({', '.join(graph.input_names(i))}){attrs}{requested}{assigned}"


def _attrs_text(attrs: Mapping[str, AttrValue]) -> str:
    return ", ".join(f"{key}={_value_text(value)}" for key, value in sorted(attrs.items()))


def _value_text(value: AttrValue) -> str:
    match value:
        case None | bool():
            return str(value).lower()
        case DataType():
            return dtypes.format_dtype(value)
        case bytes():
            return _quote_bytes(value)
        case str():
            return f"${value}"
        case tuple():
            return f"[{', '.join(map(_value_text, value))}]"
        case ShapeAttr(dims):
            return _shape_text(dims)
        case TensorInfo(dtype, dims, number):
            last = "" if number is None else f", {number}"
            return f"tensor({dtypes.format_dtype(dtype)}, {_shape_text(dims)}{last})"
        case FuncRef(name, attrs):
            inside = f", {_attrs_text(attrs)}" if attrs else ""
            return f"fn({_quote_bytes(name.encode())}{inside})"
    return repr(value)


def _shape_text(dims: Shape) -> str:
    return "shape(*)" if dims is None else f"shape({', '.join('?' if d < 0 else str(d) for d in dims)})"


def _quote_bytes(value: bytes) -> str:
    escaped = value.decode("latin-1").encode("unicode_escape").decode("ascii")
    return '"' + escaped.replace('"', '\\"') + '"'


def _parse_line(row: str) -> Line:
    found = _LINE.fullmatch(row)
    if found is None:
        raise TargetError(f"{row!r} is not a node; write nodes like `y = Neg(x) [T=float32] @/GPU:0`")
    inputs = tuple(text.strip() for text in found["inputs"].split(",") if text.strip())
    attrs = _Attributes(found["attrs"] or "", row).all()
    return Line(NodeDef(found["name"], found["op"], found["device"] or "", inputs, attrs), found["assigned"] or "")


class _Attributes:
    """Read the attributes of one line from left to right."""

    def __init__(self, text: str, row: str) -> None:
        self._row = row
        self._tokens = list(self._split(text))
        self._at = 0

    def all(self) -> dict[str, AttrValue]:
        attrs = self._pairs() if self._tokens else {}
        if self._at < len(self._tokens):
            raise self._wrong()
        return attrs

    def _split(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise TargetError(f"cannot read {text[at:]!r} in the attributes of {self._row!r}")
            assert found.lastgroup is not None, "each alternative of a token has a name"
            yield found.lastgroup, found[found.lastgroup]
            at = found.end()

    def _pairs(self) -> dict[str, AttrValue]:
        attrs: dict[str, AttrValue] = {}
        while True:
            key = self._take("word")
            self._take("mark", "=")
            attrs[key] = self._value()
            if not self._skip(","):
                return attrs

    def _value(self) -> AttrValue:
        kind, token = self._peek()
        if kind == "mark" and token == "[":
            return self._items("[", "]")
        self._at += 1
        if kind == "string":
            return ast.literal_eval("b" + token)
        if kind == "number":
            return float(token) if re.search(r"[.ein]", token) else int(token)
        if kind != "word":
            self._at -= 1
            raise self._wrong()
        if token in _CALLS and self._peek()[1] == "(":
            return _CALLS[token](self)
        return self._named(token)

    def _named(self, word: str) -> AttrValue:
        if word.startswith("$"):
            return word[1:]
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        try:
            return dtypes.parse_dtype(word)
        except ValueError:
            self._at -= 1
            raise self._wrong() from None

    def _items(self, start: str, end: str) -> tuple[AttrValue, ...]:
        self._take("mark", start)
        items: list[AttrValue] = []
        while not self._skip(end):
            items.append(self._value())
            if not self._skip(","):
                self._take("mark", end)
                break
        return tuple(items)

    def shape(self) -> ShapeAttr:
        self._take("mark", "(")
        dims: list[int] = []
        if self._skip("*"):
            self._take("mark", ")")
            return ShapeAttr(None)
        while not self._skip(")"):
            dims.append(-1 if self._skip("?") else int(self._take("number")))
            self._skip(",")
        return ShapeAttr(tuple(dims))

    def tensor(self) -> TensorInfo:
        items = self._items("(", ")")
        if len(items) not in (2, 3) or not isinstance(items[0], DataType) or not isinstance(items[1], ShapeAttr):
            raise self._wrong()
        return TensorInfo(items[0], items[1].dims, *items[2:])

    def function(self) -> FuncRef:
        self._take("mark", "(")
        name = ast.literal_eval("b" + self._take("string")).decode()
        attrs = self._pairs() if self._skip(",") else {}
        self._take("mark", ")")
        return FuncRef(name, attrs)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _skip(self, mark: str) -> bool:
        here = self._peek() == ("mark", mark)
        self._at += here
        return here

    def _take(self, kind: str, token: str = "") -> str:
        found, text = self._peek()
        if found != kind or (token and text != token):
            raise self._wrong()
        self._at += 1
        return text

    def _wrong(self) -> TargetError:
        here = self._peek()[1]
        return TargetError(
            f"{'the end' if not here else repr(here)} is out of place in the attributes of {self._row!r}"
        )


_CALLS: Mapping[str, Callable[[_Attributes], Any]] = {
    "shape": _Attributes.shape,
    "tensor": _Attributes.tensor,
    "fn": _Attributes.function,
}


def _add_inputs(builder: GraphBuilder, node: NodeDef, made: Mapping[str, Node]) -> None:
    target = made[node.name]
    taken = 0
    for text in node.inputs:
        is_control = text.startswith("^")
        name, colon, number = text.removeprefix("^").rpartition(":")
        slot = int(number) if colon and number.isdigit() and not is_control else 0
        source = made.get(name if slot or (colon and number == "0") else text.removeprefix("^"))
        if source is None:
            raise TargetError(f"node {node.name!r} has the input {text!r}, but no node is called that")
        if is_control:
            builder.add_edge(source, CONTROL, target, CONTROL)
            continue
        if slot >= len(source.out_types):
            raise TargetError(
                f"node {node.name!r} reads {text!r}, but {source.name!r} has {len(source.out_types)} outputs"
            )
        builder.add_edge(source, slot, target, taken)
        taken += 1
    if taken != len(target.in_types):
        raise TargetError(f"node {node.name!r} has {taken} inputs, but its op {node.op} takes {len(target.in_types)}")


def _tie_to_source_and_sink(builder: GraphBuilder) -> None:
    for node in builder.op_nodes():
        if not node.in_edges:
            builder.add_edge(builder.source, CONTROL, node, CONTROL)
        if not node.out_edges:
            builder.add_edge(node, CONTROL, builder.sink, CONTROL)
