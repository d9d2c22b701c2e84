"""Explanations in little room: shared templates, nodes by number, and the same words as `explain`."""

from __future__ import annotations

from simplace.program.program import NodeNotes
from simplace.report.packed_sentences import PackedSentences
from tests.views import graphs
from tests.worlds import constant, node, place


def test_alike_nodes_share_their_templates() -> None:
    placement = graphs.chain(100)
    sentences = PackedSentences(placement)
    explained = [sentences.explanation(i) for i in range(3, len(placement.graph))]
    columns = sentences.columns()
    assert columns["templates"] == [
        ("The device /gpu:0 was requested.",),
        ("Relu with T=float32 has a kernel for GPU and CPU.",),
        ("Candidate devices, highest priority first: GPU:0.",),
        ("It requested /gpu:0 and got GPU:0.",),
    ]
    assert all(one == explained[0] for one in explained)


def test_a_sentence_names_nodes_by_number() -> None:
    placement = place(
        node("v", "VarHandleOp", device="/gpu:1", extra='attr { key: "shape" value { shape { } } }'),
        node("v/read", "ReadVariableOp", "v"),
        notes={"v": NodeNotes(variable="weights")},
    )
    sentences = PackedSentences(placement)
    numbers = sentences.explanation(placement.graph.ids["v/read"])
    columns = sentences.columns()
    said = [columns["sentences"][i] for i in numbers]
    spelled = [(columns["templates"][template], nodes) for template, *nodes in said]
    assert (("Colocated because ", 1, " uses the resource that comes from ", 2, "."), [1, 0]) in spelled


def test_marks_in_a_program_name_no_node() -> None:
    placement = place(constant("a", (2,)), node("x\\001n99\\002y", "Relu", "a"), name="marks")
    sentences = PackedSentences(placement)
    for i in range(2, len(placement.graph)):
        sentences.explanation(i)
    nodes = [n for _, *nodes in sentences.columns()["sentences"] for n in nodes]
    assert all(0 <= n < 2 for n in nodes)
