"""Which resources a call that XLA compiles may not use, and what TensorFlow says of them."""

from __future__ import annotations

from dataclasses import replace

from simplace.explain.failures import find_failures, format_failure
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import NodeNotes, Program, Resource
from tests.lowering.worlds import CPU0, DEVICES, GPU0, GPU1, TABLE, call_program, function, session_program

READ = function(
    "read(x: float, v: resource) -> y: float",
    """
    r = ReadVariableOp(v) {dtype=float}
    m = Mul(x, r:value:0) {T=float}
    """,
    {"y": "m:z:0"},
)
COMPILED = "{f=fn('read'), Tin=(float, resource), Tout=(float,), _XlaMustCompile=True}"
CALLER = function(
    "f(x: float, v: resource) -> y: float",
    f"""
    same = Identity(v) {{T=resource}}
    c = PartitionedCall(x, same:output:0) @/device:GPU:0 {COMPILED}
    """,
    {"y": "c:output:0"},
)
NOTES = {"read": {"v": NodeNotes("model.py:7")}}


def placed(program: Program) -> Placement:
    return place_program(program, DEVICES, TABLE)


def called(device: str) -> Program:
    """Return a program whose inner call is given a variable of a device."""
    given = {1: Resource("v/3", device, "model.py:3", is_variable=True)}
    return replace(call_program(CALLER, READ, devices=(GPU0, device)), resources=given, notes=NOTES)


def test_a_variable_of_another_gpu() -> None:
    (one,) = find_failures(placed(called(GPU1)))
    assert (one.source, one.nodes, one.level, one.rule) == ("model.py:7", ("v/3",), "error", "xla-other-device")
    assert one.error == (
        f"Trying to access resource v/3 (defined @ model.py:3) located in device {GPU1} from device {GPU0}"
    )
    assert format_failure(one) == (
        f"XLA compiles c for GPU:0, and cannot use a variable on GPU:1 (model.py:7): {one.error}"
    )


def test_a_variable_of_the_same_gpu_is_no_failure() -> None:
    assert find_failures(placed(called(GPU0))) == []


def test_the_handle_of_a_variable_of_a_session() -> None:
    text = """
    x = Placeholder() {{dtype=float}}
    v = VarHandleOp() @/device:{} {{dtype=float, shape=shape, shared_name=b"weights"}}
    c = PartitionedCall(x, v) @/device:GPU:0 {}
    """
    (one,) = find_failures(placed(session_program(text.format("CPU:0", COMPILED), READ)))
    assert one.error == f"Trying to access resource weights located in device {CPU0} from device {GPU0}"
    assert find_failures(placed(session_program(text.format("GPU:0", COMPILED), READ))) == []


def test_a_call_from_eager_code_and_a_table() -> None:
    (node,) = session_program(
        "call = StatefulPartitionedCall() {f=fn('read'), Tin=(), Tout=(), _XlaMustCompile=True}"
    ).graph.nodes
    graph = replace(call_program(READ).graph, nodes=(node,))
    given = {1: Resource("table_4", CPU0, "model.py:3", is_variable=False)}
    program = Program("step", "compiled", graph, resources=given)
    (one,) = find_failures(placed(program))
    assert one.error == f"Trying to access resource table_4 located in device {CPU0} from device {GPU0}"
    assert "and cannot use a table on CPU:0" in format_failure(one)
    assert find_failures(placed(replace(program, scope=CPU0))) == []
