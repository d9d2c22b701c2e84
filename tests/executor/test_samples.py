"""The samples about time, under TensorFlow's extraction: what each is there to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace import place
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.placement.placement import Placement

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
SAMPLES = Path(__file__).parents[2] / "samples"
GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"


def programs(name: str) -> dict[str, Placement]:
    result = place(str(SAMPLES / f"{name}.py"), "cpu:1,gpu:2")
    return {one.name: one.placement for one in result.programs}


def busy(done: Schedule, track: str) -> dict[str, int]:
    names = {name: i for i, name in enumerate(track.name for track in done.trace.tracks)}
    spans = [done.trace.spans[i] for i in done.trace.by_track[names[track]]]
    return {done.estimated.graph.nodes[span.node].name: span.start for span in spans}


def test_textbook_picture_of_ops_a_to_e() -> None:
    done = schedule_placement(programs("ops_a_to_e")["five_ops"], executor="textbook", inter_op=2, intra_op=3, gpu="t4")
    nodes = done.estimated.graph.nodes
    spans = [span for span in done.trace.spans if span.kind in ("op", "shard")]
    starts = {nodes[span.node].name: span.start for span in spans if span.kind == "op"}
    ends = {nodes[span.node].name: span.end for span in spans if span.kind == "op"}
    parts = [nodes[span.node].name for span in spans if span.kind == "shard"]
    assert (starts["A"], starts["B"], starts["C"]) == (0, 0, 0)
    assert parts == ["A", "A", "A"]
    assert starts["D"] == starts["E"] == ends["C"]


def test_control_edges_lower_the_peak_of_memory() -> None:
    peaks = {}
    for name, placement in programs("memory_order").items():
        peaks[name] = next(use.peak for use in schedule_placement(placement, inter_op=2).memory if use.device == GPU0)
    assert peaks["one_by_one"] < peaks["all_at_once"] / 4


def test_control_edges_spread_the_copies() -> None:
    waited, last = {}, {}
    for name, placement in programs("copy_order").items():
        done = schedule_placement(placement, inter_op=2, gpu="t4")
        waited[name] = done.waiting_by_cause["link"]
        last[name] = max(busy(done, "GPU:0 from host").values()) / done.trace.makespan
    assert waited["when_needed"] < waited["all_at_once"] / 4
    assert last["all_at_once"] < 0.3 < 0.7 < last["when_needed"]


def test_gpus_behind_one_port_wait_for_each_others_copies() -> None:
    spans = []
    for machine in ("cpu:1,gpu:4", str(SAMPLES / "four_gpus.toml")):
        (placed,) = place(str(SAMPLES / "two_towers.py"), machine).programs
        spans.append(schedule_placement(placed.placement, gpu="t4").trace.makespan)
    assert 1.05 < spans[1] / spans[0] < 1.1
