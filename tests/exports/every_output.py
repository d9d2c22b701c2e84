"""Every output that simplace makes of a result, by the name of a file that it would be written to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.api import Diff
from simplace.checks.verdicts import of_agreement, of_failure
from simplace.doctor.examinations import diagnose_result
from simplace.executor.execution import EXECUTORS
from simplace.explain.explanation import Explainer
from simplace.exports import change_report, chrome_trace, json_report
from simplace.exports.finding_verdicts import list_verdicts
from simplace.exports.formats import FORMATS, Export, write_format
from simplace.exports.junit import write_junit
from simplace.exports.sarif import write_sarif
from simplace.exports.schedule_report import report_schedule
from simplace.report.page import write_page
from simplace.result import Placed, Result
from simplace.views import notebook
from simplace.views.figures import change_figure
from simplace.views.figures.device_colours import device_colours
from simplace.views.figures.drawing import draw_picture
from simplace.views.figures.placed_figures import CHARTS, FIGURES
from simplace.views.text import schedule_tables
from simplace.views.text.change_summary import change_summary
from simplace.views.text.doctor_report import doctor_report
from simplace.views.text.summary import agreement_line, copies_line, write_summary
from simplace.views.text.tables import copy_table, node_table
from simplace.views.text.verdict import write_verdict
from viz import to_text

KINDS = ("svg",)  # of pictures
SHAPES = ("dot", "png", "pdf")  # the same drawings once more, for figures that are `shaped`
_BOXES = 40  # in a figure, as on a screen
_ROOT = Path("/repo")


def outputs(result: Result, changes: Diff, shaped: Sequence[str] = ()) -> dict[str, bytes]:
    """Make all of them; what shows one program shows the largest, or nothing where TensorFlow refuses to place it."""
    placed = largest(result)
    executors = EXECUTORS if placed.placement.refusal is None else ()
    simulated = {executor: schedule_placement(placed.placement, executor=executor) for executor in executors}
    parts: list[Iterable[tuple[str, str | bytes]]] = [_texts(result), _documents(result)]
    parts += [_figures(placed, FIGURES), _changes(changes), _exports(result, placed, simulated)]
    parts += [_simulated(one) for one in simulated.values()]
    parts += [_figures(placed, {name: FIGURES[name] for name in shaped}, SHAPES)]
    made = [pair for part in parts for pair in part]
    assert len(dict(made)) == len(made), "each output has a name of its own"
    return {name: data if isinstance(data, bytes) else data.encode(errors="surrogatepass") for name, data in made}


def largest(result: Result) -> Placed:
    """Return the program that is drawn."""
    return max(result.programs, key=lambda placed: len(placed.placement.decisions))


def _texts(result: Result) -> Iterator[tuple[str, str]]:
    yield "show.txt", f"{write_summary(result)}\n\n{agreement_line(result)}\n{copies_line(result)}"
    yield "nodes.txt", "\n".join(to_text(node_table(placed)) for placed in result)
    yield "copies.txt", "\n".join(to_text(copy_table(placed)) for placed in result)
    yield "explain.txt", "\n\n".join(_explained(placed) for placed in result)
    yield "doctor.txt", doctor_report(_found(result), result.target)


def _explained(placed: Placed) -> str:
    explainer = Explainer(placed.placement)
    return "\n\n".join(str(explainer.explain(node)) for node in range(2, len(placed.placement.graph)))


def _found(result: Result) -> Any:
    return diagnose_result(result, is_saved=False, environment={})


def _documents(result: Result) -> Iterator[tuple[str, str | bytes]]:
    judged = (*of_failure(result), *of_agreement(result), *list_verdicts(_found(result)))
    problems = [problem for verdict in judged for problem in verdict.problems]
    yield "show.json", json.dumps(json_report.report_result(result))
    yield "report.html", write_page(result)
    yield "notebook.html", notebook.write_html(result)
    yield "check.junit.xml", write_junit(result.target, judged)
    yield "check.sarif", json.dumps(write_sarif(result.target, problems, _ROOT))


def _exports(result: Result, placed: Placed, simulated: Mapping[str, Schedule]) -> Iterator[tuple[str, bytes]]:
    export = Export(result, placed, device_colours(result.devices), lambda _: simulated["tensorflow"], wall_time=1.5e9)
    for form in FORMATS:
        if simulated or not form.of_one:
            yield f"export{form.endings[0]}", write_format(export, form)


def _figures(what: Any, figures: Mapping[str, Any], kinds: Sequence[str] = KINDS) -> Iterator[tuple[str, bytes]]:
    for name, figure in figures.items():
        described = figure(what, _BOXES)
        for kind in kinds:
            yield f"{name}.{kind}", draw_picture(described, f"{name}.{kind}")


def _simulated(simulated: Schedule) -> Iterator[tuple[str, str | bytes]]:
    name = simulated.executor
    yield f"{name}.schedule.txt", schedule_tables.write_summary(simulated)
    yield f"{name}.schedule.json", json.dumps(report_schedule(simulated, write_verdict(simulated)))
    yield f"{name}.schedule.html", notebook.schedule_html(simulated)
    yield f"{name}.trace.json", json.dumps(chrome_trace.chrome_trace(simulated))
    for chart, make in CHARTS.items():
        for kind in KINDS if name == "tensorflow" else ("dot",):  # the charts of the other differ in their times alone
            yield f"{name}.{chart}.{kind}", draw_picture(make(simulated), f"{chart}.{kind}")


def _changes(changes: Diff) -> Iterator[tuple[str, str | bytes]]:
    times = changes.step_times()
    yield "diff.txt", change_summary(changes, times)
    yield "diff.json", json.dumps(change_report.report_changes(changes, times))
    yield "diff.html", notebook.changes_html(changes, times)
    moved = max(changes.programs, key=lambda change: (len(change.moves), change.compared))
    yield from _figures(moved, change_figure.FIGURES)
