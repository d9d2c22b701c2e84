"""Write the page of a result to a file."""

from __future__ import annotations

from pathlib import Path

from simplace.errors import DrawingError
from simplace.progress import Stage, silent
from simplace.report.page import Simulation, page
from simplace.result import Result
from simplace.scheduling import cost_model


def check(file: str | Path, simulation: Simulation | None) -> None:
    """Refuse a name that is not a page's, and hardware that nobody knows, before anything is simulated."""
    if Path(file).suffix.lower() not in (".html", ".htm"):
        raise DrawingError(f"{file}: a page's name ends in .html")
    if simulation is not None:
        cost_model("analytic", simulation.gpu)


def write(result: Result, file: str | Path, simulation: Simulation | None, stage: Stage = silent) -> int:
    """Write the page, in UTF-8; return its length in bytes. Raises `DrawingError` where the file cannot be written."""
    data = page(result, simulation, stage).encode()
    try:
        Path(file).write_bytes(data)
    except OSError as error:
        raise DrawingError(f"{file}: cannot write: {error.strerror}") from None
    return len(data)
