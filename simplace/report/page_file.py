"""Write the page of a result to a file."""

from __future__ import annotations

from pathlib import Path

from simplace.costs.chosen_model import cost_model
from simplace.errors import DrawingError
from simplace.executor.step_options import StepOptions
from simplace.progress import Stage, show_nothing
from simplace.report.page import write_page
from simplace.result import Result
from simplace.views.file_mark import check_replaceable, write_file


def check_page_name(file: str | Path, simulation: StepOptions | None, overwrite: bool) -> None:
    """Raise a `SimplaceError`, before simulating, for a name that does not end in .html, a foreign file or hardware."""
    if Path(file).suffix.lower() not in (".html", ".htm"):
        raise DrawingError(f"{file}: a page's name ends in .html")
    check_replaceable(file, overwrite)
    if simulation is not None:
        cost_model("modelled", simulation.gpu, cpu=simulation.cpu)


def write_page_file(
    result: Result,
    file: str | Path,
    simulation: StepOptions | None,
    overwrite: bool,
    stage: Stage = show_nothing,
    *,
    has_source: bool = True,
) -> int:
    """Write the page, in UTF-8, with lines of the user's files or without; return its length in bytes.

    Raises `DrawingError` where the file cannot be written, and
    `SimplaceError` for a result without graphs and eager ops.
    """
    if result.eager is None:
        result.largest()
    data = write_page(result, simulation, stage, has_source=has_source).encode()
    write_file(file, data, overwrite)
    return len(data)
