"""The table of notebooks as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HEAD = """\
# Guides and tutorials of TensorFlow

The notebooks of TensorFlow's documentation, each turned into a script (without commands for the shell, with small
random data in place of downloads, two epochs at most) and run twice: as plain `python` without any GPU, and under
`simplace show --calls all` on emulated GPUs. *Alike*: both print the same (times, devices and last digits aside, and
what differs from one plain run to the next), and TensorFlow places what simplace replays as simplace does. Most lines
that differ are what a notebook itself says of GPUs, or times. A cell that ends with an exception (for a package that is
not installed, or a download without a stand-in) is counted; the next one runs. Written by
`python -m tests.guides FOLDER --page docs/guides.md`.
"""


def write_page(results: Mapping[str, Mapping[str, Any]], page: Path) -> None:
    """Write the page of results by notebook and number of GPUs."""
    machines = sorted({gpus for runs in results.values() for gpus in runs}, key=int)
    lines = [_HEAD, _row(["notebook", *(f"gpu:{gpus}" for gpus in machines)]), _row(["---"] * (len(machines) + 1))]
    lines += [_row([name, *(_tell_run(runs.get(gpus)) for gpus in machines)]) for name, runs in sorted(results.items())]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tell_run(run: Mapping[str, Any] | None) -> str:
    if run is None:
        return ""
    if run["failure"]:
        return "fails: " + run["failure"].replace("|", "/")[:120]
    if not run["agrees"]:
        return "disagrees"
    programs = f"{run['programs']} programs" if run["programs"] != 1 else "1 program"
    said = f"{len(run['differing'])} lines differ" if run["differing"] else "alike"
    cells = f", {run['ended_cells']} cells end with an exception" if run["ended_cells"] else ""
    return f"{said}, {programs}{cells}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
