"""A user's own ops and kernels from a TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.errors import TargetError
from simplace.graph.dtypes import DataType
from simplace.kernels.extra import load_extra
from simplace.kernels.registry import ArgSpec, Kernel, OpDef

FLOAT, DOUBLE = DataType.DT_FLOAT, DataType.DT_DOUBLE
TEXT = """
[[op]]
name = "MyScan"
inputs = ["x: T", "weights: N * float", "handle: resource", "rest: Tin"]
outputs = ["y: Ref(T)"]
attrs = ["T: {float, double} = DT_FLOAT", "N: int >= 1", "Tin: list(type)", "mode: {'fast', 'slow'} = 'fast'",
         "sizes: list(int) = [1, 2]", "b: bool = true"]
stateful = true

[[kernel]]
op = "MyScan"
device = "GPU"
types = { T = ["float"] }
host_memory = ["handle"]
priority = 2
"""


def test_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TEXT)
    table = load_extra(tmp_path / "mine.toml")
    assert table.name == "mine.toml"
    assert table.op("MyScan") == OpDef(
        name="MyScan",
        inputs=(
            ArgSpec("x", type_attr="T"),
            ArgSpec("weights", FLOAT, number_attr="N"),
            ArgSpec("handle", DataType.DT_RESOURCE),
            ArgSpec("rest", type_list_attr="Tin"),
        ),
        outputs=(ArgSpec("y", type_attr="T", is_ref=True),),
        attr_types={
            "T": "type",
            "N": "int",
            "Tin": "list(type)",
            "mode": "string",
            "sizes": "list(int)",
            "b": "bool",
        },
        defaults={"T": FLOAT, "mode": b"fast", "sizes": (1, 2), "b": True},
        allowed={"T": (FLOAT, DOUBLE), "mode": (b"fast", b"slow")},
        is_stateful=True,
    )
    assert table.kernels("MyScan") == (
        Kernel("MyScan", "GPU", "", 2, (("T", frozenset({FLOAT})),), frozenset({"handle"})),
    )


MISTAKES = {
    "[[op": "is not TOML: ",
    "[op]": "op must be a list of tables; write [[op]]",
    "[[ops]]": "the file has the unknown key 'ops'; the known keys are kernel, op",
    "[[op]]": 'an [[op]] needs name = "..."',
    '[[op]]\nname="A"\ninputs=["x"]': 'op A: \'x\' is not an argument; write e.g. "x: T", "xs: N * T" or "v: Ref(T)"',
    '[[op]]\nname="A"\ninputs=["x: T"]': "op A: 'T' is neither a data type nor an attribute that holds one",
    '[[op]]\nname="A"\nattrs=["T: typ"]': "op A: 'typ' is not an attribute type; the types are ",
    '[[op]]\nname="A"\nattrs=["N: int = x"]': "op A: 'x' is not a value for an attribute of type int",
    '[[kernel]]\nop="A"': 'kernel of A needs device = "..."',
    '[[kernel]]\nop="A"\ndevice="GPU"\ntypes={T=["flot"]}': "kernel of A: 'flot' is neither a data type",
    '[[kernel]]\nop="A"\ndevice="GPU"\ndtype=1': "kernel of A has the unknown key 'dtype'; the known keys are device, ",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.toml").write_text(text)
    with pytest.raises(TargetError) as caught:
        load_extra(tmp_path / "k.toml")
    assert MISTAKES[text] in str(caught.value)
    assert "\n" not in str(caught.value)
