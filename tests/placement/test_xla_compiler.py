"""What XLA compiles of a placed graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.analysis.schedule import Schedule
from simplace.devices.device_set import local_devices
from simplace.errors import NoStepError
from simplace.executor.step_options import StepOptions
from simplace.explain.explanation import explain_node
from simplace.explain.failures import uncompilable_ops
from simplace.explain.finding_lines import format_finding
from simplace.importers.xla_attributes import drop_jit
from simplace.kernels.registry import KernelTable
from simplace.pipeline import place_program
from simplace.placement import xla_compiler
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import find_clusters
from simplace.program.program import Program
from simplace.report.graph_data import graph_data
from simplace.result import Placed, Result
from tests.lowering.worlds import call_program, function

TABLE = KernelTable.shipped("2.21.0")
INNER = function("g(x: float) -> y: float", "r = Relu(x) {T=float}\nu = Neg(x)", {"y": "r:activations:0"})
COMPILED = function(
    "__inference_step_7(x: float) -> y: float",
    """
    text = AsString(x) {T=float}
    length = StringLength(text:output:0)
    number = Cast(length:output:0) {SrcT=int32, DstT=float}
    call = PartitionedCall(number:y:0) {f=fn('g'), Tin=(float,), Tout=(float,)}
    """,
    {"y": "call:output:0"},
)
CALLER = function(
    "f(x: float) -> y: float",
    """
    a = Neg(x) {T=float}
    c = PartitionedCall(a:y:0) @/device:GPU:0 {f=fn('__inference_step_7'), Tin=(float,), Tout=(float,),
        _XlaMustCompile=True}
    """.replace(",\n        ", ", "),
    {"y": "c:output:0"},
)


def placed(program: Program) -> Placement:
    return place_program(program, local_devices([("CPU", 1), ("GPU", 1)]), TABLE)


def test_a_cluster_has_the_ops_that_are_needed_of_all_calls() -> None:
    placement = placed(call_program(CALLER, COMPILED, INNER))
    (cluster,) = find_clusters(placement)
    assert (placement.graph.names[cluster.node], cluster.function, cluster.device[-5:]) == (
        "c", "__inference_step_7", "GPU:0",
    )  # fmt: skip
    assert [(op.name, op.op, op.is_supported) for op in cluster.ops] == [
        ("c/text", "AsString", False),
        ("c/length", "StringLength", False),
        ("c/number", "Cast", True),
        ("c/call/r", "Relu", True),
    ]


def test_what_xla_lacks_a_kernel_for_is_said() -> None:
    found = uncompilable_ops(placed(call_program(CALLER, COMPILED, INNER)))
    assert [format_finding(one) for one in found] == [
        "XLA has no kernel for AsString: TensorFlow refuses to run c, which XLA compiles",
        "XLA has no kernel for StringLength: TensorFlow refuses to run c, which XLA compiles",
    ]


NO_STEP = "no step of p is timed: TensorFlow fails to run it ({})"


def test_a_step_that_xla_cannot_compile_is_not_timed() -> None:
    program = call_program(CALLER, COMPILED, INNER)
    sound = call_program(CALLER, replace(COMPILED, nodes=INNER.nodes, ret=INNER.ret))
    assert Schedule.of(placed(sound), StepOptions()).trace.makespan > 0
    refused = replace(sound, xla_error="a size that depends on data", at="m.py:9")
    for failing, why in (
        (program, "XLA cannot compile, see doctor/not-compilable"),
        (refused, "XLA refuses at m.py:9, see doctor/xla-refuses"),
    ):
        with pytest.raises(NoStepError) as raised:
            Schedule.of(placed(failing), StepOptions())
        assert str(raised.value) == NO_STEP.format(why)


def test_on_the_page_the_call_stands_for_what_cannot_be_compiled() -> None:
    one = Placed(placed(call_program(CALLER, COMPILED, INNER)))
    data = graph_data(one, [device.name for device in one.placement.devices])
    names = [name for name in one.placement.graph.names if not name.startswith("_")]
    assert [(found["title"], [names[node] for node in found["nodes"]]) for found in data["findings"]] == [
        ("XLA cannot compile", ["c"]),
        ("XLA cannot compile", ["c"]),
    ]


def test_an_op_of_a_cluster_is_explained() -> None:
    placement = placed(call_program(CALLER, COMPILED, INNER))
    assert str(explain_node(placement, "text", find_clusters(placement))) == (
        "c/text (AsString) runs on GPU:0.\n"
        "  1. It is compiled by XLA together with 3 others into one kernel for GPU:0, where its call c "
        "(PartitionedCall) runs.\n"
        "  2. XLA has no kernel for AsString: TensorFlow refuses to run the call.\n"
        "  3. As for c (PartitionedCall): It requested /device:GPU:0 and got GPU:0.\n"
        "see reason/compiled_by_xla, reason/requested"
    )


def test_without_jit_the_ops_are_placed() -> None:
    placement = placed(drop_jit(call_program(CALLER, COMPILED, INNER)))
    assert find_clusters(placement) == ()
    names = [node.name for node in placement.nodes if not node.name.startswith("Func/")]
    assert [name for name in names if "/" in name] == [
        "c/text", "c/length", "c/number", "c/call/r", "c/call/u", "c/call",
    ]  # fmt: skip


def test_the_program_that_does_the_work_is_the_largest_with_what_xla_compiles() -> None:
    small = placed(call_program(CALLER, COMPILED, INNER))
    text = "\n".join(f"n{i} = Neg(x) {{T=float}}" for i in range(9))
    initializer = function("i(x: float) -> y: float", text, {"y": "n0:y:0"})
    setup = placed(replace(call_program(initializer), name="initialize_variables"))
    plain = placed(
        replace(call_program(function("h(x: float) -> y: float", "n0 = Neg(x) {T=float}", {"y": "n0:y:0"})), name="h")
    )
    made = Result("m.py", "2.21.0", "", small.devices, tuple(map(Placed, (setup, plain, small))))
    assert [one.ops for one in made] == [11, 3, 8]
    assert made.largest().placement is small


def test_ops_of_one_type_share_their_attributes_and_not_the_verdict() -> None:
    first, *others = COMPILED.nodes
    beside = first._replace(name="negated", op="Neg")
    compiled = replace(COMPILED, nodes=(first, beside, *others))
    assert beside.attrs is first.attrs
    assert [(op.op, op.is_supported) for op in find_clusters(placed(call_program(CALLER, compiled, INNER)))[0].ops][
        :2
    ] == [
        ("AsString", False),
        ("Neg", True),
    ]


def test_a_large_function_is_walked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(xla_compiler, "is_template", lambda function: bool(asked.append(function.name)))
    find_clusters(placed(call_program(CALLER, COMPILED, INNER)))
    assert asked == ["__inference_step_7", "g"], "not for each of its nodes: that is a walk through all of them"
