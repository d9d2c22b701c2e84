"""Show a result, a comparison or a simulated run in a notebook, as one self-contained piece of HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape

from simplace.analysis.schedule import Schedule
from simplace.analysis.step_times import StepTimes
from simplace.changes.placement_changes import Changes
from simplace.errors import DrawingError
from simplace.explain.placement_findings import find_in_placement
from simplace.result import Placed, Result
from simplace.views.figures.change_figure import change_figure
from simplace.views.figures.drawing import draw_picture
from simplace.views.figures.overview_figure import overview_figure
from simplace.views.figures.timeline import draw_timeline
from simplace.views.text import schedule_tables, summary, tables
from simplace.views.text.change_summary import change_summary
from simplace.views.text.finding_list import describe_findings
from simplace.views.text.quantities import format_count
from simplace.views.text.traffic_phrases import collective_table, describe_traffic
from simplace.views.text.verdict import device_time_table, write_verdict
from viz import Figure, embedded_svg, to_html
from viz.gantt import Gantt
from viz.names import visible

_DRAWN = 3  # programs with a figure, the largest; the others fold away without one
_COPIES, _FINDINGS = 5, 6
_BOX = "font-family:sans-serif;font-size:13px;line-height:1.4;max-width:1200px"
_FAINT = "color:#666"


def write_html(result: Result) -> str:
    """Return a result as HTML: devices, copies, findings and a figure per program, then the agreement with TensorFlow.

    Whatever comes from the program is escaped. The largest programs are open and have a figure.
    """
    largest = sorted(result.programs, key=lambda placed: -placed.ops)[:_DRAWN]
    head = f"{result.target} on {result.devices}" + (f" ({result.devices_note})" if result.devices_note else "")
    parts = [f"<p><b>{escape(visible(head))}</b></p>"]
    busy = result.used_devices
    parts += [_write_program(placed, any(placed is one for one in largest), busy) for placed in result.programs]
    parts += [f"<p style='{_FAINT}'>{escape(visible(remark))}</p>" for remark in result.remarks]
    parts.append(f"<p>{escape(summary.agreement_line(result))}</p>")
    return _wrap_in_box(parts)


def changes_html(changes: Changes, times: Sequence[StepTimes] = ()) -> str:
    """Return a comparison as HTML: its summary, then a figure of the program in which most nodes moved."""
    parts = [f"<pre style='line-height:1.2;overflow-x:auto'>{escape(change_summary(changes, times))}</pre>"]
    most = max(changes.programs, key=lambda one: (len(one.moves), one.compared), default=None)
    parts += [_draw_or_explain(change_figure(most))] if most is not None and most.differs else []
    return _wrap_in_box(parts)


def schedule_html(schedule: Schedule) -> str:
    """Return a simulated run as HTML: its timeline, then utilisation, critical path, waits, memory."""
    parts = [f"<p>{escape(line)}</p>" for line in schedule_tables.write_headline(schedule).splitlines()]
    parts.append(f"<p><b>{escape(visible(write_verdict(schedule)))}</b></p>")
    parts.append(_draw_or_explain(draw_timeline(schedule)))
    found = (
        schedule_tables.track_table(schedule),
        device_time_table(schedule),
        schedule_tables.critical_table(schedule),
        schedule_tables.waiting_table(schedule),
        schedule_tables.memory_table(schedule),
    )
    parts += [to_html(table) for table in found if table.rows]
    lines = [*schedule_tables.list_warnings(schedule), *schedule_tables.list_assumptions(schedule)]
    parts += [f"<p style='{_FAINT}'>{escape(visible(line))}</p>" for line in lines]
    return _wrap_in_box(parts)


def _wrap_in_box(parts: Sequence[str]) -> str:
    return f"<div style='{_BOX}'>{''.join(parts)}</div>"


def _write_program(placed: Placed, is_large: bool, busy: Collection[str]) -> str:
    copies = tables.copy_table(placed, _COPIES)
    sent = describe_traffic(placed.traffic)
    parts = [to_html(tables.device_table(placed)), *([f"<p>{escape(sent)}</p>"] if sent else [])]
    if placed.collectives:
        parts.append(to_html(collective_table(placed, _COPIES)))
    if copies.rows:
        more = len(placed.crossing) - len(copies.rows)
        parts.append(to_html(replace(copies, footer=f"and {more:,} more in result.copies" if more else "")))
    refusal = placed.placement.refusal
    if refusal is not None:
        said = f": {refusal.message.strip().splitlines()[0]}" if refusal.message.strip() else ""
        parts.append(f"<p><b>{escape(visible(f'TensorFlow refuses this graph ({refusal.code}){said}'))}</b></p>")
    parts.append(_write_findings(placed, busy))
    parts += [_draw_or_explain(overview_figure(placed))] if is_large else []
    opened = " open=''" if is_large else ""
    return f"<details{opened}><summary>{escape(summary.write_title(placed))}</summary>{''.join(parts)}</details>"


def _write_findings(placed: Placed, busy: Collection[str]) -> str:
    found = describe_findings(find_in_placement(placed.placement, placed.communication, busy))
    if not found:
        return ""
    lines = found[:_FINDINGS]
    more = len(found) - _FINDINGS
    lines += [f"and {format_count(more, 'more finding')}"] if more > 0 else []
    return f"<ul>{''.join(f'<li>{escape(visible(line))}</li>' for line in lines)}</ul>"


def _draw_or_explain(what: Figure | Gantt) -> str:
    """Return the drawing, or without Graphviz a message in its place, for a notebook shows the rest all the same."""
    try:
        return embedded_svg(draw_picture(what, "notebook.svg"))
    except DrawingError as error:
        return f"<p style='{_FAINT}'>no figure: {escape(visible(str(error)))}</p>"
