"""Put a result on one HTML page that holds all it needs and asks no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from simplace.analysis.schedule import Schedule
from simplace.devices.device_set import Device
from simplace.errors import SimplaceError
from simplace.executor.options import StepOptions
from simplace.graph.collector import paused_collector
from simplace.progress import Stage, silent
from simplace.report import markup
from simplace.report.colours import colours, device_signs, rule_signs
from simplace.report.graph_data import graph_data
from simplace.report.schedule_data import schedule_data
from simplace.result import Placed, Result
from simplace.views.text import schedule_tables, summary
from simplace.views.text.quantities import plural

_STYLES = ("page.css",)
_SCRIPTS = (
    "vendor/dagre.min.js", "text.js", "program.js", "tree.js", "layout.js", "colours.js", "marks.js", "graph.js",
    "details.js", "search.js", "copies.js", "schedule.js", "main.js",
)  # fmt: skip
_DEFAULT = StepOptions()
_NAME = 80  # letters of a program's name in a menu


def page(result: Result, simulation: StepOptions | None = _DEFAULT, stage: Stage = silent) -> str:
    """Write the page of a result; `simulation` None leaves schedules and costs out.

    A program that cannot be run in simulation is shown without a schedule, with the reason. The page's own
    Content-Security-Policy allows its own scripts alone and no connection.
    """
    devices = _devices(result)
    programs = []
    for placed in result.programs:
        stage(f"writing down {placed.name}")
        with paused_collector():
            data = graph_data(placed, [device.name for device in devices])
            stage(f"simulating a step of {placed.name}")
            data["schedule"] = _schedule(placed, simulation)
        programs.append(data)
    stage("writing the page")
    sheets = [*map(_asset, _STYLES), colours(devices)]
    scripts = [_asset(name) for name in _SCRIPTS]
    return Template(_asset("page.html")).substitute(
        policy=_policy(sheets, scripts),
        title=markup.text(result.target, _NAME),
        styles="\n".join(f"<style>{sheet}</style>" for sheet in sheets),
        target=markup.text(result.target, _NAME),
        machine=markup.text(f"on {result.devices}" + (f" ({result.devices_note})" if result.devices_note else "")),
        verdict=_verdict(result),
        verdict_line=markup.text(summary.agreement_line(result), 160),
        programs=_menu(result),
        summaries=_summaries(result, devices),
        notes=markup.notes(result),
        agreement=markup.agreement(result),
        data=_embedded("page-data", _head(result, devices)),
        program_data="\n".join(_embedded(f"program-{i}", data) for i, data in enumerate(programs)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _schedule(placed: Placed, simulation: StepOptions | None) -> dict[str, Any]:
    if simulation is None:
        return {"missing": "The schedule was left out of this page."}
    if not placed.placement.order and placed.placement.refusal is None:
        return {"missing": "There is no node to run."}
    try:
        simulated = Schedule.of(placed.placement, simulation)
    except SimplaceError as error:
        return {"missing": str(error)}
    return {**schedule_data(simulated), **_words(simulated)}


def _words(simulated: Schedule) -> dict[str, Any]:
    threads = simulated.threads
    return {
        "headline": schedule_tables.headline(simulated),
        "settings": f"inter-op {threads.inter_op_size}, intra-op {threads.intra_op_size}, "
        f"{plural(threads.cores, 'core')}",
        "notes": [*schedule_tables.warnings(simulated), *schedule_tables.assumptions(simulated)],
    }


def _devices(result: Result) -> list[Device]:
    """List the devices of all programs: one may have made devices of its own, such as logical GPUs."""
    known = {device.name: device for device in result.devices}
    for placed in result.programs:
        known |= {device.name: device for device in placed.placement.devices}
    return list(known.values())


def _head(result: Result, devices: list[Device]) -> dict[str, Any]:
    signs = zip(device_signs(devices), devices, strict=True)
    return {
        "devices": [{**asdict(sign), "name": device.name, "isHost": device.type == "CPU"} for sign, device in signs],
        "programs": [placed.name for placed in result.programs],
        "rules": {rule: asdict(sign) for rule, sign in rule_signs().items()},
    }


def _verdict(result: Result) -> str:
    if all(placed.agreement is None for placed in result.programs):
        return "unchecked"
    return "agrees" if result.agrees else "differs"


def _menu(result: Result) -> str:
    sizes = [len(placed.placement.graph) for placed in result.programs]
    chosen = sizes.index(max(sizes)) if sizes else 0
    return "".join(
        f"<option value='{i}'{' selected' if i == chosen else ''}>"
        f"{markup.text(placed.name, _NAME)} · {plural(len(placed.placement.decisions), 'node')}</option>"
        for i, placed in enumerate(result.programs)
    )


def _summaries(result: Result, devices: list[Device]) -> str:
    signs = device_signs(devices)
    return "".join(
        f"<section class='summary' data-program='{i}'><h2>{markup.text(placed.name, _NAME)}</h2>"
        f"{markup.program_summary(placed, signs)}</section>"
        for i, placed in enumerate(result.programs)
    )


def _embedded(name: str, data: Mapping[str, Any]) -> str:
    """Embed data so that nothing in it can end the element: JSON in ASCII, without "<"."""
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{content}</script>'


def _policy(sheets: list[str], scripts: list[str]) -> str:
    def allowed(texts: list[str]) -> str:
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts)

    own = f"style-src {allowed(sheets)}; script-src {allowed(scripts)}"
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; {own}"


@cache
def _asset(name: str) -> str:
    return files("simplace.report").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")
