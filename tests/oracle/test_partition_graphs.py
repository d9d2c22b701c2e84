"""Which files of a log hold the subgraphs of a session's run on a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.tf  # the module that is tested imports it

MASTER, FIRST, SECOND = 7, 8, 9
GPU = "_job:worker_replica:0_task:{}_device:GPU:{}"


def cut(thread: int) -> str:
    return f"I0000 00:00:1795365308.145345 {thread:7} graph_partition.cc:1300] Added send/recv: controls=0, data=1"


def dumped(thread: int, place: str) -> str:
    path = f"/tmp/dumps/partition_{place}_94837.pbtxt"
    return f"I0000 00:00:1795365308.145345 {thread:7} dump_graph.cc:200] Dumped Graph to {path}"


def recorded(lines: list[str]) -> list[str]:
    """Return the files of the run that a log tells of."""
    from simplace.oracle.child.partition_graphs import PartitionGraphs

    told: list[Any] = []
    recorder = SimpleNamespace(event=lambda kind, **fields: told.append(fields["graphs"]))
    log = SimpleNamespace(lines_since=lambda start: lines)
    PartitionGraphs(recorder, log, True).record_of_master(0, 0, {})  # type: ignore[arg-type]
    return [file.removesuffix("_94837.pbtxt").removeprefix("partition_") for each in told for file in each]


def test_a_function_on_another_gpu_is_no_part_of_the_graph_that_calls_it() -> None:
    lines = [
        cut(MASTER), dumped(MASTER, "_job:worker_replica:0_task:0"), dumped(MASTER, "_job:worker_replica:0_task:1"),
        cut(FIRST), cut(SECOND), dumped(SECOND, GPU.format(1, 0)), dumped(FIRST, GPU.format(0, 0)),
        cut(FIRST), dumped(FIRST, GPU.format(0, 0)), dumped(FIRST, GPU.format(0, 1)),
    ]  # fmt: skip
    assert recorded(lines) == [GPU.format(1, 0), GPU.format(0, 0)]
