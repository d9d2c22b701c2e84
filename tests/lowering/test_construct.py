"""The order of nodes and edges of a graph made from a node list."""

import pytest

from simplace.errors import TargetError
from simplace.graph.graph import Graph, freeze_graph
from simplace.lowering.graph_constructor import construct_finished, construct_graph
from simplace.lowering.op_signatures import Signatures
from simplace.program.status import Refusal, Refused
from tests.lowering.worlds import TABLE, nodes


def build(text):
    return construct_graph(nodes(text), Signatures(TABLE, {}))


def names(graph):
    return " ".join(node.name for node in graph.op_nodes())


def edges(graph):
    return " ".join(f"{e.src.name}{'^' if e.is_control else ''}>{e.dst.name}" for e in graph.edges)


def test_sorted_list_keeps_its_order():
    graph = build("b = Const() {dtype=float}\na = Const() {dtype=float}\nc = AddV2(a, b)")
    assert names(graph) == "b a c"


def test_first_ready_node_of_the_list_goes_first():
    graph = build("""
        late = AddV2(z, a)
        z = Relu(y)
        a = Const() {dtype=float}
        y = Const() {dtype=float}
    """)
    assert names(graph) == "a y z late"


def test_control_inputs_by_name_without_duplicates():
    graph = build("""
        b = NoOp()
        a = NoOp()
        x = Const(^b, ^a, ^b) {dtype=float}
        y = Relu(x)
    """)
    assert edges(graph) == "a^>x b^>x x>y _SOURCE^>_SINK _SOURCE^>b _SOURCE^>a y^>_SINK"


def test_merge_that_reads_itself_closes_a_loop():
    graph = build("""
        one = Const() {dtype=float}
        merge = Merge(one, next, merge) {N=3}
        next = NextIteration(merge)
    """)
    assert edges(graph).startswith("one>merge merge>next next>merge merge>merge _SOURCE^>_SINK")


def test_loop_is_closed_after_all_nodes():
    graph = build("""
        one = Const() {dtype=float}
        enter = Enter(one) {frame_name=b"f"}
        merge = Merge(enter, next) {N=2}
        other = Relu(merge)
        next = NextIteration(merge)
    """)
    assert names(graph) == "one enter merge other next"
    assert edges(graph).startswith("one>enter enter>merge merge>other merge>next next>merge _SOURCE^>_SINK")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = NoOp()\na = NoOp()", "two nodes are called 'a'; names must be unique in a graph"),
        ("a = Relu(b)", "node 'a' has the input 'b', but no node is called 'b'"),
        ("a = Relu(b)\nb = Relu(a)", "2 nodes are in a cycle, among them 'a'"),
        ("a = NoOp()\nb = Relu(a)", "node 'b' reads output 0 of 'a', which has no outputs"),
        ("a = Relu()", "node 'a' has 0 inputs, but its op Relu takes 1"),
    ],
)
def test_graph_that_does_not_hold_together(text, message):
    with pytest.raises(TargetError) as error:
        build(text)
    assert str(error.value) == message


def test_a_data_input_after_a_control_input_is_refused():
    with pytest.raises(Refused) as error:
        build("a = NoOp()\nb = Relu(^a, a)")
    assert error.value.refusal == Refusal(
        "INVALID_ARGUMENT", "Node 'b': Control dependencies must come after regular dependencies"
    )


FINISHED = {
    "sorted, with controls": """
        b = NoOp()
        a = NoOp()
        x = Const(^b, ^a, ^b) {dtype=float}
        y = Relu(x, ^a)
    """,
    "unsorted": """
        late = AddV2(z, a)
        z = Relu(y)
        a = Const() {dtype=float}
        y = Const() {dtype=float}
    """,
    "loop": """
        one = Const() {dtype=float}
        enter = Enter(one) {frame_name=b"f"}
        merge = Merge(enter, next) {N=2}
        other = Relu(merge)
        next = NextIteration(merge)
    """,
    "empty": "",
}


@pytest.mark.parametrize("text", FINISHED.values(), ids=FINISHED)
def test_without_the_builder_the_graph_is_the_same(text):
    signatures = Signatures(TABLE, {})
    made, frozen = construct_finished(nodes(text), signatures), freeze_graph(construct_graph(nodes(text), signatures))
    assert columns(made) == columns(frozen)


def columns(graph: Graph):
    return {name: list(getattr(graph, name)) for name in Graph.__dataclass_fields__}


def test_merge_fed_by_back_edges_alone_is_a_cycle():
    with pytest.raises(TargetError, match="2 nodes are in a cycle, among them 'merge'"):
        build("""
            merge = Merge(next) {N=1}
            next = NextIteration(merge)
        """)


def test_a_loop_that_begins_with_a_reference_and_goes_on_with_a_value_is_refused():
    with pytest.raises(Refused) as refused:
        build("""
            v = VariableV2() {dtype=float, shape=shape}
            enter = RefEnter(v) {frame_name=b"f"}
            merge = RefMerge(enter, next) {N=2}
            value = Relu(merge)
            next = NextIteration(value)
        """)
    assert refused.value.refusal.message == (
        "Input 1 of node merge was passed float from next:0 incompatible with expected float_ref."
    )
