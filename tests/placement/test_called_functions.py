"""The functions that kernels in a placed graph call: those of datasets, and calls that were not inlined."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.devices.device_set import DeviceSet, local_devices, seen_from_the_first
from simplace.kernels.registry import KernelTable
from simplace.pipeline import place_program
from simplace.placement.captured_function import find_captured
from simplace.placement.partitioned_function_ops import find_called
from simplace.placement.placement import Placement
from simplace.program.program import ObservedRun, Program, SessionRun
from tests.lowering.worlds import CPU0, GPU0, call_program, function, session_program

TABLE = KernelTable.shipped("2.21.0")
DEVICES = local_devices([("CPU", 1), ("GPU", 1)])
MAP = function(
    "__inference_scale_3(x: float, v: resource) -> y: float",
    "r = ReadVariableOp(v) {dtype=float}\nm = Mul(x, r:value:0) {T=float}",
    {"y": "m:z:0"},
)
SUM = function("add(s: float, x: float) -> y: float", "a = AddV2(s, x) {T=float}", {"y": "a:z:0"})
WALK = function(
    "walk(d: variant, v: resource, s: float) -> y: float",
    """
    m = MapDataset(d, v) {f=fn('__inference_scale_3'), Targuments=(resource,), output_types=(float,), ...}
    r = ReduceDataset(m:handle:0, s) {f=fn('add'), Tstate=(float,), Targuments=(), output_types=(float,), ...}
    """.replace("...", "output_shapes=(shape,)"),
    {"y": "r:components:0"},
)


def placed(program: Program) -> Placement:
    return place_program(program, DEVICES, TABLE)


def test_the_functions_of_datasets_with_the_devices_of_their_arguments() -> None:
    placement = placed(call_program(WALK, MAP, SUM, devices=(CPU0, GPU0, CPU0)))
    scale, add = find_captured(placement)
    assert (scale.name, scale.kind, scale.function, scale.scope, scale.arg_devices) == (
        "scale", "dataset", "__inference_scale_3", CPU0, (CPU0, GPU0),
    )  # fmt: skip
    assert (scale.caller.node, scale.caller.role, scale.caller.takes_default, scale.caller.rewrites) == (
        "m", "map function", True, 1,
    )  # fmt: skip
    assert (add.caller.role, add.caller.takes_default, add.caller.rewrites) == ("reduce function", False, 0)
    assert {node.name: node.device for node in placed(scale).nodes} == {
        "x": CPU0, "v": GPU0, "r": GPU0, "m": CPU0, "y_RetVal": CPU0, "FakeSink0": CPU0,
    }  # fmt: skip
    assert {node.name: node.device for node in placed(add).nodes} == {
        "s": CPU0, "x": CPU0, "a": GPU0, "y_RetVal": CPU0,
    }  # fmt: skip


def test_a_call_that_a_session_does_not_inline() -> None:
    call = "k = PartitionedCall(c, c) @/device:GPU:0 {f=fn('add'), Tin=(float, float), Tout=(float,)}"
    graph = f"c = Const() {{dtype=float, value=0}}\n{call}"
    (add,) = find_called(placed(session_program(graph, SUM)))
    assert (add.name, add.kind, add.scope, add.arg_devices, add.caller.node) == ("add", "call", GPU0, (GPU0, GPU0), "k")
    assert {node.device for node in placed(add).nodes} == {GPU0}


@pytest.mark.parametrize(
    ("body", "attrs", "more", "is_inlined"),
    [
        ("a = Neg(x) {T=float}", {}, "d = Neg(k) {T=float}", True),
        ("a = Neg(x) {T=float}", {"_noinline": True}, "d = Neg(k) {T=float}", False),
        ("a = Neg(x) {T=float}", {}, "", False),  # Grappler leaves small graphs as they are
        ("a = Neg(x) {T=float}\np = Print(a:y:0, a:y:0) {T=float, U=(float,)}", {}, "d = Neg(k) {T=float}", False),
        ("a = Neg(x) {T=float}\nr = RandomUniform(s) {T=int32, dtype=float}", {}, "d = Neg(k) {T=float}", True),
        ("b = Const() {dtype=bool, value=0}\nw = Switch(x, b:output:0) {T=float}\n"
         "a = Neg(w:output_true:0) {T=float}", {}, "d = Neg(k) {T=float}", False),
    ],
)  # fmt: skip
def test_a_call_that_grappler_inlines_keeps_effects_and_results(body, attrs, more, is_inlined) -> None:
    function_ = function("f(x: float, s: int32) -> y: float", body, {"y": "a:y:0"}, attrs=attrs)
    graph = "c = Const() {dtype=float, value=0}\ns = Const() {dtype=int32, value=0}\n"
    program = session_program(
        f"{graph}k = PartitionedCall(c, s) {{f=fn('f'), Tin=(float, int32), Tout=(float,)}}\n{more}", function_
    )
    wanted = ("d:0",) if more else ("k:0",)
    (called,) = find_called(placed(replace(program, runs=(ObservedRun(SessionRun(fetches=wanted)),))))
    assert called.caller.is_inlined == is_inlined
    for other in (replace(program, inlines_later=False), program):  # which no run needs
        assert [each.caller.is_inlined for each in find_called(placed(other))] == [False]


def place_arguments(captured: str, device: str, devices: DeviceSet) -> tuple[str, ...]:
    """Return where the arguments are of what a map on a device calls: an element, and a captured tensor of a type."""
    signature = f"keep(x: float, w: {captured}) -> y: float"
    keep = function(signature, "i = Identity(x) {T=float}", {"y": "i:output:0"})
    walk = function(
        f"walk(d: variant, w: {captured}) -> y: variant",
        f"m = MapDataset(d, w) @{device} {{f=fn('keep'), Targuments=({captured},), output_types=(float,), "
        "output_shapes=(shape,)}",
        {"y": "m:handle:0"},
    )
    program = call_program(walk, keep, devices=(devices.host.name,) * 2)
    (called,) = find_captured(place_program(program, devices, TABLE))
    return called.arg_devices


def test_a_captured_variant_is_on_the_device_of_the_op() -> None:
    cpu1 = CPU0.replace("CPU:0", "CPU:1")
    assert place_arguments("variant", "/device:CPU:1", local_devices([("CPU", 2)])) == (cpu1, cpu1)


def test_a_captured_string_is_in_the_memory_of_the_task_that_walks() -> None:
    first, second = (f"/job:worker/replica:0/task:{task}/device:" for task in (0, 1))
    devices = seen_from_the_first([f"{task}{kind}:0" for task in (first, second) for kind in ("CPU", "GPU")])
    assert place_arguments("string", f"{second}GPU:0", devices) == (f"{second}CPU:0",) * 2


def test_a_call_becomes_one_of_what_stands_in_for_its_function() -> None:
    layer = function("layer(x: float) -> y: float", "a = Neg(x) {T=float}", {"y": "a:y:0"}, attrs=alike("CPU"))
    fused = function("fused(x: float) -> y: float", "a = Abs(x) {T=float}", {"y": "a:y:0"}, attrs=alike("GPU"))
    call = "k = PartitionedCall({}) @{} {{f=fn('layer'), Tin=(float,), Tout=(float,)}}"
    graph = "c = Const() {dtype=float, value=0}\nd = Neg(c) {T=float}\n"
    graph += "\n".join((call.format("d", "/device:GPU:0"), call.format("d", "/device:CPU:0").replace("k", "l", 1)))
    world = session_program(graph, layer, fused)
    assert [each.name for each in find_called(placed(world))] == ["fused", "layer"]
    assert [each.name for each in find_called(placed(replace(world, has_grappler=False)))] == ["layer", "layer"]
    small = session_program("c = Const() {dtype=float, value=0}\n" + call.format("c", "/device:GPU:0"), layer, fused)
    assert [each.name for each in find_called(placed(small))] == ["layer"], "of a graph that Grappler leaves as it is"


def alike(device: str) -> dict[str, bytes]:
    return {"api_implements": b"layer", "api_preferred_device": device.encode()}
