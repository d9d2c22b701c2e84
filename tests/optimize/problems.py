"""Small placement problems, made by hand and at random."""

from __future__ import annotations

from itertools import product
from math import inf

from hypothesis import strategies as st

from simplace.optimize import Output, PlacementProblem
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName


def chain(*times: float, cost: float = 1.0, accelerators: int = 2, slow: float = 10.0) -> PlacementProblem:
    """Return nodes that follow each other, of one byte each, on accelerators of two bytes."""
    return PlacementProblem(
        accelerators=accelerators,
        accelerator_bytes=2.0,
        accelerator_time=times,
        cpu_time=tuple(slow * time for time in times),
        node_bytes=(1.0,) * len(times),
        outputs=tuple(Output(node, (node + 1,), cost) for node in range(len(times) - 1)),
        group_of=tuple(range(len(times))),
    )


def fork() -> PlacementProblem:
    """Return a node that two others read, whose results a fourth reads; all fit on each accelerator."""
    return PlacementProblem(
        accelerators=2,
        accelerator_bytes=8.0,
        accelerator_time=(1.0, 4.0, 5.0, 1.0),
        cpu_time=(2.0, 20.0, 20.0, 2.0),
        node_bytes=(1.0,) * 4,
        outputs=(Output(0, (1, 2), 0.5), Output(1, (3,), 0.25), Output(2, (3,), 0.25)),
        group_of=(0, 1, 2, 3),
    )


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> PlacementProblem:
    """Draw a problem of a few nodes: groups, pins, kernels on one kind of device only, little memory."""
    nodes = draw(st.integers(1, most))
    accelerators = draw(st.integers(0, 2))
    times = st.integers(0, 8).map(float)
    column = st.lists(times, min_size=nodes, max_size=nodes)
    cpu = draw(column)
    accelerator = [inf if draw(st.integers(0, 9)) == 0 else time for time in draw(column)]
    if accelerators:
        cpu = [
            inf if fast < inf and draw(st.integers(0, 19)) == 0 else slow
            for fast, slow in zip(accelerator, cpu, strict=True)
        ]
    outputs = []
    for node in range(nodes - 1):
        readers = draw(st.sets(st.integers(node + 1, nodes - 1), max_size=3))
        if readers:
            outputs.append(Output(node, tuple(sorted(readers)), draw(times)))
    pinned = {0: draw(st.integers(0, accelerators))} if draw(st.integers(0, 5)) == 0 else {}
    return PlacementProblem(
        accelerators=accelerators,
        accelerator_bytes=float(draw(st.integers(0, 2 * nodes))),
        accelerator_time=tuple(accelerator),
        cpu_time=tuple(cpu),
        node_bytes=tuple(draw(st.lists(st.integers(0, 3).map(float), min_size=nodes, max_size=nodes))),
        outputs=tuple(outputs),
        group_of=tuple(draw(st.lists(st.integers(0, nodes), min_size=nodes, max_size=nodes))),
        pinned=pinned,
        cpu_cores=draw(st.integers(1, 2)),
    )


def best_value(problem: PlacementProblem, objective: ObjectiveName) -> float:
    """Return the value of the best of all placements, infinity if none keeps the limits."""
    return min(
        (
            OBJECTIVES[objective].evaluate(problem, device_of)
            for device_of in product(problem.devices, repeat=len(problem))
            if problem.keeps_limits(device_of)
        ),
        default=inf,
    )
