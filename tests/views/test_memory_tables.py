"""What `simplace memory` says of small worlds: what a step needs, whether it fits, with which batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.analysis.memory_at_start import list_start_memory
from simplace.analysis.memory_remedies import find_remedies
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.costs.outcomes import Loop
from simplace.exports.memory_report import report_memory
from simplace.program.program import Resource
from simplace.views.figures.memory_chart import memory_chart
from simplace.views.text.memory_tables import describe_batch, write_memory, write_verdict
from tests.executor.worlds import Costs, run

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
KIB = 1024


def never_state(_: int) -> bool:
    """Say of each variable that it is no optimizer's."""
    return False


def step(batch: int = 64, units: int = 16, limit: int = 20 * KIB, more: str = "") -> Schedule:
    """Simulate two layers on a GPU: `units` floats an example, and a weight of `units` x `units`."""
    x, w = f"_output_shapes=(dims({batch}, {units}),)", f"_output_shapes=(dims({units}, {units}),)"
    text = f"""
        v = VarHandleOp() @g0 {{dtype=float, shape=dims({units}, {units})}}
        x = Placeholder() @g0 {{dtype=float, {x}}}
        w = ReadVariableOp(v) @g0 {{dtype=float, {w}}}
        a/MatMul = MatMul(x, w) @g0 {{{x}}}
        a/Relu = Relu(a/MatMul) @g0 {{{x}}}
        b/MatMul = MatMul(a/Relu, w) @g0 {{{x}}}
        b/Add = AddV2(b/MatMul, x) @g0 {{{x}}}
    """
    return run(text + more, Costs(limit=limit))


def test_a_step_that_fits_is_told_in_full() -> None:
    assert (
        write_memory(StepMemory.of(step()))
        == """\
p: memory of a step, simulated with by name

device  tensors   needs     has  verdict
───────────────────────────────────────────────────────
GPU:0    13 KiB  13 KiB  20 KiB  fits, 7 KiB (35%) free

GPU:0 at its peak, 1 ms ± 50% into the step
kind             bytes  share  tensors  largest
───────────────────────────────────────────────
weights          1 KiB     8%        1  w 1 KiB
outputs of ops  12 KiB    92%        3  x 4 KiB

tensor    bytes  share  kind            line
────────────────────────────────────────────
x         4 KiB    31%  outputs of ops  -
a/MatMul  4 KiB    31%  outputs of ops  -
b/MatMul  4 KiB    31%  outputs of ops  -
w         1 KiB     8%  weights         -

outputs by scope  bytes  share  tensors  largest
───────────────────────────────────────────────────────
a                 4 KiB    33%        1  a/MatMul 4 KiB
b                 4 KiB    33%        1  b/MatMul 4 KiB
x                 4 KiB    33%        1  x 4 KiB

batch: 64; the largest that fits: 100; with a tenth of the memory left free: 88

process      device  takes at start  at most  why
──────────────────────────────────────────────────────────────────────────────────────────────────────────────
localhost/0  GPU:0           20 KiB   20 KiB  visible: all but TensorFlow's reserve
localhost/0  GPU:1           20 KiB   20 KiB  visible: all but TensorFlow's reserve; this step does not use it

note: not counted: what kernels need besides their inputs and outputs (the workspaces of cuDNN's convolutions and of \
cuBLAS), and what Grappler changes"""
    )


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    memory = StepMemory.of(step())
    largest = memory.largest_batch
    assert largest is not None
    assert StepMemory.of(step(), batch=largest).fits
    refused = StepMemory.of(step(), batch=largest + 1)
    assert write_verdict(refused, refused.uses[0]).startswith("does not fit: no room at ")
    assert report_memory(refused, never_state)["fits"] is False


@pytest.mark.parametrize("batch", [16, 64, 100])
def test_another_batch_needs_what_a_step_of_that_batch_needs(batch: int) -> None:
    other = StepMemory.of(step(batch=64, units=32, limit=10**6), batch=batch)
    own = StepMemory.of(step(batch=batch, units=32, limit=10**6))
    assert [other.needed(use) for use in other.uses] == [own.needed(use) for use in own.uses]


def test_another_batch_has_no_times_of_its_own() -> None:
    memory = StepMemory.of(step(), batch=32)
    assert "\nGPU:0 at its peak\n" in write_memory(memory)
    caption = memory_chart(memory.schedule, memory.uses, memory.resize).caption
    assert caption == "memory over a step, at the times of the program's own batch; costs by name"


def grow_elsewhere(batch: int) -> str:
    """Write a result whose second dimension is the batch, and the 1,024 numbers of a weight in a row."""
    return f"""
        c/MatMul = MatMul(w, b/Add) @g0 {{transpose_b=True, _output_shapes=(dims(32, {batch}),)}}
        d/Flat = Sin(w) @g0 {{_output_shapes=(dims(1024),)}}
        d/MatMul = MatMul(c/MatMul, d/Flat) @g0 {{_output_shapes=(dims(1024),)}}
    """


@pytest.mark.parametrize("batch", [8, 64, 100])
def test_what_the_data_are_made_into_grows_and_a_weight_in_a_row_does_not(batch: int) -> None:
    """1,024 is a multiple of 64, too. The last result is as long as the weight: its gradient, say."""
    other = StepMemory.of(step(units=32, limit=10**6, more=grow_elsewhere(64)), batch=batch)
    own = StepMemory.of(step(batch=batch, units=32, limit=10**6, more=grow_elsewhere(batch)))
    assert [other.needed(use) for use in other.uses] == [own.needed(use) for use in own.uses]


def test_a_batch_as_large_as_a_weight_is_not_told_apart() -> None:
    memory = StepMemory.of(step(batch=16))
    assert memory.largest_batch is None
    assert describe_batch(memory) == (
        "batch: 16 is also the first dimension of a variable (w), so what grows with the batch cannot be told; "
        "call the function with another batch"
    )


def test_a_loop_of_as_many_rounds_as_the_batch_may_take_its_examples_one_by_one() -> None:
    own = step()

    def describe(loop: Loop) -> str:
        execution = replace(own.execution, flow=replace(own.flow, loops=(loop,)))
        return describe_batch(StepMemory.of(replace(own, execution=execution)))

    assert describe(Loop("map/while", 64, "read")) == (
        "batch: the loop map/while runs 64 times, perhaps once for each example of the batch, so what another batch "
        "needs cannot be told; call the function with another batch"
    )
    others = Loop("map/while", 63, "read"), Loop("map/while", 64, "given")
    assert [describe(loop) for loop in others] == [
        "batch: 64; the largest that fits: 100; with a tenth of the memory left free: 88"
    ] * 2


def test_a_batch_that_is_not_simulated_is_told_first() -> None:
    headline = write_memory(StepMemory.of(step(batch=16), batch=64)).splitlines()[0]
    assert headline == "p: memory of a step, of the program's own batch, not of 64, simulated with by name"


def sum_gradients(count: int, batch: int) -> str:
    """Write a sum of as many gradients, of 64 KiB each with a batch of 64 and 256 units."""
    gradients = "".join(
        f"g{i} = Neg(b/Add) @g0 {{name='{i}', _output_shapes=(dims({batch}, 256),)}}\n" for i in range(count)
    )
    names = ", ".join(f"g{i}" for i in range(count))
    return f"{gradients}s = AddN({names}) @g0 {{N={count}, _output_shapes=(dims({batch}, 256),)}}"


@pytest.mark.parametrize(("count", "batch", "is_told"), [(6, 26_215, True), (6, 26_214, False), (5, 10**6, False)])
def test_sums_that_a_tape_makes_early_are_told(count: int, batch: int, is_told: bool) -> None:
    memory = StepMemory.of(step(units=256, limit=0, more=sum_gradients(count, 64)), batch=batch)
    assert ("note: called with a batch of" in write_memory(memory)) == is_told


def test_variables_of_other_functions_are_in_memory_too() -> None:
    done = step()
    other = replace(done.placement.program, resources={0: Resource("slots", GPU, "m.py:3", True, 1, (18 * 256,))})
    memory = StepMemory.of(done, [other])
    assert memory.needed(memory.uses[0]) == StepMemory.of(done).needed(memory.uses[0]) + 18 * KIB
    assert not memory.fits


def test_what_computes_in_16_bits_is_not_offered_mixed_precision() -> None:
    half = "h = Cast(a/Relu) @g0 {SrcT=float, DstT=half, _output_shapes=(dims(64, 16),)}"
    remedies = find_remedies(StepMemory.of(step(limit=12 * KIB, more=half)))
    assert [one.kind for one in remedies] == ["batch", "move"]


def test_what_would_help_is_simulated() -> None:
    memory = StepMemory.of(step(limit=12 * KIB))
    remedies = find_remedies(memory)
    assert [one.kind for one in remedies] == ["batch", "float16", "move"]
    assert all(one.fits for one in remedies[:2])  # the other GPU is as small
    assert all(one.needed <= 12 * KIB for one in remedies)
    text = write_memory(memory, remedies)
    assert f"a batch of {memory.largest_batch}" in text
    assert [one["kind"] for one in report_memory(memory, never_state, remedies)["remedies"]] == [
        "batch",
        "float16",
        "move",
    ]
    assert find_remedies(StepMemory.of(step())) == []


def test_gradients_of_parts_are_summed_where_variables_are_written() -> None:
    schedule = step(limit=12 * KIB, more="    u = AssignSubVariableOp(v, w) @g0 {dtype=float}\n")
    (found,) = (one for one in find_remedies(StepMemory.of(schedule)) if one.kind == "accumulate")
    assert (found.amount, found.fits) == (2, True)


def test_a_process_takes_each_visible_gpu_at_start() -> None:
    schedule = step()
    (start, *others) = list_start_memory(schedule, grows=False)
    assert (start.process, start.at_start, start.is_used) == ("/job:localhost/task:0", 20 * KIB, True)
    assert [one.is_used for one in others] == [False] * len(others)
    assert all(one.at_start == 0 for one in list_start_memory(schedule, grows=True))


def test_what_the_allocator_cannot_use_is_told_apart() -> None:
    memory = StepMemory.of(step(more="c/Mul = Mul(b/Add, b/Add) @g0 {_output_shapes=(dims(64, 3),)}"), batch=61)
    (use,), lost = memory.uses[:1], memory.needed(memory.uses[0]) - memory.tensors(memory.uses[0])
    report = report_memory(memory, never_state)["devices"][0]
    assert report["lost"] == lost > 0
    assert sum(one["bytes"] for one in report["kinds"]) + lost == memory.needed(use)
    assert "lost by the allocator: rounding, pieces too small" in write_memory(memory)


def test_the_largest_tensors_are_listed_with_their_kinds() -> None:
    report = report_memory(StepMemory.of(step()), is_state=lambda _: True)["devices"][0]
    assert [(one["tensor"], one["bytes"], one["kind"]) for one in report["holders"]] == [
        ("x:0", 4 * KIB, "output"), ("a/MatMul:0", 4 * KIB, "output"), ("b/MatMul:0", 4 * KIB, "output"),
        ("w", KIB, "state"),
    ]  # fmt: skip
    assert [one["kind"] for one in report["kinds"]] == ["state", "output"]
