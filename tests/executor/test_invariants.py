"""What holds for every placed graph, whatever its shape: property tests on random ones."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.executor.execution import EXECUTORS
from simplace.executor.step_options import Threads
from simplace.exports.schedule_report import report_schedule
from tests.executor.worlds import Costs, placed

DEVICES = ("@c", "@g0", "@g1")
COMMON = settings(max_examples=30, deadline=None)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[str, Costs]:
    """Draw a graph of binary ops on three devices with control edges, and a cost for each."""
    count = draw(st.integers(1, 14))
    lines = [f"p{d} = Placeholder() {device} {{dtype=float}}" for d, device in enumerate(DEVICES)]
    names = ["p0", "p1", "p2"]
    times, splits = {}, {}
    for i in range(count):
        inputs = [draw(st.sampled_from(names)) for _ in range(2)]
        before = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        controls = "".join(f", ^{name}" for name in before)
        lines.append(f"n{i} = AddV2({inputs[0]}, {inputs[1]}{controls}) {draw(st.sampled_from(DEVICES))}")
        times[f"n{i}"] = draw(st.sampled_from((0.0, 0.001, 0.5, 1.0, 3.0)))
        splits[f"n{i}"] = draw(st.sampled_from((1, 1, 2, 4)))
        names.append(f"n{i}")
    launch, copies = draw(st.sampled_from((0.0, 0.25))), draw(st.sampled_from((0.0, 0.125, 2.0)))
    return "\n".join(lines), Costs(times, launch=launch, copies=copies, shards=splits)


def simulated(world: tuple[str, Costs], executor: str, **options: int) -> Schedule:
    return schedule_placement(placed(world[0]), costs=world[1], executor=executor, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4), intra=st.integers(1, 3))
def test_no_op_runs_before_its_inputs(executor: str, world: tuple[str, Costs], inter: int, intra: int) -> None:
    done = simulated(world, executor, inter_op=inter, intra_op=intra, cores=16)
    graph, spans = done.estimated.graph, done.trace.spans
    host = {s.node: s for s in spans if s.kind in ("op", "launch")}
    kernel = {s.node: s for s in spans if s.kind == "kernel"}
    copied = {graph.receiver[s.node]: s for s in spans if s.kind == "copy"}
    for node, span in host.items():
        for edge in graph.ins[node]:
            before = copied.get(edge.src) or host.get(edge.src)
            assert before is None or before.end <= span.start
            if edge.src in kernel and node in kernel:
                assert kernel[edge.src].end <= kernel[node].start
    for receive, copy in copied.items():
        send = next(s for s, r in graph.receiver.items() if r == receive)
        producer = graph.ins[send][0].src
        made = kernel.get(producer) or host.get(producer)
        assert made is None or made.end <= copy.start


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4), intra=st.integers(1, 3))
def test_tracks_do_one_thing_at_a_time(executor: str, world: tuple[str, Costs], inter: int, intra: int) -> None:
    done = simulated(world, executor, inter_op=inter, intra_op=intra, cores=2)
    for own in done.trace.by_track:
        spans = [done.trace.spans[i] for i in own]
        assert all(a.end <= b.start for a, b in pairwise(spans))
    workers = [track for track in done.trace.tracks if track.kind == "worker"]
    assert len(workers) == inter * (1 if executor == "tensorflow" else len(done.estimated.graph.devices))


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4), intra=st.integers(1, 3), steps=st.integers(1, 2))
def test_work_is_conserved(executor: str, world: tuple[str, Costs], inter: int, intra: int, steps: int) -> None:
    done = simulated(world, executor, inter_op=inter, intra_op=intra, cores=16, steps=steps)
    for node, cost in enumerate(done.estimated.kernels):
        spans = [s for s in done.trace.spans if s.node == node]
        on_gpu = sum(s.duration for s in spans if s.kind == "kernel")
        parts = [s for s in spans if s.kind == "shard"]
        on_host = sum(s.duration for s in (parts if executor == "textbook" and parts else spans) if s.kind != "kernel")
        if done.estimated.graph.nodes[node].role != "op":
            continue
        if executor == "tensorflow":
            assert on_gpu == steps * round(1e9 * cost.device_s)
            assert abs(on_host - steps * round(1e9 * cost.host_s)) <= 4 * steps
        else:
            assert on_host == steps * round(1e9 * (cost.device_s or cost.host_s))


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4), intra=st.integers(1, 3))
def test_makespan_lies_between_chain_and_sum(executor: str, world: tuple[str, Costs], inter: int, intra: int) -> None:
    done = simulated(world, executor, inter_op=inter, intra_op=intra, cores=16)
    assert done.longest_chain is not None
    assert done.longest_chain - 20 <= done.trace.makespan <= round(1e9 * done.estimated.total_s) + 20


@COMMON
@given(world=graphs(), inter=st.integers(1, 4))
def test_cores_cap_what_runs(world: tuple[str, Costs], inter: int) -> None:
    done = simulated(world, "tensorflow", inter_op=inter, intra_op=2, cores=1)
    assert done.trace.makespan >= sum(round(1e9 * cost.host_s) for cost in done.estimated.kernels) - 50


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4))
def test_critical_path_reaches_from_start_to_end(executor: str, world: tuple[str, Costs], inter: int) -> None:
    done = simulated(world, executor, inter_op=inter, intra_op=2, cores=16)
    path = [done.trace.spans[i] for i in done.critical_path]
    if not path:
        assert done.trace.makespan == 0
        return
    assert path[0].start == 0
    assert path[-1].end == done.trace.makespan
    assert all(a.end == b.start for a, b in pairwise(path) if "shard" not in (a.kind, b.kind))


@pytest.mark.parametrize("executor", EXECUTORS)
@COMMON
@given(world=graphs(), inter=st.integers(1, 4))
def test_memory_returns_to_what_is_resident(executor: str, world: tuple[str, Costs], inter: int) -> None:
    done = simulated(world, executor, inter_op=inter)
    for use in done.memory:
        assert use.series[-1][1] == use.resident
        assert all(size >= use.resident for _, size in use.series)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_same_input_gives_same_bytes(executor: str) -> None:
    text = "x = Placeholder() @c {dtype=float}\n" + "\n".join(f"a{i} = Neg(x) {DEVICES[i % 3]}" for i in range(30))
    runs = [schedule_placement(placed(text), costs=Costs(), executor=executor, inter_op=3) for _ in range(2)]
    assert json.dumps(report_schedule(runs[0], "busy")) == json.dumps(report_schedule(runs[1], "busy"))


def test_threads_refuse_what_is_impossible() -> None:
    for bad in ({"inter_op": -2}, {"intra_op": -1}, {"cores": 0}, {"steps": 0}, {"gpu_thread_mode": "many"}):
        with pytest.raises(Exception, match=r"must be|not a TF_GPU_THREAD_MODE"):
            Threads(**bad)  # type: ignore[arg-type]
