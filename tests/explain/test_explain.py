from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from simplace.errors import NodeNotFoundError
from simplace.explain.explanation import explain_node
from simplace.kernels.extra import parse_extra
from simplace.placement.placement import Placement
from simplace.program.program import NodeNotes
from tests.placement.real import CPU0, GPU1, TABLE, WORLD


@dataclass(frozen=True)
class Case:
    """Record of a graph in which node `n` is asked about."""

    name: str
    graph: str
    soft: bool = True
    default: str = ""


CASES = [
    Case("soft_fallback", "a = Source()\nn = Half(a) @/GPU:0"),
    Case("colocated_by_resource", "h = Handle() @/GPU:1\nn = Read(h)\nm = Read(h)"),
    Case("overruled", "h = Handle() @/GPU:1\nn = Read(h) @/CPU:0"),
    Case("contradiction", 'a = Source()\nb = Neg(a) @/GPU:1\nn = Neg(a) [_class=["loc:@b"]] @/CPU:0'),
    Case("int32_in_host_memory", "a = Ints()\nn = Index(a) @/GPU:0"),
    Case("refused", "a = Source()\nb = NegC(a) @/GPU:0\nn = Neg(b)", soft=False),
    Case("generator", "n = Source()\na = NegC(n)\nb = NegC(n)"),
    Case("default_device", "a = Source()\nn = Neg(a)", default=GPU1),
    Case("argument", f"n = _Arg() [T=int32] !{CPU0}\nb = Neg(n) [T=int32]", default=GPU1),
]
MORE = parse_extra(
    {
        "op": [
            {
                "name": "Half",
                "inputs": ["x: T"],
                "outputs": ["y: T"],
                "attrs": ["T: {float, double} = DT_FLOAT"],
            },
            {"name": "Index", "inputs": ["at: int32"], "outputs": ["value: int32"]},
        ],
        "kernel": [
            {"op": "Half", "device": "CPU"},
            {"op": "Half", "device": "GPU", "types": {"T": ["double"]}},
            {"op": "Index", "device": "CPU"},
            {"op": "Index", "device": "GPU", "host_memory": ["at", "value"]},
        ],
    },
    "more",
)


def placed(case: Case) -> Placement:
    world = replace(WORLD, table=TABLE.with_extra(MORE))
    return world.place(case.graph, soft=case.soft, default=case.default)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_whole_explanation(case: Case, golden: Callable[[str, str], None]) -> None:
    golden(f"{case.name}.txt", f"{explain_node(placed(case), 'n')}\n")


def test_source_lines_are_named() -> None:
    placement = placed(Case("", "n = Source() @/GPU:1"))
    notes = {"": {"n": NodeNotes(at="model.py:7", device_at="model.py:6")}}

    text = explain_node(replace(placement, program=replace(placement.program, notes=notes)), "n")

    assert str(text.headline) == "n (Source) runs on GPU:1 at model.py:7."
    assert str(text.sentences[0]) == "The device /GPU:1 was requested by the line model.py:6."


def test_node_is_found_by_the_end_of_its_name() -> None:
    placement = placed(Case("", "layer/one/n = Source()\nlayer/two/m = Source()\nlayer/three/m = Source()"))
    assert explain_node(placement, "n").node == "layer/one/n"
    assert explain_node(placement, "two/m").node == "layer/two/m"


def test_a_node_of_a_layer_is_named_and_found_as_the_user_named_the_layer() -> None:
    placement = placed(Case("", "model_1/dense_3/n = Source()\nmodel_1/dense_4/n = Source()\ndense/m = Source()"))
    notes = {"model_1/dense_3/n": "model/head/n", "model_1/dense_4/n": "model/tail/n", "dense/m": "dense/m"}
    known = {name: NodeNotes("model.py:7", known_as=layers) for name, layers in notes.items()}
    placement = replace(placement, program=replace(placement.program, notes={"": known}))

    assert [explain_node(placement, name).node for name in ("model/head/n", "tail/n", "dense_4/n")] == [
        "model_1/dense_3/n", "model_1/dense_4/n", "model_1/dense_4/n"
    ]  # fmt: skip
    assert str(explain_node(placement, "head/n").headline) == (
        "model_1/dense_3/n (Source), by its layers' names model/head/n, runs on GPU:0 at model.py:7."
    )
    assert str(explain_node(placement, "m").headline) == "dense/m (Source) runs on GPU:0 at model.py:7."
    with pytest.raises(NodeNotFoundError, match="'n' is ambiguous"):
        explain_node(placement, "n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m", "'m' is ambiguous in case: 2 nodes end in it; name one of layer/three/m, layer/two/m"),
        (
            "layer/oen/n",
            "no node is called 'layer/oen/n' in case; did you mean layer/one/n, layer/two/m or layer/three/m?",
        ),
        ("_SOURCE", "no node is called '_SOURCE' in case; simplace show --table lists every node"),
    ],
)
def test_unknown_node_gets_the_closest_names(name: str, message: str) -> None:
    placement = placed(Case("", "layer/one/n = Source()\nlayer/two/m = Source()\nlayer/three/m = Source()"))
    with pytest.raises(NodeNotFoundError) as caught:
        explain_node(placement, name)
    assert str(caught.value).startswith(message)
