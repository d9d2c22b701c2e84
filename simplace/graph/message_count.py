"""Count what a protobuf message will take of memory and time, from its bytes alone, before it is parsed.

Two bytes of a file can be a message, which takes some hundred bytes once it is parsed. So messages, strings in lists
and numbers in lists are counted on the way through the encoding, which ends as soon as there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from simplace.errors import UnreadableError
from simplace.graph import protos

MOST_PARTS = 12_000_000
_MOST_FIELDS = 6_000_000
# How many parts a message counts for, by the memory and time that it takes.
WEIGHTS = {
    "NodeDef": 20, "FunctionDef": 80, "NodeDef.AttrEntry": 10, "TensorProto": 8, "TensorShapeProto": 4,
    "NameAttrList": 4, "OpDef.ArgDef": 6, "FunctionDef.RetEntry": 6, "FunctionDef.ControlRetEntry": 6,
    "FunctionDef.ArgAttrEntry": 6, "MetaGraphDef": 4,
}  # fmt: skip
_STRING = 5  # what a string in a list counts for: a name
_OTHER = 2  # what any other message, a number in a list, and an attribute that was met before counts for
MOST_IN_TEXT = 600_000  # fields and strings, which protobuf's parser in Python takes some 5 microseconds each for
AS_BINARY = "write it binary: tf.io.write_graph(graph, folder, name, as_text=False)"
_ATTR, _NODE = "NodeDef.AttrEntry", "NodeDef"
_LONGEST_SHARED = 1024  # bytes; graph_def.py opens equal attributes up to this length once
_LENGTH_DELIMITED = 2  # the wire type of messages, strings and packed numbers
_FIXED = {1: 8, 5: 4}  # bytes of the other wire types but varints; those that begin and end a group have none
_CONTINUED = 128  # what a byte of a varint is at least where another follows
_LONGEST_VARINT = 10
_FIRST_TAG, _LAST_WIRE_TYPE = 8, 5  # there is no field 0, and no wire type beyond that of four bytes
_DEEPEST = 100


def most_parts(size: int) -> int:
    """Return how many parts a message of so many bytes may have.

    One for every two bytes is more than nodes with names and attributes have: any number of those is read.

    >>> most_parts(1_000_000), most_parts(100_000_000)
    (12000000, 50000000)
    """
    return max(MOST_PARTS, size // 2)


class FieldLimit:
    """Count down how many fields may be looked at in messages of so many bytes, one after the other.

    Looking at one takes some 0.3 microseconds. Of names and attributes, a field has eight bytes or more.

    >>> FieldLimit(1_000_000).left, FieldLimit(100_000_000).left
    (6000000, 12500000)
    """

    def __init__(self, size: int) -> None:
        self.most = self.left = max(_MOST_FIELDS, size // 8)


class PartLimit:
    """Count down how many parts a message may have, of those that are counted only when they are read.

    >>> PartLimit(1000).take(1001)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    simplace.errors.UnreadableError: it would take too much memory: its nodes, ... are more than 1,000 parts, ...
    """

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def take(self, parts: int) -> None:
        """Count some parts."""
        self.left -= parts
        if self.left < 0:
            raise UnreadableError(
                "it would take too much memory: its nodes, attributes and lists are more than "
                f"{self.most:,} parts, the limit for a file of its size"
            )

    def take_node(self, inputs: int, attrs: int) -> None:
        """Count what is in a node, but not what is in its attributes."""
        self.take(_STRING * inputs + _OTHER * attrs)

    def take_attr(self, entry: bytes) -> None:
        """Count an attribute that is opened, and what is in it."""
        self.take(WEIGHTS[_ATTR])
        check_count(_ATTR, entry, parts=self)


def check_count(
    name: str,
    data: bytes,
    *,
    sealed: bool = False,
    parts: PartLimit | None = None,
    limit: FieldLimit | None = None,
    into_nodes: bool = True,
) -> None:
    """Raise `UnreadableError` where an encoded message `tensorflow.<name>` has more than so many parts (`most_parts`).

    `sealed` says that attributes of nodes are opened by `graph_def.py`, equal ones once. A damaged encoding is counted
    as far as protobuf reads it. `parts` counts them together with those of other messages; what is in nodes need not
    be counted here. `limit` counts the fields of the same bytes as messages of several kinds together.

    >>> check_count("GraphDef", b"\\n\\0" * 50, parts=PartLimit(1000))
    >>> check_count("GraphDef", b"\\n\\0" * 51, parts=PartLimit(1000))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    simplace.errors.UnreadableError: it would take too much memory: its nodes, ... are more than 1,000 parts, ...
    """
    if parts is None:
        parts = PartLimit(most_parts(len(data)))
        if len(data) * max(WEIGHTS.values()) // 2 <= parts.left:
            return
    limit = FieldLimit(len(data)) if limit is None else limit
    counter = _Counter(data, parts.left, limit, set() if sealed else None, into_nodes)
    with suppress(_DamagedError, _TooManyError, IndexError):  # protobuf tells what is damaged
        counter.count(0, len(data), _describe_message(name), 0)
    parts.take(parts.left - counter.left)
    if limit.left <= 0:
        raise UnreadableError(f"it has more than {limit.most:,} fields, the limit for a file of its size")


def check_text(text: str, most: int = MOST_IN_TEXT) -> None:
    """Raise `UnreadableError` for text of so many fields that parsing it takes longer than anybody waits.

    >>> check_text('node { name: "a:b" }', most=4)
    >>> check_text('node { name: "a:b" }', most=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    simplace.errors.UnreadableError: it has more than 3 fields, the most that are read as text; write it binary: ...
    """
    if sum(map(text.count, ":{<[,")) + (text.count('"') + text.count("'")) // 2 > most:
        raise UnreadableError(f"it has more than {most:,} fields, the most that are read as text; {AS_BINARY}")


class _DamagedError(Exception):
    """Leave an encoding that protobuf refuses here, too."""


class _TooManyError(Exception):
    """Leave an encoding with too many parts."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Describe what each value of a field counts for, with the `fields` of a message; packed numbers count by bytes.

    `strings` are the fields that are lists of strings and have a tag of one byte.
    """

    weight: int
    fields: dict[int, _Part] = field(default_factory=dict)  # by tag
    strings: set[int] = field(default_factory=set)
    is_packed: bool = False
    is_attr: bool = False
    is_node: bool = False


@cache
def _describe_message(name: str) -> _Part:
    return _describe_part(protos.message_class(name).DESCRIPTOR, {})


def _describe_part(descriptor: Any, known: dict[str, _Part]) -> _Part:
    name = descriptor.full_name.removeprefix("tensorflow.")
    if name not in known:
        made = known[name] = _Part(WEIGHTS.get(name, _OTHER), is_attr=name == _ATTR, is_node=name == _NODE)
        for each in descriptor.fields:
            made.fields.update(_describe_field(each, known))
        short = {tag: part for tag, part in made.fields.items() if tag < _CONTINUED}
        made.strings.update(tag for tag, part in short.items() if part.weight == _STRING and not part.fields)
    return known[name]


def _describe_field(each: Any, known: dict[str, _Part]) -> Mapping[int, _Part]:
    tag = each.number << 3
    if each.message_type is not None:
        return {tag | _LENGTH_DELIMITED: _describe_part(each.message_type, known)}
    if not _is_list(each):
        return {}
    if each.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return {tag | _LENGTH_DELIMITED: _Part(_STRING)}
    one_by_one = {tag | wire_type: _Part(_OTHER) for wire_type in (0, *_FIXED)}
    return {**one_by_one, tag | _LENGTH_DELIMITED: _Part(0, is_packed=True)}


def _is_list(each: Any) -> bool:
    return bool(each.is_repeated) if hasattr(each, "is_repeated") else each.label == FieldDescriptor.LABEL_REPEATED


class _Counter:
    """Walk through an encoding and count down what is left of the parts that it may have."""

    def __init__(self, data: bytes, left: int, limit: FieldLimit, shared: set[bytes] | None, into_nodes: bool) -> None:
        self._data = data
        self.left = left
        self._limit = limit
        self._shared = shared  # attributes met before
        self._into_nodes = into_nodes

    def count(self, at: int, end: int, message: _Part, depth: int) -> None:
        """Count the parts between two places, which are fields of one message."""
        if depth > _DEEPEST:
            raise _DamagedError
        data, limit, fields, strings = self._data, self._limit, message.fields, message.strings
        while at < end:
            limit.left -= 1
            if limit.left <= 0:
                raise _DamagedError  # or not: it is refused
            tag = data[at]
            at += 1
            if tag in strings and data[at] < _CONTINUED:  # most parts of a large graph are the inputs of its nodes
                at += data[at] + 1
                found, stop = 1, min(end, at + 2 * (self.left // _STRING + 1))  # a string takes two bytes or more
                while at < stop and data[at] == tag and (size := data[at + 1]) < _CONTINUED:
                    at += size + 2
                    found += 1
                if at > end:
                    raise _DamagedError
                self._take(_STRING * found)
                continue
            if tag >= _CONTINUED:
                tag, at = _read_varint(data, at - 1)
            if tag < _FIRST_TAG or tag & 7 > _LAST_WIRE_TYPE:
                raise _DamagedError
            part = fields.get(tag)
            if tag & 7 != _LENGTH_DELIMITED:
                if tag & 7:
                    at += _FIXED.get(tag & 7, 0)
                else:
                    at = at + 1 if data[at] < _CONTINUED else _read_varint(data, at)[1]
                if part is not None:
                    self._take(_OTHER)
                continue
            size = data[at]
            at += 1
            if size >= _CONTINUED:
                size, at = _read_varint(data, at - 1)
            start = at
            at += size
            if at > end:
                raise _DamagedError
            if part is None:
                continue
            if part.is_attr and self._was_met(data, start, at):
                self._take(_OTHER)
                continue
            self.left -= size if part.is_packed else part.weight
            if self.left < 0:
                raise _TooManyError
            if part.fields and (self._into_nodes or not part.is_node):
                self.count(start, at, part, depth + 1)

    def _was_met(self, data: bytes, start: int, end: int) -> bool:
        """Return whether an equal attribute was counted, so that it will be opened once for both."""
        if self._shared is None or end - start > _LONGEST_SHARED:
            return False
        attr = data[start:end]
        if attr in self._shared:
            return True
        self._shared.add(attr)
        return False

    def _take(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise _TooManyError


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, at + _LONGEST_VARINT):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < _CONTINUED:
            return value, place + 1
        shift += 7
    raise _DamagedError
