"""Memory alive: peaks, holders, running out."""

from dataclasses import replace

from simplace.analysis.memory_failures import find_out_of_memory
from simplace.devices.device_set import DeviceSet
from simplace.graph.node_def import ShapeAttr
from simplace.pipeline import place_program
from tests.executor.worlds import Costs, run
from tests.lowering.worlds import DEVICES, TABLE, session_program

assert ShapeAttr  # the worlds' `shape` is a vector of two floats
CHAIN = """
    x = Placeholder() @g0 {dtype=float, shape=shape}
    A = MatMul(x, x) @g0
    B = MatMul(A, A) @g0
    C = MatMul(B, B) @g0
"""


def test_chain_holds_two_tensors_at_a_time() -> None:
    gpu = run(CHAIN).memory[1]
    # Each takes the least that a GPU's allocator gives out; the placeholder's is dropped with A.
    assert (gpu.peak, gpu.resident) == (512, 0)


def test_identity_shares_its_input() -> None:
    text = CHAIN.replace("B = MatMul(A, A)", "B = Identity(A)")
    assert run(text).memory[1].peak == 512


def test_elementwise_op_writes_into_an_input_that_nobody_else_needs() -> None:
    text = CHAIN.replace("B = MatMul(A, A)", "B = Neg(A)")
    assert run(text).memory[1].peak == 512  # x and A, then A alone with B in its place, then that and C
    assert len([change for change in run(text).trace.memory if change.change > 0]) == 3
    shared = text + "D = AddV2(A, C) @g0"  # A is needed again, so B is a tensor of its own
    assert run(shared).memory[1].peak == 768


def test_memory_that_runs_out_names_the_op_and_the_tensors() -> None:
    gpu = run(CHAIN + "D = AddV2(A, C) @g0", Costs(limit=600)).memory[1]
    done = run(CHAIN + "D = AddV2(A, C) @g0", Costs(limit=600))
    names = done.estimated.graph.nodes
    assert names[gpu.runs_out].name == "C"
    assert sorted(names[held.node].name for held in gpu.alive_then) == ["A", "B", "C"]


def test_no_room_for_a_copy_is_no_room_for_the_tensor_that_is_copied() -> None:
    graph = """
        x = Placeholder() @/device:CPU:0 {dtype=float, shape=shape}
        y = Identity(x) @/device:CPU:0 {T=float}
        A = Neg(y) @/device:GPU:0
        last = NoOp(^A) @/device:GPU:0
    """
    devices = DeviceSet(replace(one, memory=100 * (one.type == "GPU")) for one in DEVICES.devices)
    (found,) = find_out_of_memory([place_program(session_program(graph), devices, TABLE)])
    assert (found.nodes, found.device, found.error) == (("y",), "GPU:0", "OOM when allocating tensor")


def test_given_limit_wins_over_the_hardware() -> None:
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert run(CHAIN, Costs(limit=10**9), limits={gpu: 256}).memory[1].runs_out >= 0
