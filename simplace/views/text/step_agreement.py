"""The table of real and simulated steps, and the sentences below it."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.measure.measurement import Measured
from simplace.measure.step_comparison import StepAgreement
from simplace.views.text.quantities import format_count, format_duration
from viz import Column, Table, to_text
from viz.names import visible

_DISTURBED = 0.05


def write_agreement(measured: Measured, rows: Sequence[StepAgreement], width: int | None = None) -> str:
    """Return simulated and measured steps as text: what was run, and how disturbed it was."""
    notes = [f"note: {visible(line)}" for line in _list_notes(measured, rows)]
    return "\n".join([to_text(_agreement_table(rows), width), "", *notes])


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
