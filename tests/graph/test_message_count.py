"""A file of very many tiny parts is refused by a count, before protobuf makes a message of each."""

from __future__ import annotations

import contextlib

import pytest

from simplace.errors import TargetError, UnreadableError
from simplace.graph import graph_def, message_count, protos
from simplace.graph.message_count import MOST_IN_TEXT, WEIGHTS, FieldLimit, PartLimit, check_count
from simplace.importers import saved_model

MOST_PARTS, MOST_FIELDS = 1_200_000, 600_000  # a tenth of the real limits, which is as good a test, and quicker
NODE = b"\n\x01a\x12\x04NoOp"  # name: "a", op: "NoOp"


@pytest.fixture(autouse=True)
def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_count, "MOST_PARTS", MOST_PARTS)
    monkeypatch.setattr(message_count, "_MOST_FIELDS", MOST_FIELDS)


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def node(content: bytes = b"") -> bytes:
    return field(1, NODE + content)


def attr(key: str, value: bytes) -> bytes:
    return field(5, field(1, key.encode()) + field(2, value))


def parts_of(data: bytes, name: str = "GraphDef", *, sealed: bool = True) -> int:
    """Return the smallest limit under which a message is read."""
    low, high = 0, 1 << 20
    while low < high:
        middle = (low + high) // 2
        try:
            check_count(name, data, sealed=sealed, parts=PartLimit(middle))
            high = middle
        except UnreadableError:
            low = middle + 1
    return low


def pad(data: bytes) -> bytes:
    """Make a small message long enough to be counted at all, with a field that no message has."""
    return data + field(1000, bytes(1 << 16))


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", 0),
        (node(), 20),
        (node() * 3, 60),
        (node(field(3, b"x") * 3), 20 + 3 * 5),
        (node(attr("T", b"\x30\1")), 20 + 10 + 2),
        (node(attr("T", b"\x30\1")) * 2, 2 * 20 + 10 + 2 + 2),  # equal attributes are opened once
        (node(attr("T", b"\x30\1") + attr("T", b"\x30\2")), 20 + 2 * (10 + 2)),
        (node(attr("s", field(1, b"\x3a\0" * 7))), 20 + 10 + 2 + 2 + 7 * 4),  # a list of shapes
        (node(attr("s", field(7, b"\x12\0" * 7))), 20 + 10 + 2 + 4 + 7 * 2),  # a shape of seven dimensions
        (node(attr("i", field(1, b"\x18\1" * 7))), 20 + 10 + 2 + 2 + 7 * 2),  # numbers one by one
        (node(attr("i", field(1, field(3, b"\1" * 7)))), 20 + 10 + 2 + 2 + 7),  # and packed
        (node(attr("v", field(8, field(4, bytes(999))))), 20 + 10 + 2 + 8),  # a constant's content is no part
        (field(2, field(1, field(3, NODE))), 2 + 80 + 20),  # a node of a function
        (field(1000, b"\n\0" * 50), 0),  # unknown
        (varint(1000 << 3 | 3) + node() + varint(1000 << 3 | 4), 20),  # in a group, as if it was outside of it
        (b"\x8a\0" + varint(len(NODE)) + NODE, 20),  # a number in two bytes that would have one
        (node() + b"\n\x7f", 20),  # truncated behind it
        (b"\n" + b"\xff" * 11, 0),
    ],
)
def test_what_parts_count_for(data: bytes, parts: int) -> None:
    assert parts_of(pad(data) if not data.endswith((b"\x7f", b"\xff")) else field(1000, bytes(1 << 16)) + data) == parts


def test_attributes_of_a_saved_model_are_all_opened() -> None:
    assert parts_of(pad(node(attr("T", b"\x30\1")) * 2), sealed=False) == 2 * (20 + 10 + 2)


def test_each_message_with_a_weight_is_there() -> None:
    for name in WEIGHTS:
        assert protos.message_class(name)


REFUSED = (
    f"it would take too much memory: its nodes, attributes and lists are more than {MOST_PARTS:,} parts, "
    "the limit for a file of its size"
)
# Each is some megabytes, and made by the test that needs it.
TOO_MANY = {
    "nodes": lambda: b"\n\0" * (MOST_PARTS // 20 + 1),
    "attributes": lambda: node(distinct_attrs(1 + MOST_PARTS // 12)),
    "inputs": lambda: node(b"\x1a\0" * (1 + MOST_PARTS // 5)),
    "functions": lambda: node() + field(2, b"\n\0" * (1 + MOST_PARTS // 80)),
    "shapes": lambda: node(attr("s", field(1, b"\x3a\0" * (1 + MOST_PARTS // 4)))),
}


def distinct_attrs(count: int) -> bytes:
    """Return attributes with different keys of eight characters."""
    before, after = attr("########", b"").split(b"########")
    return b"".join(before + b"%08x" % i + after for i in range(count))


@pytest.mark.parametrize("kind", TOO_MANY)
def test_too_many_parts_are_refused_in_a_line(kind: str, tmp_path) -> None:
    file, data = tmp_path / "g.pb", TOO_MANY[kind]()
    file.write_bytes(data)
    with pytest.raises(TargetError) as refused:
        graph_def.read_graph_file(file)
    assert str(refused.value) == f"{file}: cannot be read: {REFUSED}"
    (tmp_path / "saved_model.pb").write_bytes(field(2, field(2, data)))
    with pytest.raises(TargetError) as refused:
        saved_model.read_saved_model(tmp_path)
    assert str(refused.value) == f"the SavedModel in {tmp_path} cannot be read: {REFUSED}"


@pytest.mark.parametrize(("letters", "is_read"), [(40, True), (10, False)])
def test_a_large_file_may_have_a_part_for_every_two_bytes(letters: int, is_read: bool) -> None:
    data = field(1, field(1, bytes(letters))) * (MOST_PARTS // 20 + 1)
    with contextlib.nullcontext() if is_read else pytest.raises(UnreadableError):
        check_count("GraphDef", data)


@pytest.mark.parametrize("tiny", [b"\x78\x01", b"\x1a\0", b"\x12\0"], ids=["unknown", "version", "library"])
def test_fields_are_counted_once_for_all_kinds_of_messages(tiny: bytes, tmp_path) -> None:
    """Fields that count for nothing, as no memory is taken for each, take time nevertheless."""
    limit = FieldLimit(0)
    check_count("GraphDef", tiny * 400_000, limit=limit)
    assert limit.left <= 200_000
    with pytest.raises(UnreadableError, match="it has more than 600,000 fields, the limit for a file of its size"):
        check_count("MetaGraphDef", tiny * 400_000, limit=limit)
    (tmp_path / "g.pb").write_bytes(tiny * 700_000 + b"\xff")
    with pytest.raises(TargetError, match="it has more than 600,000 fields, the limit for a file of its size"):
        graph_def.read_graph_file(tmp_path / "g.pb")


def test_a_meta_graph_is_not_counted_as_the_graph_that_it_is_not(tmp_path) -> None:
    nodes = [{"name": f"a{i}", "op": "NoOp"} for i in range(MOST_PARTS // 80 + 1)]
    meta = protos.message_class("MetaGraphDef")(graph_def={"node": nodes})
    (tmp_path / "m.pb").write_bytes(meta.SerializeToString())
    assert len(graph_def.read_graph_file(tmp_path / "m.pb").nodes) == len(nodes)


def test_what_tensorflow_wrote_for_us_has_no_limit(tmp_path) -> None:
    (tmp_path / "g.pb").write_bytes(node(b"\x1a\0" * (1 + MOST_PARTS // 5)))
    (found,) = graph_def.read_graph_file(tmp_path / "g.pb", is_ours=True).nodes
    assert len(found.inputs) == 1 + MOST_PARTS // 5


def test_long_text_is_refused_with_how_to_make_it_binary(tmp_path) -> None:
    text = "node{}" * (MOST_IN_TEXT + 1)
    said = (
        f"it has more than {MOST_IN_TEXT:,} fields, the most that are read as text; "
        "write it binary: tf.io.write_graph(graph, folder, name, as_text=False)"
    )
    (tmp_path / "g.pbtxt").write_text(text)
    with pytest.raises(TargetError) as refused:
        graph_def.read_graph_file(tmp_path / "g.pbtxt")
    assert str(refused.value) == f"{tmp_path / 'g.pbtxt'}: cannot be read: {said}"
    (tmp_path / "saved_model.pbtxt").write_text(f"meta_graphs{{graph_def{{{text}}}}}")
    with pytest.raises(TargetError) as refused:
        saved_model.read_saved_model(tmp_path)
    assert str(refused.value) == f"the SavedModel in {tmp_path} cannot be read: {said}"


@pytest.mark.parametrize("damaged", [b"\0", b"\x06", b"\x07"], ids=["field 0", "wire type 6", "wire type 7"])
def test_what_protobuf_refuses_at_once_is_not_counted_to_its_end(damaged: bytes) -> None:
    many = node() * 3
    check_count("GraphDef", damaged + many, parts=PartLimit(1))
    with pytest.raises(UnreadableError):
        check_count("GraphDef", many, parts=PartLimit(1))
