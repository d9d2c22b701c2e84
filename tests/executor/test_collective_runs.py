"""Collectives in both executors: they start when the last member is ready, and take time on all of them."""

from __future__ import annotations

import pytest

from simplace.analysis.schedule import Schedule
from simplace.devices.device_link import DeviceLink
from simplace.executor.trace import Span
from tests.executor.worlds import MS, Costs, run, ticks
from tests.lowering.worlds import DEVICES

REDUCE = """
    x = Placeholder() @g0 {dtype=float}
    y = Placeholder() @g1 {dtype=float}
    A = Neg(x) @g0
    B = Neg(y) @g1
    a = NcclAllReduce(A) @g0 {num_devices=2, reduction=b"sum", shared_name=b"c"}
    b = NcclAllReduce(B) @g1 {num_devices=2, reduction=b"sum", shared_name=b"c"}
    A1 = Neg(a) @g0
    B1 = Neg(b) @g1
"""
SLOW_B = Costs({"A": 2.0, "B": 7.0}, collectives=3.0)


def collectives(done: Schedule) -> list[Span]:
    return [span for span in done.trace.spans if span.kind == "collective"]


def test_a_collective_starts_when_the_last_gpu_is_ready_and_holds_both_up() -> None:
    assert sorted(ticks(run(REDUCE, SLOW_B, inter_op=2))) == [
        "GPU:0 collectives: a 7-10",
        "GPU:0 compute: A 0-2",
        "GPU:0 compute: A1 10-11",
        "GPU:1 collectives: b 7-10",
        "GPU:1 compute: B 0-7",
        "GPU:1 compute: B1 10-11",
    ]


def test_the_textbook_executor_joins_members_as_well() -> None:
    done = run(REDUCE, SLOW_B, executor="textbook")
    assert ticks(done)[2:] == [
        "GPU:0 collectives: a 7-10", "GPU:1 collectives: b 7-10", "GPU:0 inter-op 0: A1 10-11",
        "GPU:1 inter-op 0: B1 10-11",
    ]  # fmt: skip
    assert [(span.ready // MS, span.why) for span in collectives(done)] == [(2, "member"), (7, "dependency")]
    assert done.waiting_by_cause["member"] == 5 * MS


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
def test_the_lower_bound_counts_a_collective_once_and_from_its_last_member(executor: str) -> None:
    done = run(REDUCE, SLOW_B, executor=executor, inter_op=2)
    assert done.longest_chain == 11 * MS == done.trace.makespan


def test_two_collectives_of_the_same_gpus_queue_up() -> None:
    second = (
        REDUCE
        + """
    c = NcclAllReduce(A) @g0 {num_devices=2, reduction=b"sum", shared_name=b"d"}
    d = NcclAllReduce(B) @g1 {num_devices=2, reduction=b"sum", shared_name=b"d"}
    """
    )
    done = run(second, SLOW_B, inter_op=1)
    assert sorted((span.start // MS, span.end // MS) for span in collectives(done)) == [
        (7, 10), (7, 10), (10, 13), (10, 13),
    ]  # fmt: skip


CONDITIONAL = """
    x = Placeholder() @g0 {dtype=float}
    y = Placeholder() @g1 {dtype=float}
    p = Placeholder() @c {dtype=bool}
    q = Placeholder() @c {dtype=bool}
    S = Switch(x, p) @g0
    R = Switch(y, q) @g1
    a = NcclAllReduce(S:1) @g0 {num_devices=2, reduction=b"sum", shared_name=b"c"}
    b = NcclAllReduce(R:1) @g1 {num_devices=2, reduction=b"sum", shared_name=b"c"}
    M = Merge(a, S) @g0 {N=2}
    N = Merge(b, R) @g1 {N=2}
"""


@pytest.mark.parametrize(
    ("branches", "ran"), [({"p": 1, "q": 1}, 2), ({"p": 0, "q": 0}, 0), ({"p": 1, "q": 0}, 1), ({"p": 0, "q": 1}, 1)]
)
def test_members_on_branches_not_taken_hold_nobody_up(branches: dict[str, int], ran: int) -> None:
    assert len(collectives(run(CONDITIONAL, branches=branches))) == ran


def test_a_collective_in_a_loop_runs_in_each_iteration_of_each_member() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float}
        y = Placeholder() @g1 {dtype=float}
        n = Placeholder() @c {dtype=int32}
        i = Enter(n) @c {T=int32, frame_name=b"loop", parallel_iterations=10}
        u = Enter(x) @g0 {frame_name=b"loop", parallel_iterations=10}
        v = Enter(y) @g1 {frame_name=b"loop", parallel_iterations=10}
        iM = Merge(i, iN) @c {T=int32, N=2}
        uM = Merge(u, uN) @g0 {N=2}
        vM = Merge(v, vN) @g1 {N=2}
        less = Less(iM, iM) @c {T=int32}
        go = LoopCond(less) @c
        iS = Switch(iM, go) @c {T=int32}
        uS = Switch(uM, go) @g0
        vS = Switch(vM, go) @g1
        a = NcclAllReduce(uS:1) @g0 {num_devices=2, reduction=b"sum", shared_name=b"c"}
        b = NcclAllReduce(vS:1) @g1 {num_devices=2, reduction=b"sum", shared_name=b"c"}
        iN = NextIteration(iS:1) @c {T=int32}
        uN = NextIteration(a) @g0
        vN = NextIteration(b) @g1
        uX = Exit(uS) @g0
        vX = Exit(vS) @g1
    """
    for executor in ("tensorflow", "textbook"):
        found = collectives(run(text, trips={"loop": 3}, executor=executor))
        assert len(found) == 6
        assert all(found[i].start == found[i + 1].start for i in (0, 2, 4))


ONE_LOOP = """
    x{k} = Placeholder() @g{k} {{dtype=float}}
    n{k} = Placeholder() @c {{dtype=int32}}
    i{k} = Enter(n{k}) @c {{T=int32, frame_name=b"loop{k}", parallel_iterations=10}}
    u{k} = Enter(x{k}) @g{k} {{frame_name=b"loop{k}", parallel_iterations=10}}
    iM{k} = Merge(i{k}, iN{k}) @c {{T=int32, N=2}}
    uM{k} = Merge(u{k}, uN{k}) @g{k} {{N=2}}
    less{k} = Less(iM{k}, iM{k}) @c {{T=int32}}
    go{k} = LoopCond(less{k}) @c
    iS{k} = Switch(iM{k}, go{k}) @c {{T=int32}}
    uS{k} = Switch(uM{k}, go{k}) @g{k}
    a{k} = NcclAllReduce(uS{k}:1) @g{k} {{num_devices=2, reduction=b"sum", shared_name=b"c"}}
    iN{k} = NextIteration(iS{k}:1) @c {{T=int32}}
    uN{k} = NextIteration(a{k}) @g{k}
    uX{k} = Exit(uS{k}) @g{k}
"""


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
@pytest.mark.parametrize("links", [(), ("switch",)])
def test_a_member_whose_partner_never_comes_goes_on_alone(executor: str, links: tuple[str, ...]) -> None:
    """Each GPU has a loop, one of two rounds, one of four: TensorFlow would wait forever in the third."""
    text = "".join(ONE_LOOP.format(k=k) for k in (0, 1))
    gpus = tuple(f"/job:localhost/replica:0/task:0/device:GPU:{k}" for k in (0, 1))
    devices = DEVICES.joined_by([DeviceLink(name, 0, gpus) for name in links])
    found = collectives(run(text, devices=devices, trips={"loop0": 2, "loop1": 4}, executor=executor))
    assert len(found) == 6
    assert [found[i].start == found[i + 1].start for i in (0, 2)] == [True, True]
    assert found[4].end <= found[5].start
