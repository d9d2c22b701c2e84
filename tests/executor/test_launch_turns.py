"""Threads that launch on one GPU wait for each other."""

from __future__ import annotations

import pytest

from simplace.analysis.waits import list_waits, sum_by_cause
from simplace.views.text.sharing_phrases import describe_shared_hardware
from tests.executor.worlds import DEVICES, Costs, run, ticks

TWO_CHAINS = """
    x = Placeholder() @c {dtype=float}
    y = Placeholder() @c {dtype=float}
    A = Neg(x) @c
    B = Neg(y) @c
    C = Neg(A) @g0
    D = Neg(B) @g0
"""
COSTS = Costs(launch=2.0, copies=0.0, times={"B": 1.5})


def launches(text: str, **settings: object) -> list[str]:
    done = run(text, COSTS, cores=4, inter_op=4, **settings)
    return sorted(line.partition(": ")[2] for line in ticks(done) if "inter-op" in line)


def test_two_threads_launch_on_one_gpu_one_after_the_other() -> None:
    assert launches(TWO_CHAINS) == ["A 0-1", "B 0-1.5", "C 1-3", "D 3-5"]


def test_two_threads_launch_on_two_gpus_at_once() -> None:
    apart = TWO_CHAINS.replace("D = Neg(B) @g0", "D = Neg(B) @g1")
    assert launches(apart) == ["A 0-1", "B 0-1.5", "C 1-3", "D 1.5-3.5"]


def test_a_launch_says_that_it_waited_for_another_and_for_which() -> None:
    done = run(TWO_CHAINS, COSTS, cores=4, inter_op=4)
    names = [node.name for node in done.estimated.graph.nodes]
    spans = done.trace.spans
    (late,) = (span for span in spans if names[span.node] == "D" and span.kind == "launch")
    assert (late.why, late.ready / 1e6, late.start / 1e6) == ("launch", 1.5, 3.0)
    assert names[spans[late.cause].node] == "C"
    assert sum_by_cause(list_waits(done.trace))["launch"] == pytest.approx(1.5e6)


def test_who_asked_first_is_next() -> None:
    three = TWO_CHAINS + "    z = Placeholder() @c {dtype=float}\n    E = Neg(z) @c\n    F = Neg(E) @g0\n"
    costs = Costs(launch=2.0, copies=0.0, times={"B": 1.75, "E": 1.5})
    lines = [line.partition(": ")[2] for line in ticks(run(three, costs, cores=4, inter_op=4)) if "inter-op" in line]
    assert lines[3:] == ["C 1-3", "F 3-5", "D 5-7"]


def test_a_library_launches_on_while_its_first_kernel_runs() -> None:
    """The stream begins with the first launch; the thread, and its turn, are free after the last one."""
    costs = Costs(launch=0.5, copies=0.0, times={"B": 1.25, "C": 4.0}, more={"C": 2.0})
    done = run(TWO_CHAINS, costs, cores=4, inter_op=4)
    lines = [line for line in ticks(done) if " 0-" not in line]
    assert sorted(lines) == [
        "GPU:0 compute: C 1.5-5.5", "GPU:0 compute: D 5.5-6.5",
        "inter-op 0: D 3.5-4", "inter-op 1: C 1-1.5", "inter-op 1: C 1.5-3.5",
    ]  # fmt: skip
    assert sum_by_cause(list_waits(done.trace))["launch"] == pytest.approx(2.25e6)


def test_one_thread_never_waits_for_itself() -> None:
    assert sum_by_cause(list_waits(run(TWO_CHAINS, COSTS, cores=1, inter_op=1).trace))["launch"] == 0


HALVES = DEVICES.on_cards({device.name: 0 for device in DEVICES if device.type == "GPU"})
ON_BOTH = TWO_CHAINS.replace("D = Neg(B) @g0", "D = Neg(B) @g1")


def test_logical_gpus_of_a_card_take_turns_to_launch_and_to_run() -> None:
    """The card has one context of the driver, and a kernel of the one waits for the kernel of the other."""
    costs = Costs(launch=2.0, copies=0.0, times={"B": 1.5, "C": 9.0})
    done = run(ON_BOTH, costs, cores=4, inter_op=4, devices=HALVES)
    lines = sorted(line for line in ticks(done) if " 0-" not in line)
    assert describe_shared_hardware(done) == ["physical GPU 0 runs the kernels of GPU:0, GPU:1 one at a time: busy 77%"]
    assert lines == [
        "GPU:0 compute: C 3-12", "GPU:1 compute: D 12-13", "inter-op 0: D 3-5", "inter-op 1: C 1-3",
    ]  # fmt: skip


def test_kernels_of_two_cards_run_at_once() -> None:
    lines = ticks(run(ON_BOTH, Costs(launch=2.0, copies=0.0, times={"B": 1.5, "C": 9.0}), cores=4, inter_op=4))
    assert [line for line in lines if "compute" in line] == ["GPU:0 compute: C 3-12", "GPU:1 compute: D 3.5-4.5"]
