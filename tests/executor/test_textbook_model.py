"""The tutorials' model: a pool a device, ops queued at counter zero, kernels split over the intra-op pool."""

from simplace.analysis.schedule import schedule_placement
from tests.executor.worlds import Costs, run, ticks
from tests.views.graphs import empty

FIVE_OPS = """
    x = Placeholder() @g0 {dtype=float}
    y = Placeholder() @g1 {dtype=float}
    A = Neg(x) @g0
    B = Neg(x) @g0
    C = Neg(y) @g1
    D = Neg(C) @g1
    E = Neg(C) @g1
"""
COSTS = Costs({"A": 6.0, "B": 1.0, "C": 2.0, "D": 1.0, "E": 3.0}, shards={"A": 3})


def test_ops_a_to_e_on_two_gpus() -> None:
    done = run(FIVE_OPS, COSTS, executor="textbook", inter_op=2, intra_op=3)
    assert ticks(done) == [
        "GPU:0 inter-op 0: A 0-2",
        "GPU:0 inter-op 1: B 0-1",
        "GPU:1 inter-op 0: C 0-2",
        "GPU:0 intra-op 0: A 0-2",
        "GPU:0 intra-op 1: A 0-2",
        "GPU:0 intra-op 2: A 0-2",
        "GPU:1 inter-op 0: D 2-3",
        "GPU:1 inter-op 1: E 2-5",
    ]


def test_one_thread_queues_ops() -> None:
    done = run(FIVE_OPS, COSTS, executor="textbook", inter_op=1, intra_op=1)
    assert ticks(done) == [
        "GPU:0 inter-op 0: A 0-6",
        "GPU:1 inter-op 0: C 0-2",
        "GPU:1 inter-op 0: D 2-3",
        "GPU:1 inter-op 0: E 3-6",
        "GPU:0 inter-op 0: B 6-7",
    ]
    assert done.waiting_by_cause["thread"] == 7_000_000  # B for A (6), E for D (1)


def test_copies_queue_on_the_link() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float}
        A = Neg(x) @g0
        B = Neg(x) @g0
        C = AddV2(A, B) @g1
    """
    done = run(text, Costs(copies=2.0), executor="textbook", inter_op=2)
    assert ticks(done)[2:] == [
        "GPU:0 → GPU:1: A:0/_send_0 1-3",
        "GPU:0 → GPU:1: B:0/_send_1 3-5",
        "GPU:1 inter-op 0: C 5-6",
    ]


def test_a_graph_without_ops_takes_no_time() -> None:
    done = schedule_placement(empty(), executor="textbook", steps=2)
    assert (done.trace.spans, done.trace.makespan, len(done.trace.steps)) == ((), 0, 2)
