"""Functions that call each other without number are counted, not made."""

import pytest

from simplace.errors import TargetError
from simplace.graph.builder import Node, Origin
from simplace.graph.graph_def import parse_text
from simplace.lowering.explosion import refuse_explosion
from simplace.lowering.op_signatures import Signatures
from simplace.program.program import Program
from tests.worlds import shipped


def function(name: str, *called: str) -> str:
    attrs = 'attr { key: "T" value { type: DT_FLOAT } }'
    nodes, last = "", "x"
    for i, one in enumerate(called):
        nodes += f'node_def {{ name: "n{i}" op: "{one}" input: "{last}" }}'
        last = f"n{i}:y:0"
    nodes += f'node_def {{ name: "out" op: "Identity" input: "{last}" {attrs} }}'
    arguments = 'input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT }'
    return f'function {{ signature {{ name: "{name}" {arguments} }} {nodes} ret {{ key: "y" value: "out:output:0" }} }}'


def library(*functions: str) -> Signatures:
    graph = parse_text(f"library {{ {' '.join(functions)} }}")
    return Signatures(shipped(), Program("p", "function", graph).graph.library)


def call(op: str) -> Node:
    return Node(2, "call", op, "", {}, ((1,), (1,)), Origin("", "call"))


def test_a_billion_nodes_are_refused():
    doubled = [function(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(30)]
    with pytest.raises(TargetError) as caught:
        refuse_explosion([call("f0")], library(*doubled, function("f30")), inline_calls=True)
    assert str(caught.value) == (
        "inlining all functions that node 'call' calls, directly and indirectly, would create 4,294,967,293 nodes; "
        "the limit is 1,000,000"
    )


def test_a_long_chain_and_a_circle_are_counted():
    chain = [function(f"f{i}", f"f{i + 1}") for i in range(5000)]
    refuse_explosion([call("f0")], library(*chain, function("f5000")), inline_calls=True)
    refuse_explosion([call("a")], library(function("a", "b"), function("b", "a")), inline_calls=True)


def test_calls_that_stay_calls_do_not_count():
    doubled = [function(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(30)]
    refuse_explosion([call("f0")], library(*doubled, function("f30")), inline_calls=False)
