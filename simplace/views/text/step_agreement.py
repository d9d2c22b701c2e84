"""The table of real and simulated steps, and the sentences below it."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.costs.calibrated_cpu import CalibratedCpu
from simplace.measure.measurement import Measured
from simplace.measure.step_comparison import StepAgreement
from simplace.views.text.quantities import format_count, format_duration
from viz import Column, Table, to_text
from viz.names import visible

_DISTURBED = 0.05


def write_agreement(measured: Measured, rows: Sequence[StepAgreement], width: int | None = None) -> str:
    """Return simulated and measured steps as text: what was run, and how disturbed it was."""
    notes = [f"note: {visible(line)}" for line in _list_notes(measured, rows)]
    reached = [visible(describe_cpu(measured.cpu))] if measured.cpu else []
    return "\n".join([to_text(_agreement_table(rows), width), "", *reached, *notes])


def describe_cpu(cpu: CalibratedCpu) -> str:
    """Return what a CPU was measured to reach.

    >>> rates = ((6e7, 10e9),)
    >>> describe_cpu(CalibratedCpu("A", 2, 0.0, {"float32": ((2e9, 78e9),)}, 40e9, rates, rates, 17e9, 1e-6))
    'this CPU: 2 cores, A: 78 GFLOP/s and 10 GB/s a core, 17 GB/s together'
    """
    model = f", {cpu.model}" if cpu.model else ""
    return (
        f"this CPU: {format_count(cpu.cores, 'core')}{model}: {_format_billions(cpu.peak['float32'])} GFLOP/s and "
        f"{_format_billions(cpu.core_bandwidth)} GB/s a core, {_format_billions(cpu.bandwidth)} GB/s together"
    )


def _format_billions(rate: float) -> str:
    billions = rate / 1e9
    return f"{billions:.1f}" if billions < 10 else f"{billions:.0f}"


def _agreement_table(rows: Sequence[StepAgreement]) -> Table:
    """Return simulated and measured steps, a row per thread setting."""
    cells = tuple(
        (
            "caller" if one.inter_op == -1 else str(one.inter_op),
            str(one.intra_op),
            format_duration(one.measured),
            format_duration(one.simulated),
            f"{one.ratio:.3f}",
            f"{one.low:.3f} to {one.high:.3f}",
            f"{one.same_order}/{one.held}",
            f"{one.disturbed:.0%}",
        )
        for one in rows
    )
    heads = (
        "inter-op",
        "intra-op",
        "measured",
        "simulated",
        "simulated / measured",
        "quartiles",
        "same order",
        "disturbed",
    )
    return Table(tuple(Column(head, "right", flexible=False, wrapped=head == "quartiles") for head in heads), cells)


def _list_notes(measured: Measured, rows: Sequence[StepAgreement]) -> list[str]:
    """Return what ran, with which inputs, and what the columns of the table mean."""
    nodes = len(set(measured.settings[0].steps[0].order))
    lines = [
        f"{measured.program.name} ran {format_count(nodes, 'node')} as a session's graph, "
        f"traced, without TensorFlow's rewrites (Grappler, constant folding) and without oneDNN",
        *measured.remarks,
        "medians of traced steps, each simulated with its own node times; "
        + ", ".join(f"{one.steps} of {one.traced} steps" for one in rows[:1])
        + " count, those in which threads waited least for a core",
        "same order: of steps during which the same ops stayed expensive, those whose nodes started in the simulated "
        "order; with several threads it also varies from run to run",
    ]
    if any(one.disturbed > _DISTURBED for one in rows):
        lines.append("this computer was busy: with more than 5% disturbed, a step is longer than its ops explain")
    return lines
