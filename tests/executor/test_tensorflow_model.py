"""The replica of TensorFlow's executor: order, threads, streams, copies, loops."""

import pytest

from simplace.costs.cost_model import KernelCost, OpCall, Overheads
from simplace.errors import SimplaceError
from tests.executor.worlds import MS, Costs, order, run, ticks

TWO_CHAINS = """
    x = Placeholder() @c {dtype=float}
    A0 = Neg(x) @c
    B0 = Neg(x) @c
    A1 = Neg(A0) @c
    B1 = Neg(B0) @c
    A2 = Neg(A1) @c
    B2 = Neg(B1) @c
"""


def test_one_thread_keeps_the_last_chain() -> None:
    assert order(run(TWO_CHAINS, inter_op=1)) == "B0 B1 B2 A0 A1 A2"


def test_callers_thread_interleaves_chains() -> None:
    done = run(TWO_CHAINS, inter_op=-1)
    assert order(done) == "A0 B0 A1 B1 A2 B2"
    assert [track.name for track in done.trace.tracks if track.kind == "worker"] == ["caller"]


def test_second_thread_steals_the_oldest() -> None:
    done = run(TWO_CHAINS, inter_op=2, cores=2)
    assert done.trace.makespan == 3_000_000
    assert sorted(line.split(": ")[1] for line in ticks(done)) == [
        "A0 0-1", "A1 1-2", "A2 2-3", "B0 0-1", "B1 1-2", "B2 2-3",
    ]  # fmt: skip


def test_cheap_ops_run_breadth_first() -> None:
    cheap = Costs(default=0.001)  # 2000 cycles
    assert order(run(TWO_CHAINS, cheap, inter_op=1)) == "A0 B0 A1 B1 A2 B2"
    assert order(run(TWO_CHAINS, cheap, inter_op=1, warm=False)) == "B0 B1 B2 A0 A1 A2"


def test_an_asynchronous_kernel_stays_expensive() -> None:
    text = """
        q = Placeholder() @c {{dtype=resource}}
        x = Placeholder() @c {{dtype=float}}
        A = {op}(q, ^x) @c
        B = Neg(x) @c
        C = Neg(B) @c
    """
    cheap = Costs(default=0.001)  # 2000 cycles
    assert order(run(text.format(op="QueueIsClosedV2"), cheap, inter_op=1)) == "B C A"
    assert order(run(text.format(op="VarIsInitializedOp"), cheap, inter_op=1)) == "B A C"


def test_order_changes_when_the_average_has_settled() -> None:
    done = run(TWO_CHAINS, Costs(default=0.0001), inter_op=1, warm=False, steps=91)
    names = order(done).split()
    of_step = [" ".join(names[6 * i : 6 * i + 6]) for i in range(91)]
    assert of_step[89] == "B0 B1 B2 A0 A1 A2"
    assert of_step[90] == "A0 B0 A1 B1 A2 B2"


def test_more_threads_than_cores_share_them() -> None:
    done = run(TWO_CHAINS, inter_op=2, cores=1)
    assert done.trace.makespan == 6_000_000


def test_split_kernel_takes_free_threads() -> None:
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c"
    done = run(text, Costs({"A": 6.0}, shards={"A": 5}), inter_op=1, intra_op=3, cores=4)
    assert ticks(done) == ["inter-op 0: A 0-2", "intra-op 0: A 0-2", "intra-op 1: A 0-2"]


def test_gpu_thread_launches_and_goes_on() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float}
        A = Neg(x) @g0
        B = Neg(A) @g0
    """
    done = run(text, Costs({"A": 5.0, "B": 5.0}, launch=1.0), inter_op=1)
    assert ticks(done) == [
        "inter-op 0: A 0-1",
        "inter-op 0: B 1-2",
        "GPU:0 compute: A 1-6",
        "GPU:0 compute: B 6-11",
    ]
    assert done.trace.makespan == 11_000_000


def test_kernels_of_a_gpu_run_one_after_another_with_any_number_of_threads() -> None:
    on_gpu = TWO_CHAINS.replace("A0 = Neg(x) @c", "A0 = Neg(x) @g0").replace("B0 = Neg(x) @c", "B0 = Neg(x) @g0")
    done = run(on_gpu, Costs({"A0": 4.0, "B0": 5.0, "A1": 0.1, "A2": 0.1, "B1": 0.1, "B2": 0.1}), inter_op=8)
    assert done.longest_chain == 9 * MS < done.trace.makespan
    textbook = run(on_gpu, Costs({"A0": 4.0, "B0": 5.0}, copies=0.0), executor="textbook", inter_op=8)
    assert textbook.longest_chain == textbook.trace.makespan == 7 * MS


def test_copy_waits_for_what_both_gpus_have_enqueued() -> None:
    text = """
        x = Placeholder() @g0 {dtype=float}
        y = Placeholder() @g1 {dtype=float}
        Z = Neg(x) @g0
        A = Neg(Z) @g0
        L = Neg(y) @g1
        B = Neg(A) @g1
    """
    done = run(text, Costs({"Z": 2.0, "A": 2.0, "L": 7.0, "B": 1.0}, copies=3.0, launch=1.0), inter_op=2)
    assert [line for line in ticks(done) if "inter-op" not in line] == [
        "GPU:1 compute: L 1-8",
        "GPU:0 compute: Z 1-3",
        "GPU:0 compute: A 3-5",
        "GPU:0 to GPUs: A:0/_send_0 8-11",
        "GPU:1 compute: B 12-13",
    ]


def test_copies_of_one_direction_queue_up() -> None:
    text = """
        x = Placeholder() @c {dtype=float}
        y = Placeholder() @c {dtype=float}
        A = Neg(x) @g0
        B = Neg(y) @g0
        C = AddV2(A, B) @c
    """
    done = run(text, Costs(copies=2.0), inter_op=1)
    lines = ticks(done)
    assert [line for line in lines if "from host" in line] == [
        "GPU:0 from host: x:0/_send_0 0-2",
        "GPU:0 from host: y:0/_send_1 2-4",
    ]
    assert lines[-1] == "inter-op 0: C 7-8"
    assert done.waiting_by_cause["link"] == 3_000_000  # y for x (2), B for A on the way back (1)


def test_cpu_devices_share_memory_and_threads() -> None:
    done = run("x = Placeholder() @c {dtype=float}\n A = Neg(x) @c\n B = Neg(A) @c", inter_op=2)
    assert not done.estimated.graph.copies
    assert done.trace.makespan == 2_000_000


def test_overheads_are_added() -> None:
    slow = Overheads(op_s=0.001, hand_off_s=0.01, step_s=0.1)
    done = run("x = Placeholder() @c {dtype=float}\n A = Neg(x) @c", Costs(overheads=slow), inter_op=1, steps=2)
    assert done.trace.steps == (13_000_000, 126_000_000)  # 10 + x 1 + A 2; 100 + the same again


def test_first_run_of_a_node_in_a_step_costs_more() -> None:
    cold = Overheads(first_s=0.01)
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c"
    assert run(text, Costs(overheads=cold), inter_op=1, steps=2).trace.steps == (21_000_000, 42_000_000)
    assert run(LOOP, Costs(overheads=cold), inter_op=1, trips={"loop": 3}).trace.makespan == (8 + 12 * 10) * 1_000_000


def test_first_op_of_its_type_in_a_step_costs_more() -> None:
    cold = Overheads(first_s=0.01, code_s=0.1)
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c\n B = Neg(A) @c"
    steps = run(text, Costs(overheads=cold), inter_op=1, steps=2).trace.steps
    assert steps == (232_000_000, 464_000_000)  # x 110, A 110 + 1, B 10 + 1; and again in the next step


def test_the_first_of_dead_nodes_in_a_row_costs_more() -> None:
    text = """
        p = Placeholder() @c {dtype=bool}
        x = Placeholder() @c {dtype=float}
        s = Switch(x, p) @c
        N = Neg(s) @c
        O = Neg(N) @c
        A = Abs(s:1) @c
        m = Merge(O, A) @c {N=2}
    """
    times = [
        run(text, Costs(overheads=Overheads(dead_s=0.01, to_dead_s=more)), inter_op=1).trace.makespan
        for more in (0.0, 0.1)
    ]
    assert times == [21_000_000, 121_000_000]  # 1 for A, and 10 each for N and O


def test_iterations_take_their_own_times_where_these_are_known() -> None:
    class Each(Costs):
        def kernel(self, call: OpCall) -> KernelCost:
            cost = super().kernel(call)
            return cost._replace(runs_s=(0.005, 0.002)) if call.name == "B" else cost

    done = run(LOOP, Each(), inter_op=1, trips={"loop": 3}, steps=2)
    assert done.trace.steps == (14_000_000, 28_000_000)  # 5 + 2 + 2 for B, where the last time known goes on


def test_bookkeeping_after_another_thread_costs_more() -> None:
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c\n B = Neg(x) @c\n C = Exp(A) @c\n D = Exp(B) @c"
    times = {"A": 1.0, "B": 1.5, "C": 1.0, "D": 1.0}
    shared = Costs(times, overheads=Overheads(shared_s=0.0001))
    one, two = (run(text, shared, inter_op=size) for size in (1, 2))
    assert one.trace.makespan == 4_500_000
    assert ticks(two) == [
        "inter-op 0: B 0-1.5", "inter-op 1: A 0-1", "inter-op 1: C 1.1-2.1", "inter-op 0: D 1.6-2.6",
    ]  # fmt: skip


def test_bookkeeping_takes_longer_while_another_thread_is_busy() -> None:
    text = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c\n B = Neg(x) @c\n C = Exp(A) @c"
    halves = Costs({"A": 1.0, "B": 3.0, "C": 1.0}, overheads=Overheads(op_s=0.0001, contention=2.0))
    assert ticks(run(text, halves, inter_op=2)) == [
        "inter-op 0: x 0-0.1", "inter-op 0: B 0.1-3.2", "inter-op 1: A 0.1-1.3", "inter-op 1: C 1.3-2.5",
    ]  # fmt: skip


def test_private_gpu_pools_have_their_threads() -> None:
    text = "x = Placeholder() @g0 {dtype=float}\n A = Neg(x) @g0\n y = Placeholder() @c {dtype=float}\n B = Neg(y) @c"
    done = run(text, Costs(launch=1.0), inter_op=1, gpu_thread_mode="gpu_private")
    assert ticks(done)[:2] == ["inter-op 0: B 0-1", "GPU:0 launch 0: A 0-1"]


IF = """
    p = Placeholder() @c {dtype=bool}
    x = Placeholder() @c {dtype=float}
    s = Switch(x, p) @c
    N = Neg(s) @c
    A = Abs(s:1) @c
    m = Merge(N, A) @c {N=2}
    E = Exp(m) @c
"""


@pytest.mark.parametrize(
    ("mode", "count", "makespan"),
    [("global", 1, 4), ("gpu_private", 1, 2), ("gpu_shared", 1, 4), ("gpu_shared", 2, 2), ("gpu_shared", 4, 2)],
)
def test_one_pool_or_several_feed_the_gpus(mode: str, count: int, makespan: int) -> None:
    text = "\n".join(f"x{i} = Placeholder() @g{i % 2} {{dtype=float}}\nn{i} = Neg(x{i}) @g{i % 2}" for i in range(4))
    done = run(text, Costs(default=0.0, launch=1.0), inter_op=1, cores=8, gpu_thread_mode=mode, gpu_thread_count=count)
    # Ops of a GPU are never expensive, so that one thread launches all those of a GPU, however many there are.
    assert done.trace.makespan == makespan * MS


def test_only_the_taken_branch_runs() -> None:
    assert order(run(IF)) == "A E"
    assert order(run(IF, branches={"p": 0})) == "N E"


LOOP = """
    zero = Const() @c {dtype=float}
    enter = Enter(zero) @c {frame_name=b"loop", is_constant=False}
    merge = Merge(enter, next) @c {N=2}
    limit = Const() @c {dtype=float}
    keep = Enter(limit) @c {frame_name=b"loop", is_constant=True}
    C = Less(merge, keep) @c
    cond = LoopCond(C) @c
    switch = Switch(merge, cond) @c
    exit = Exit(switch) @c
    B = Neg(switch:1) @c
    next = NextIteration(B) @c
    R = Exp(exit) @c
"""


def test_loop_runs_as_often_as_told() -> None:
    done = run(LOOP, trips={"loop": 3})
    assert order(done) == "C B C B C B C R"
    assert done.trace.steps == (8_000_000,)
    assert [span.iteration for span in done.trace.spans if span.duration] == [
        "loop:0", "loop:0", "loop:1", "loop:1", "loop:2", "loop:2", "loop:3", "",
    ]  # fmt: skip


def test_loop_across_devices_copies_each_iteration() -> None:
    text = LOOP.replace("B = Neg(switch:1) @c", "B = Neg(switch:1) @g0")
    done = run(text, trips={"loop": 2})
    nodes = done.estimated.graph.nodes
    copies = [nodes[span.node].name for span in done.trace.spans if span.kind == "copy"]
    assert copies == ["switch:1/_send_0", "B:0/_send_1"] * 2


def test_loop_on_the_branch_not_taken_is_skipped() -> None:
    text = (
        """
        p = Placeholder() @c {dtype=bool}
        x = Placeholder() @c {dtype=float}
        s = Switch(x, p) @c
        other = Neg(s:1) @c
    """
        + LOOP.replace("zero = Const() @c {dtype=float}", "zero = Identity(s) @c")
        + "m = Merge(exit, other) @c {N=2}\n"
    )
    done = run(text + "E = Exp(m) @c", branches={"p": 1})
    assert order(done) == "other E"


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
def test_graph_without_nodes_is_done_at_once(executor: str) -> None:
    done = run("", executor=executor, steps=2)
    assert (done.trace.spans, done.trace.steps, done.trace.makespan) == ((), (0, 0), 0)


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
def test_a_loop_whose_limit_is_outside_of_it_never_ends(executor: str) -> None:
    loop = """
        n = Placeholder() @g0 {dtype=float}
        x = Placeholder() @g0 {dtype=float}
        enter = Enter(x) @g0 {frame_name=b"loop"}
        merge = Merge(enter, next) @g0 {N=2}
        less = Less(merge, n) @g0
        go = LoopCond(less) @g0
        switch = Switch(merge, go) @g0
        next = NextIteration(switch:1) @g0
        exit = Exit(switch) @g0
        read = Neg(exit) @c
    """
    with pytest.raises(SimplaceError, match=r"^a step does not end: merge \(Merge\) has inputs from different frames"):
        run(loop, executor=executor)


def test_a_control_edge_between_gpus_waits_for_the_streams_and_moves_nothing() -> None:
    """See common_runtime/gpu/gpu_util.cc: no copy is enqueued for a tensor without bytes."""
    text = """
        x = Placeholder() @g0 {dtype=float}
        y = Placeholder() @g1 {dtype=float}
        A = Neg(x) @g0
        B = Neg(y, ^A) @g1
    """
    assert ticks(run(text, Costs(copies=5.0))) == ["GPU:0 compute: A 0-1", "GPU:1 compute: B 1-2"]
