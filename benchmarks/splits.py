"""Solve the placement problems of github.com/msr-fiddle/dnn-partitioning and compare with the best known results."""

from __future__ import annotations

import json
from pathlib import Path

from simplace.optimize.problem import Output, PlacementProblem


def read_problem(path: Path) -> tuple[PlacementProblem, list[int]]:
    """Read a problem of the repository; the ids of its nodes come along, in the order of the problem's nodes."""
    written = json.loads(path.read_text(encoding="utf-8"))
    nodes = written["nodes"]
    number = {node["id"]: at for at, node in enumerate(nodes)}
    readers: dict[int, dict[int, None]] = {}
    cost: dict[int, float] = {}
    for edge in written["edges"]:
        readers.setdefault(number[edge["sourceId"]], {})[number[edge["destId"]]] = None
        cost[number[edge["sourceId"]]] = edge["cost"]
    colours: dict[object, int] = {}
    inf = float("inf")
    return PlacementProblem(
        accelerators=written["maxFPGAs"],
        accelerator_bytes=written["maxSizePerFPGA"],
        accelerator_time=tuple(node["fpgaLatency"] if node["supportedOnFpga"] else inf for node in nodes),
        cpu_time=tuple(float(node["cpuLatency"]) for node in nodes),
        node_bytes=tuple(float(node["size"]) for node in nodes),
        outputs=tuple(Output(node, tuple(readers[node]), cost[node]) for node in sorted(readers)),
        group_of=tuple(
            colours.setdefault(("none", at) if node.get("colorClass") is None else node["colorClass"], len(colours))
            for at, node in enumerate(nodes)
        ),
    ), [node["id"] for node in nodes]
