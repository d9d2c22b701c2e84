from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.errors import TargetError
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.graph_text import parse_graph, parse_lines, to_text
from simplace.graph.node_def import FuncRef, ShapeAttr, TensorInfo
from simplace.graph.verify import verify_graph

OPS = {"Source": ((), (1,)), "Pair": ((), (1, 3)), "Neg": ((1,), (1,)), "Sum": ((1, 1), (1,)), "Do": ((), ())}


def types(op: str, attrs: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return OPS[op]


def test_edges_follow_the_lines_then_source_and_sink() -> None:
    graph = parse_graph("a = Pair()\nb = Sum(a, a:0, ^c)\nc = Source()", types)

    edges = list(zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot, strict=True))
    assert edges == [
        (2, 0, 3, 0),
        (2, 0, 3, 1),
        (4, CONTROL, 3, CONTROL),
        (0, -1, 2, -1),
        (3, -1, 1, -1),
        (0, -1, 4, -1),
    ]
    assert graph.names == ["_SOURCE", "_SINK", "a", "b", "c"]


def test_line_holds_attributes_and_devices() -> None:
    text = (
        r'a = Source() [T=float32, _class=["loc:@b", "say \"x\" \n"], big=-1.5e-07, dims=[1, 2], f=fn("g", T=int32), '
        r"n=3, none=none, on=true, s=shape(2, ?), t=tensor(int32, shape(), -4), u=shape(*), var=$T] @/GPU:0 !/CPU:0"
    )

    line = parse_lines(text)[0]

    assert line.node.attrs == {
        "T": DataType.DT_FLOAT,
        "_class": (b"loc:@b", b'say "x" \n'),
        "big": -1.5e-07,
        "dims": (1, 2),
        "f": FuncRef("g", {"T": DataType.DT_INT32}),
        "n": 3,
        "none": None,
        "on": True,
        "s": ShapeAttr((2, -1)),
        "t": TensorInfo(DataType.DT_INT32, (), -4),
        "u": ShapeAttr(None),
        "var": "T",
    }
    assert (line.node.device, line.assigned) == ("/GPU:0", "/CPU:0")
    assert to_text(parse_graph(text, types)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a Source()", "'a Source()' is not a node; write nodes like `y = Neg(x) [T=float32] @/GPU:0`"),
        ("a = Source()\na = Source()", "two nodes are called 'a'; names must be unique in a graph"),
        ("a = Neg(b)", "node 'a' has the input 'b', but no node is called that"),
        ("a = Source()\nb = Neg(a:1)", "node 'b' reads 'a:1', but 'a' has 1 outputs"),
        ("a = Neg()", "node 'a' has 0 inputs, but its op Neg takes 1"),
        ("a = Do() [T=]", "the end is out of place in the attributes of 'a = Do() [T=]'"),
        ("a = Do() [T=flout]", "'flout' is out of place in the attributes of 'a = Do() [T=flout]'"),
        ("a = Do() [T=;]", "cannot read ';' in the attributes of 'a = Do() [T=;]'"),
    ],
)
def test_text_that_does_not_hold_together_is_refused(text: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_graph(text, types)
    assert str(caught.value) == message


NAMES = st.from_regex(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]{0,8}", fullmatch=True)
DIMS = st.none() | st.lists(st.integers(-1, 9), max_size=3).map(tuple)
DTYPES = st.sampled_from([dtype for dtype in DataType if dtype])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False)
    | st.binary(max_size=6)
    | DTYPES
    | DIMS.map(ShapeAttr)
    | st.builds(TensorInfo, DTYPES, DIMS, st.none() | st.integers(-9, 9))
)
KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
VALUES = (
    LEAVES
    | st.lists(LEAVES, max_size=3).map(tuple)
    | st.builds(FuncRef, NAMES, st.dictionaries(KEYS, LEAVES, max_size=2))
)


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    lines = []
    outputs: list[str] = []
    for i, name in enumerate(names):
        op = draw(st.sampled_from([op for op, (inputs, _) in OPS.items() if outputs or not inputs]))
        inputs = [draw(st.sampled_from(outputs)) for _ in OPS[op][0]]
        controls = draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=2)) if i else []
        device = draw(st.sampled_from(["", " @/job:a/device:GPU:*"]))
        assigned = draw(st.sampled_from(["", " !/job:a/replica:0/task:0/device:CPU:0"]))
        lines.append(f"{name} = {op}({', '.join([*inputs, *(f'^{name}' for name in controls)])}){device}{assigned}")
        outputs += [name for dtype in OPS[op][1][:1] if dtype == 1]
    graph = parse_graph("\n".join(lines), types)
    for i in range(2, len(graph)):
        graph.attrs[i] = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    return graph


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_parse_undoes_to_text(graph: Any) -> None:
    verify_graph(graph)
    assert parse_graph(to_text(graph), types) == graph
