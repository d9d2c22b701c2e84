"""Write a result as one HTML page that contains all it needs and makes no network request."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from simplace.analysis.path_groups import Layers, group_by_layer, locate_layers
from simplace.analysis.schedule import Schedule
from simplace.analysis.session_memory import use_memory_fraction
from simplace.devices.device_set import Device
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.graph.collector import paused_collector
from simplace.progress import Stage, count_stage, show_nothing
from simplace.report import markup
from simplace.report.colours import device_signs, rule_signs, write_style_sheet
from simplace.report.eager_drawing import draw_eager_ops
from simplace.report.embedding import embed_columns, embed_json
from simplace.report.graph_data import graph_data
from simplace.report.packed_sentences import FIRST
from simplace.report.schedule_data import schedule_data
from simplace.report.source_excerpts import collect_excerpts
from simplace.result import Placed, Result
from simplace.views.text import schedule_tables, summary, verdict
from simplace.views.text.quantities import format_count
from simplace.views.text.sharing_phrases import describe_shared_hardware
from simplace.views.text.traffic_phrases import describe_traffic, join_devices

_STYLES = ("page.css",)
_SCRIPTS = (
    "vendor/dagre.min.js", "text.js", "steps.js", "program.js", "groups.js", "chains.js", "tree.js", "places.js",
    "layout.js", "colours.js", "marks.js", "shapes.js", "routes.js", "minimap.js", "graph.js", "hands.js", "tables.js",
    "details.js", "search.js", "copies.js", "spans.js", "schedule.js", "address.js", "print.js", "main.js",
)  # fmt: skip
_DEFAULT = StepOptions()
_NAME = 80  # letters of a program's name in a menu


@paused_collector()
def write_page(
    result: Result, simulation: StepOptions | None = _DEFAULT, stage: Stage = show_nothing, *, has_source: bool = True
) -> str:
    """Return the page of a result; `simulation` None leaves schedules and costs out, `has_source` False the source.

    A program that cannot be run in simulation is shown without a schedule, with the reason. The page's own
    Content-Security-Policy allows its own scripts alone and no connection.
    """
    devices = _list_devices(result)
    if simulation is not None:
        simulation = use_memory_fraction(simulation, result.python)
    programs = []
    for i, placed in enumerate(result.programs, 1):
        stage(count_stage(f"writing down {placed.title}", i, len(result.programs)))
        data = graph_data(placed, [device.name for device in devices], result.used_devices)
        stage(count_stage(f"simulating a step of {placed.title}", i, len(result.programs)))
        data["schedule"] = _simulate_schedule(placed, simulation)
        programs.append(data)
    stage("writing the page")
    sheets = [*map(_read_asset, _STYLES), write_style_sheet(devices)]
    scripts = [_read_asset(name) for name in _SCRIPTS]
    return Template(_read_asset("page.html")).substitute(
        kind="" if result.programs else "without-graph",
        drawing="" if result.programs else draw_eager_ops(result),
        policy=_write_policy(sheets, scripts),
        title=markup.escape_text(result.target, _NAME),
        styles="\n".join(f"<style>{sheet}</style>" for sheet in sheets),
        target=markup.escape_text(result.target, _NAME),
        machine=markup.escape_text(
            f"on {join_devices(result.devices, [device.name for device in result.devices])}"
            + (f" ({result.devices_note})" if result.devices_note else "")
        ),
        verdict=_name_verdict(result),
        verdict_line=markup.escape_text(summary.agreement_line(result), 160),
        programs=_write_menu(result),
        answers=markup.write_answers(result, [data["schedule"].get("verdict", "") for data in programs]),
        summaries=_write_summaries(result, devices, programs),
        eager=markup.write_eager(result),
        notes=markup.write_notes(result),
        agreement=markup.write_agreement(result),
        data=embed_json("page-data", _collect_head(result, devices, has_source)),
        program_data="\n".join(embed_columns(f"program-{i}", data) for i, data in enumerate(programs)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _simulate_schedule(placed: Placed, simulation: StepOptions | None) -> dict[str, Any]:
    if simulation is None:
        return {"missing": "The schedule was left out of this page."}
    if not placed.placement.order and placed.placement.refusal is None:
        return {"missing": "There is no node to run."}
    try:
        simulated = Schedule.of(placed.placement, simulation, placed.rewritten)
    except SimplaceError as error:
        return {"missing": str(error)}
    return {**schedule_data(simulated), **_describe_schedule(simulated)}


def _describe_schedule(simulated: Schedule) -> dict[str, Any]:
    threads, busy = simulated.threads, verdict.device_time_table(simulated)
    return {
        "headline": schedule_tables.write_headline(simulated),
        "verdict": verdict.write_verdict(simulated),
        "sent": describe_traffic(simulated.estimated.graph.traffic),
        "settings": f"inter-op {threads.inter_op_size}, intra-op {threads.intra_op_size}, "
        f"{format_count(threads.cores, 'core')}",
        "busy": {"heads": [column.title for column in busy.columns], "rows": busy.rows},
        "layers": _list_layers(simulated),
        "notes": [
            *schedule_tables.list_warnings(simulated),
            *describe_shared_hardware(simulated),
            *schedule_tables.list_assumptions(simulated),
        ],
    }


def _list_layers(simulated: Schedule) -> dict[str, list[Any]]:
    """Return columns of the layers of the critical path, the longest first; times are in nanoseconds."""
    layers = Layers(simulated)
    ends = locate_layers(simulated, layers)
    found = [one for one in group_by_layer(simulated, layers) if one.name in ends]
    return {
        "name": [one.name for one in found],
        "time": [one.time for one in found],
        "from": [ends[one.name][0] for one in found],
        "to": [ends[one.name][1] for one in found],
    }


def _list_devices(result: Result) -> list[Device]:
    """Return the devices of all programs: one may have configured its own, such as logical GPUs."""
    known = {device.name: device for device in result.devices}
    for placed in result.programs:
        known |= {device.name: device for device in placed.placement.devices}
    return list(known.values())


def _collect_head(result: Result, devices: list[Device], has_source: bool) -> dict[str, Any]:
    signs = zip(device_signs(devices), devices, strict=True)
    return {
        "devices": [{**asdict(sign), "name": device.name, "isHost": device.type == "CPU"} for sign, device in signs],
        "programs": [placed.title for placed in result.programs],
        "sources": collect_excerpts(_list_lines(result)) if has_source else {},
        "rules": {rule: asdict(sign) for rule, sign in rule_signs().items()},
    }


def _list_lines(result: Result) -> set[str]:
    """Return the lines of the user, "file:line", that nodes name."""
    notes = (
        placed.placement.notes(node) for placed in result.programs for node in range(FIRST, len(placed.placement.graph))
    )
    return {line for note in notes for line in (note.at, note.device_at) if line}


def _name_verdict(result: Result) -> str:
    agreements = [result.eager_agreement, *(placed.agreement for placed in result.programs)]
    if all(agreement is None for agreement in agreements):
        return "unchecked"
    return "agrees" if result.agrees else "differs"


def _write_menu(result: Result) -> str:
    chosen = result.programs.index(result.largest()) if result.programs else 0
    return "".join(
        f"<option value='{i}'{' selected' if i == chosen else ''}>"
        f"{markup.escape_text(placed.title, _NAME)} · {_describe_size(placed)}</option>"
        for i, placed in enumerate(result.programs)
    )


def _describe_size(placed: Placed) -> str:
    return "refused" if placed.placement.refusal else format_count(len(placed.placement.decisions), "node")


def _write_summaries(result: Result, devices: list[Device], programs: list[dict[str, Any]]) -> str:
    signs = device_signs(devices)
    return "".join(
        f"<section class='summary' data-program='{i}'><h2>{markup.escape_text(placed.title, _NAME)}</h2>"
        f"{markup.program_summary(placed, signs, data['findings'])}</section>"
        for i, (placed, data) in enumerate(zip(result.programs, programs, strict=True))
    )


def _write_policy(sheets: list[str], scripts: list[str]) -> str:
    def allowed(texts: list[str]) -> str:
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts)

    own = f"style-src {allowed(sheets)}; script-src {allowed(scripts)}"
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; {own}"


@cache
def _read_asset(name: str) -> str:
    return files("simplace.report").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")
