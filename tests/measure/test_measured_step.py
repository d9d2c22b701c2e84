"""A measured step simulated with its own times, on made-up traces."""

from __future__ import annotations

from simplace.costs.cost_model import Overheads
from simplace.measure.measurement import MeasuredStep, Measurement, NodeRun
from simplace.measure.observed_order import simulate_measured_step
from tests.executor.worlds import parts

GRAPH = """
    x = Placeholder() @c {dtype=float, shape=shape}
    a = Neg(x) @c {T=float}
    b = Neg(a) @c {T=float}
"""


def node(name: str, start: int, end: int, label: int, names: int) -> NodeRun:
    return NodeRun(name, start, end, start, end, label=label, names=names)


def test_a_label_takes_its_time_before_the_next_node_starts() -> None:
    step = MeasuredStep((node("x", 0, 100, 20, 0), node("a", 200, 900, 40, 1), node("b", 1000, 1500, 80, 2)))
    measured = Measurement("2.21.0", 1, 1, (step,), ())
    plain, labelled = (
        simulate_measured_step(parts(GRAPH), measured, step, Overheads(label_s=byte, name_s=name))
        for byte, name in ((0.0, 0.0), (1e-9, 50e-9))
    )
    assert [(s.start, s.end) for s in plain.trace.spans][-3:] == [(0, 100), (100, 800), (800, 1300)]
    assert [(s.start, s.end) for s in labelled.trace.spans][-3:] == [(0, 120), (120, 910), (910, 1590)]
