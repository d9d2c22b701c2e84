"""Every format that a placement can be written in, and the one that a file's name selects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simplace.analysis.schedule import Schedule
from simplace.errors import DrawingError, SimplaceError, join_choices
from simplace.exports import event_file, json_report, model_explorer, placed_graph_def
from simplace.exports.chrome_trace import chrome_trace
from simplace.exports.graphml import write_graphml
from simplace.exports.steering import escape_json
from simplace.result import Placed, Result


@dataclass(frozen=True)
class Export:
    """Record of what an export is made from.

    `program` is the one that a format of one graph writes. `colours` are "#rrggbb" by full device name, `schedule`
    simulates a step of a program when a format needs it, `wall_time` is in seconds since 1970.
    """

    result: Result
    program: Placed
    colours: Mapping[str, str]
    schedule: Callable[[Placed], Schedule]
    wall_time: float


@dataclass(frozen=True, slots=True)
class Format:
    """Record of a format: its name, what it is for, the file name endings that select it, and its writer.

    `is_folder` says that it is written into a folder, under a name of its own. `of_one` says that it contains one
    program, not all.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    write: Callable[[Export], bytes]
    is_folder: bool = False
    of_one: bool = True


def _encode_json(content: Any) -> bytes:
    text = escape_json(json.dumps(content, indent=1, ensure_ascii=False))
    return (text + "\n").encode(errors="surrogatepass")


def _write_graph_def(export: Export) -> bytes:
    return placed_graph_def.write_binary(export.program.placement)


def _write_graph_def_text(export: Export) -> bytes:
    return placed_graph_def.write_text(export.program.placement)


def _write_graphml(export: Export) -> bytes:
    return write_graphml(export.program.placement)


def _write_tensorboard(export: Export) -> bytes:
    return event_file.event_file(export.program.placement, export.schedule(export.program), export.wall_time)


def _write_model_explorer(export: Export) -> bytes:
    return _encode_json(model_explorer.collect_graphs(export.result.target, export.result.programs, export.colours))


def _write_node_data(export: Export) -> bytes:
    return _encode_json(model_explorer.node_data(export.result.programs, export.colours))


def _write_chrome_trace(export: Export) -> bytes:
    return _encode_json(chrome_trace(export.schedule(export.program)))


def _write_report(export: Export) -> bytes:
    return _encode_json(json_report.report_result(export.result))


FORMATS: tuple[Format, ...] = (
    Format("tensorboard", "TensorBoard: a folder to give as --logdir, with simulated step times",
           (".tfevents",), _write_tensorboard, is_folder=True),
    Format("graph-def", "GraphDef with the assigned devices: TensorFlow, Netron", (".pb",), _write_graph_def),
    Format("graph-def-text", "the same as text: TensorBoard's upload, Netron", (".pbtxt",), _write_graph_def_text),
    Format("model-explorer", "Model Explorer's graph, coloured by device", (".graph.json",), _write_model_explorer,
           of_one=False),
    Format("model-explorer-data", "Model Explorer's node data: the devices", (".nodes.json",), _write_node_data,
           of_one=False),
    Format("graphml", "GraphML: Gephi, yEd, Cytoscape, networkx", (".graphml",), _write_graphml),
    Format("chrome-trace", "the simulated step: Perfetto, chrome://tracing", (".trace.json",), _write_chrome_trace),
    Format("json", "everything, as `show --json` writes it", (".report.json",), _write_report, of_one=False),
)  # fmt: skip


def choose_format(file: str, name: str | None) -> Format:
    """Return the format called `name`, or else the one that the file's name selects; raise `DrawingError`.

    >>> choose_format("model.pbtxt", None).name, choose_format("logs/", "tensorboard").name
    ('graph-def-text', 'tensorboard')
    """
    if name is not None:
        found = [each for each in FORMATS if each.name == name]
        if not found:
            raise DrawingError(
                f"{name!r} is not a format; the formats are {join_choices(each.name for each in FORMATS)}"
            )
        return found[0]
    for each in FORMATS:
        if file.endswith(each.endings):
            return each
    endings = join_choices(ending for each in FORMATS for ending in each.endings)
    names = join_choices(each.name for each in FORMATS)
    raise DrawingError(f"{file}: no known file extension; end the name in {endings}, or pass --format: {names}")


def write_format(export: Export, form: Format) -> bytes:
    """Return a file's bytes in one format; raise `SimplaceError` for a refused program, where that matters."""
    placement = export.program.placement
    if form.of_one and placement.refusal is not None:
        raise SimplaceError(
            f"{export.program.title}: TensorFlow refuses to place this graph, so there is nothing to export; "
            "`simplace show` says why"
        )
    return form.write(export)
