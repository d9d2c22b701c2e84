"""Findings about a simulated step: GPUs that wait, replicas one after another, loops of tiny kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplace.analysis import step_findings
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.analysis.step_findings import find_besides_waits, find_in_step
from simplace.doctor.advice import advise_on_finding
from simplace.explain.finding_lines import format_finding
from simplace.program.program import NodeNotes
from simplace.views.text.schedule_tables import list_warnings
from simplace.views.text.verdict import write_verdict
from tests.executor.worlds import Costs, run
from tests.worlds import constant, node, place

CHAIN = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g0
"""
COPIED = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g1
"""
LOOP = """
    x = Placeholder() @g0 {dtype=float}
    p = Placeholder() @c {dtype=bool}
    enter = Enter(x) @g0 {frame_name="round"}
    merge = Merge(enter, next) @g0 {N=2}
    go = Enter(p) @c {T=bool, frame_name="round", is_constant=True}
    cond = LoopCond(go) @c
    switch = Switch(merge, cond) @g0
    A = Neg(switch:1) @g0
    next = NextIteration(A) @g0
    exit = Exit(switch) @g0
"""


def said(schedule: Schedule) -> list[str]:
    """Write each finding as its rule, its line and what it costs in ms."""
    return [f"{one.rule}: {format_finding(one)}: {one.cost.seconds * 1000:.3g} ms" for one in find_in_step(schedule)]


def test_a_gpu_that_waits_for_launches() -> None:
    assert said(run(CHAIN, Costs(default=1.0, launch=4.0), inter_op=1)) == [
        "gpu-waits: GPU:0 waits for the host to launch 2 kernels during 78% of a simulated step: 7 ms"
    ]


def test_a_schedule_is_examined_once() -> None:
    done = run(COPIED, Costs(copies=5.0))
    assert find_in_step(done) is find_in_step(done)
    assert find_in_step(run(COPIED, Costs())) != find_in_step(done)


def test_a_gpu_that_waits_for_copies() -> None:
    assert said(run(COPIED, Costs(copies=5.0), inter_op=1)) == [
        "gpu-waits: GPU:0 and GPU:1 each wait for copies during 71% of a simulated step, longest for A (a step takes "
        "71% ± 11% less with all of it on GPU:0): 5 ms"
    ]


def test_without_waits_no_other_step_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = run(COPIED, Costs(copies=5.0), inter_op=1)
    monkeypatch.setattr(step_findings, "try_one_gpu", lambda _: pytest.fail("a second step is simulated"))
    assert find_besides_waits(waiting) == ()
    assert list_warnings(waiting) == []


def test_what_takes_next_to_nothing_is_not_told() -> None:
    assert said(run(CHAIN, Costs(default=0.01, launch=0.04), inter_op=1)) == []
    assert said(run(CHAIN, Costs(default=4.0, launch=1.0), inter_op=1)) == []


def test_a_loop_of_kernels_that_are_shorter_than_their_launch() -> None:
    assert said(run(LOOP, Costs(default=0.01, launch=0.1), inter_op=1, trips={"round": 20})) == [
        "launch-bound-loop: the loop round launches 20 kernels of 10 µs ± 50% on GPU:0 in 20 iterations, and waits for "
        "the launches: 1.81 ms"
    ]
    assert not any("loop" in line for line in said(run(LOOP, Costs(launch=0.01), trips={"round": 20})))


UNUSED = """
    x = Placeholder() @g0 {dtype=float}
    A = Neg(x) @g0
    B = Exp(A) @g0
    C = Exp(x) @g1
    D = Neg(x) @g0
    result = _Retval(D) @g0 {index=0}
"""


def test_what_nothing_uses_is_told_by_device_where_it_would_take_long() -> None:
    assert said(run(UNUSED, Costs({"A": 1.0, "B": 2.0, "C": 0.05}))) == [
        "unused-work: nothing uses what 2 ops (Exp, Neg) on GPU:0 compute: TensorFlow removes them before p runs, "
        "and thereby 60% of the work: 0 ms"
    ]
    assert said(run(UNUSED, Costs({"A": 0.01, "B": 0.01, "C": 0.01}))) == []
    assert said(run(UNUSED.replace("D)", "B)").replace("C = Exp", "C = Neg"), Costs({"C": 0.01, "D": 0.01}))) == []


DIFFERENTIATED = """
    x = Placeholder() @g0 {dtype=float}
    A = Exp(x) @g0
    B = Neg(A) @g0
    gradient_tape/A/one = Neg(x) @g0
    gradient_tape/A/other = Exp(x) @g0
    C = Neg(x) @g0
    result = _Retval(gradient_tape/A/one) @g0 {index=0}
"""


def test_what_differentiation_leaves_over_is_not_told() -> None:
    """Only the gradient is used: neither the loss, nor what it is made of, nor the gradient of another input."""
    left_over = dict.fromkeys(["A", "B", "gradient_tape/A/other"], 1.0)
    assert said(run(DIFFERENTIATED, Costs({**left_over, "C": 0.01}))) == []
    assert said(run(DIFFERENTIATED, Costs({**left_over, "C": 1.0}))) == [
        "unused-work: nothing uses what C (Neg) on GPU:0 computes: TensorFlow removes it before p runs, and thereby "
        "33% of the work: 0 ms"
    ]


def test_a_loop_of_kernels_that_are_too_small_for_the_gpu() -> None:
    costs = Costs(default=0.02, launch=0.005, small=True)
    assert said(run(LOOP, costs, trips={"round": 20})) == [
        "launch-bound-loop: the loop round launches 20 kernels of 20 µs ± 50% on GPU:0 in 20 iterations, which are too "
        "small to fill it: 0.4 ms"
    ]
    assert said(run(LOOP, replace(costs, small=False), trips={"round": 20})) == []
    assert said(run(LOOP, replace(costs, default=0.03), trips={"round": 20})) == []


def test_what_a_library_or_a_tape_computes_besides_is_no_line_of_the_program() -> None:
    def world(*used: str, at: str = "model.py:3") -> list[str]:
        nodes = [
            constant("x", (64, 64), device="/GPU:0"),
            node("y", "MatMul", "x", "x", device="/GPU:0"),
            node("gradient_tape/y/MatMul", "MatMul", "x", "y", device="/GPU:0"),
            node("gradient_tape/y/MatMul_1", "MatMul", "y", "x", device="/GPU:0"),
            *(node(f"out{i}", "_Retval", name, device="/GPU:0") for i, name in enumerate(used)),
        ]
        names = ("y", "gradient_tape/y/MatMul", "gradient_tape/y/MatMul_1")
        placement = place(*nodes, notes={name: NodeNotes(at) for name in names})
        return [one.rule for one in find_in_step(schedule_placement(placement, costs=Costs()))]

    assert world("y") == ["unused-work"]
    assert world("y", "gradient_tape/y/MatMul") == []
    assert world("y", at="") == []


def towers(*, first_updates: bool, count: int = 2) -> Schedule:
    """Simulate towers that read a variable, each one after the one before has updated it or not."""
    shape = 'attr { key: "shape" value { shape { dim { size: 64 } dim { size: 64 } } } }'
    nodes = [node("w", "VarHandleOp", device="/GPU:0", extra=shape)]
    for i in range(count):
        on, before = f"/GPU:{i}", [f"^set{i - 1}"] * (first_updates and i > 0)
        nodes += [
            constant(f"x{i}", (64, 64), device=on),
            node(f"read{i}", "ReadVariableOp", "w", *before),
            node(f"a{i}", "MatMul", f"x{i}", f"read{i}", device=on),
            node(f"b{i}", "MatMul", f"x{i}", f"a{i}", device=on),
            node(f"set{i}", "AssignSubVariableOp", "w", f"b{i}").replace('"T"', '"dtype"'),
        ]
    times = {"w": 0.0, **{f"read{i}": 0.0 for i in range(count)}, **{f"set{i}": 0.1 for i in range(count)}}
    return schedule_placement(place(*nodes, gpus=count), costs=Costs(times, copies=0.1), inter_op=1)


def test_towers_of_which_one_reads_what_the_other_has_updated() -> None:
    (line,) = [line for line in said(towers(first_updates=True)) if line.startswith("serial")]
    assert line == (
        "serial-replicas: GPU:0 and GPU:1 do the same work one after the other (a step takes 5% ± 2% less with all of "
        "it on GPU:0): GPU:1 reads what set0 has updated for GPU:0: 2 ms"
    )
    (line,) = [line for line in said(towers(first_updates=False)) if line.startswith("serial")]
    assert line == (
        "serial-replicas: GPU:0 and GPU:1 do the same work one after the other (a step takes 5% ± 2% less with all of "
        "it on GPU:0): what GPU:1 needs is copied when GPU:0 has done its work: 2 ms"
    )


def test_towers_in_a_row_are_one_finding_that_tells_what_they_wait_for() -> None:
    done = towers(first_updates=True, count=4)
    assert said(done) == [
        "serial-replicas: GPU:0 … GPU:3 do the same work one after the other (a step takes 7% ± 3% less with all of it "
        "on GPU:0): each reads what was updated for the one before, as by set0: 6 ms"
    ]
    assert write_verdict(done) == (
        "GPU:0 … GPU:3 busy 22% to 27%, each waits for another device during 66% to 71% of the step, longest for b0"
    )


def test_parts_of_one_model_are_no_replicas() -> None:
    parts = "x = Placeholder() @g0 {dtype=float}\n A = Neg(x) @g0\n B = Neg(A) @g1"
    assert not any(line.startswith("serial") for line in said(run(parts, Costs())))


def test_replicas_that_one_thread_launches_in_turn() -> None:
    pairs = "x = Placeholder() @c {dtype=float}\n" + "\n".join(
        f"{name} = Neg(x) @{device}" for name, device in (("A", "g0"), ("B", "g1"))
    )
    (line,) = [line for line in said(run(pairs, Costs(launch=3.0), inter_op=1)) if line.startswith("serial")]
    assert line == (
        "serial-replicas: GPU:0 and GPU:1 do the same work one after the other: one thread launches the kernels of "
        "both, those of GPU:1 last: 1 ms"
    )


def test_that_one_thread_launches_all_is_not_told_of_some() -> None:
    nodes = [node("x", "Placeholder", device="/CPU:0")]
    nodes += [node(f"A{i}", "Neg", "x", device=f"/GPU:{i}") for i in range(3)]
    placement = place(*nodes, gpus=3)
    alone, both = (schedule_placement(placement, costs=Costs(launch=3.0), inter_op=count) for count in (1, 2))
    assert [line for line in said(alone) if line.startswith("serial")] == [
        "serial-replicas: GPU:0 … GPU:2 do the same work one after the other: one thread launches the kernels of all: "
        "2 ms"
    ]
    (line,) = said(both)
    assert line.startswith("gpu-waits: GPU:0 … GPU:2 each wait for the host to launch 1 kernel during ")


def test_a_gpu_that_waits_for_the_cpu_is_told_to_compute_there() -> None:
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c\n B = Neg(A) @g0"
    (finding,) = find_in_step(run(text, Costs({"A": 9.0}), inter_op=1))
    assert format_finding(finding).startswith("GPU:0 waits for CPU:0 during ")
    assert advise_on_finding(finding).instead.startswith("Compute that on the GPU")
