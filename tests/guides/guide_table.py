"""The table of notebooks as a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COUNT = re.compile(r"(\d+)/(\d+) (nodes|eager ops)")
_ENDED = re.compile(r", until [^;]*")
_MOST_ENDED = 9  # cells, of a notebook in which nothing else is called
_HEAD = """\
# Guides and tutorials of TensorFlow

The notebooks of TensorFlow's documentation, each turned into a script (without commands for the shell, with small
random data in place of downloads, two epochs at most) and run twice: as plain `python` without any GPU, and under
`simplace show --calls all` on emulated GPUs. *Alike*: both print the same (times, devices, lines of TensorFlow's
placement log and last digits aside, and what differs from one plain run to the next). How many nodes and eager ops
TensorFlow places as simplace does is counted. A notebook that asks which GPUs there are, and says so or goes another
way, has lines that differ; where it makes a `MirroredStrategy`, the plain run mirrors onto as many CPUs. A cell that
ends with an exception (for a package that is not installed, or a download without a stand-in) is counted; the next
one runs. An empty cell was not run. `intro_to_graphs` prints a graph whose functions are in the order of a hash of
their names, and the numbers in these names differ with GPUs. On a GPU a cell of `sparse_tensor` ends with TensorFlow's
error: Keras has XLA compile a step with ops that XLA has no kernel for. Written by `python -m tests.guides FOLDER
--page docs/guides.md`.
"""


def write_page(results: Mapping[str, Mapping[str, Any]], page: Path) -> None:
    """Write the page of results by notebook and number of GPUs; its other sections stay."""
    _, mark, others = (page.read_text(encoding="utf-8") if page.exists() else "").partition("\n## ")
    machines = sorted({gpus for runs in results.values() for gpus in runs}, key=int)
    versions = sorted({run["tensorflow"] for runs in results.values() for run in runs.values()})
    lines = [f"{_HEAD}Run by TensorFlow {', '.join(versions)}.\n"]
    lines += [_row(["notebook", *(f"gpu:{gpus}" for gpus in machines)]), _row(["---"] * (len(machines) + 1))]
    shown = {name: runs for name, runs in sorted(results.items()) if not all(map(_is_barely_run, runs.values()))}
    lines += [_row([name, *(_tell_run(runs.get(gpus)) for gpus in machines)]) for name, runs in shown.items()]
    if left_out := ", ".join(sorted(results.keys() - shown)):
        lines += [f"\nLeft out, since most of their cells need a download or a package that is not there: {left_out}."]
    page.write_text("\n".join(lines) + f"\n{mark}{others}", encoding="utf-8")


def _is_barely_run(run: Mapping[str, Any]) -> bool:
    return bool(run["ended_cells"] > _MOST_ENDED and not run["programs"])


def _tell_run(run: Mapping[str, Any] | None) -> str:
    if run is None:
        return ""
    if run["failure"]:
        return "fails: " + run["failure"].replace("|", "/")[:120]
    if not run["agrees"]:
        return "disagrees"
    said = _count(len(run["differing"]), "line differs", "lines differ") if run["differing"] else "alike"
    counts = ", ".join(f"{same} of {total} {what}" for same, total, what in _COUNT.findall(run["verdict"]))
    early = _ENDED.search(run["verdict"])
    ended = run["ended_cells"]
    cells = _count(ended, "cell ends with an exception", "cells end with an exception") if ended else ""
    return "; ".join(filter(None, (said, counts + (early[0] if early else ""), cells)))


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
