"""`simplace export`: write a placement for the viewers that people already have."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.errors import DrawingError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from simplace.api import Placements
    from simplace.exports.formats import Export, Format


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("export", help="write the placed graph for TensorBoard, Netron, Model Explorer, "
                                 "networkx, Perfetto")  # fmt: skip
    words.add_target(parser)
    parser.add_argument("file", metavar="FILE", help="the file to write, or a folder for TensorBoard; its ending sets "
                        "the format: .pb, .pbtxt, .graph.json, .nodes.json, .graphml, .trace.json, .report.json, "
                        ".tfevents")  # fmt: skip
    parser.add_argument("--format", metavar="NAME", help="tensorboard, graph-def, graph-def-text, model-explorer, "
                        "model-explorer-data, graphml, chrome-trace or json (default: by FILE's ending)")  # fmt: skip
    output.add_force(parser)
    parser.add_argument("--program", metavar="NAME", help="this program only (default: the largest, or all where the "
                        "format holds several)")  # fmt: skip
    parser.set_defaults(command=_run_export)


def _run_export(options: argparse.Namespace) -> int:
    from simplace.api import place
    from simplace.exports.formats import choose_format, write_format

    form = choose_format(options.file, options.format)
    now = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    path = _choose_path(options.file, form, now)
    with show_progress() as stage:
        result = words.select_program(place(options.target, words.read_settings(options, stage)), options)
        stage(f"writing {path}")
        data = write_format(_gather_export(result, options, now), form)
    output.write_output_file(path, data, options.force)
    output.print_text(f"wrote {_describe_content(result, options, form)}: {path}", sys.stderr)
    return output.report_error(result.failure) if result.failure else 0


def _choose_path(name: str, form: Format, now: float) -> Path:
    """Return the file to write, after making the folder of a format that needs one."""
    from simplace.exports.event_file import FILE_NAME

    if form.is_folder and not name.endswith(form.endings):
        folder = Path(name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrawingError(f"{name}: cannot make the folder: {error.strerror}") from None
        return folder / FILE_NAME.format(time=int(now))
    output.check_writable(name)
    return Path(name)


def _gather_export(result: Placements, options: argparse.Namespace, now: float) -> Export:
    from simplace.analysis.session_memory import use_memory_fraction
    from simplace.api import schedule
    from simplace.executor.step_options import StepOptions
    from simplace.exports.formats import Export
    from simplace.views.figures.device_colours import device_colours

    program, step = words.one_program(result, options.program), use_memory_fraction(StepOptions(), result.python)
    return Export(result, program, device_colours(result.devices), lambda one: schedule(one.placement, step), now)


def _describe_content(result: Placements, options: argparse.Namespace, form: Format) -> str:
    if not form.of_one:
        return f"{len(result.programs)} programs" if len(result.programs) > 1 else result.programs[0].title
    name = words.one_program(result, options.program).title
    return f"{name}, which does the most work of {len(result.programs)} programs" if len(result.programs) > 1 else name
