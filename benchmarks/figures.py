"""Draw all samples, and models beside them, on one page, and measure how their figures are laid out.

Run `python -m benchmarks.figures FOLDER` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import groupby
from pathlib import Path

import simplace
from benchmarks.figure_layout import Layout, measure_layout
from simplace.errors import SimplaceError
from simplace.result import Placed
from simplace.views.figures.drawing import draw_picture, fit_boxes
from simplace.views.figures.placed_figures import FIGURES
from viz import STYLES, Column, Figure, Table, to_text

_ROOT = Path(__file__).resolve().parents[1]
_EMPTY = 0.35  # of a page: more is marked
_TABLE = re.compile(r"(?<=<!-- measured by benchmarks/figures.py -->\n).*?(?=<!-- end of what is measured -->)", re.S)
_COLUMNS = (
    Column("program"),
    Column("GPUs", "right"),
    Column("style"),
    Column("boxes", "right"),
    Column("lines through boxes", "right"),
    Column("lines through titles", "right"),
    Column("overlaps", "right"),
    Column("empty", "right"),
    Column("smallest text", "right"),
    Column("devices in order"),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Record of one figure and its measures."""

    name: str
    gpus: int
    style: str
    figure: Figure
    layout: Layout


def main(arguments: Sequence[str] | None = None) -> None:
    """Place each program on each machine, draw it, write the page, print the table, one line a figure."""
    options = _parser().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    drawn: list[Drawn] = []
    for name, gpus, placed in _place_programs(options.samples, options.gpus):
        drawn += _draw_styles(options, name, gpus, placed)
        print(f"{name}, {gpus} GPUs", flush=True)
    page = options.folder / "index.html"
    page.write_text(_write_sheet(drawn), encoding="utf-8")
    print(to_text(Table(_COLUMNS, (*map(_write_row, drawn), _sum_rows(drawn)))))
    print(f"\nall figures: {page}")
    if options.docs:
        text = options.docs.read_text(encoding="utf-8")
        options.docs.write_text(_TABLE.sub(lambda _: _write_docs(drawn), text), encoding="utf-8")


def _place_programs(names: Sequence[str], machines: Sequence[int]) -> Iterator[tuple[str, int, Placed]]:
    for file in [*sorted((_ROOT / "samples").glob("*.py")), *sorted((_ROOT / "benchmarks/programs").glob("*.py"))]:
        if names and file.stem not in names:
            continue
        for gpus in machines:
            result = simplace.check(str(file), f"cpu:1,gpu:{gpus}")
            try:
                yield file.stem, gpus, result.largest()
            except SimplaceError:  # all of it ran outside of functions
                continue


def _draw_styles(options: argparse.Namespace, name: str, gpus: int, placed: Placed) -> Iterator[Drawn]:
    for style in options.styles:
        figure = fit_boxes(partial(FIGURES[options.figure], placed), style, STYLES[style].boxes)
        file = _name_file(name, gpus, style)
        (options.folder / file).write_bytes(draw_picture(figure, file, style))
        yield Drawn(name, gpus, style, figure, measure_layout(figure, STYLES[style]))


def _name_file(name: str, gpus: int, style: str) -> str:
    return f"{name}.{gpus}.{style}.svg"


def _write_row(one: Drawn) -> tuple[str, ...]:
    layout = one.layout
    empty = f"{layout.empty:.0%}" + (" !" if layout.empty > _EMPTY else "")
    counts = (layout.through_boxes, layout.through_titles, layout.overlaps)
    order = "yes" if layout.is_in_order else "no"
    boxes = str(len(one.figure.nodes))
    return one.name, str(one.gpus), one.style, boxes, *map(str, counts), empty, f"{layout.text:.1f} pt", order


def _sum_rows(drawn: Sequence[Drawn]) -> tuple[str, ...]:
    """Return the line below all: sums, the mean of what is empty, the smallest text."""
    layouts = [one.layout for one in drawn]
    sums = [sum(getattr(one, name) for one in layouts) for name in ("through_boxes", "through_titles", "overlaps")]
    mean = sum(one.empty for one in layouts) / max(len(layouts), 1)
    text = min((one.text for one in layouts), default=0.0)
    boxes = str(sum(len(one.figure.nodes) for one in drawn))
    order = "yes" if all(one.is_in_order for one in layouts) else "no"
    return "all", "", "", boxes, *map(str, sums), f"{mean:.0%} on average", f"{text:.1f} pt", order


def _write_docs(drawn: Sequence[Drawn]) -> str:
    """Return a table in Markdown, a line a program and style: the worst of its machines."""
    lines = [
        "| program | GPUs | style | lines through boxes, titles | overlaps | empty | smallest text | in order |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (name, style), same in groupby(
        sorted(drawn, key=lambda one: (one.name, one.style)), lambda one: (one.name, one.style)
    ):
        lines.append(_write_docs_row(name, style, list(same)))
    lines.append(_write_docs_row("all", "", drawn))
    return "\n".join(lines) + "\n"


def _write_docs_row(name: str, style: str, drawn: Sequence[Drawn]) -> str:
    found = [one.layout for one in drawn]
    gpus = ", ".join(map(str, sorted({one.gpus for one in drawn})))
    through = f"{max(one.through_boxes for one in found)}, {max(one.through_titles for one in found)}"
    order = "yes" if all(one.is_in_order for one in found) else "no"
    cells = (
        name, gpus, style, through, str(max(one.overlaps for one in found)), f"{max(one.empty for one in found):.0%}",
        f"{min(one.text for one in found):.1f} pt", order,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _write_sheet(drawn: Sequence[Drawn]) -> str:
    parts = ["<!doctype html><meta charset='utf-8'><title>All samples</title>",
             "<style>body{font-family:sans-serif;background:#888}div{display:flex;gap:8px;align-items:flex-start}"
             "img{width:24vw;background:#fff}</style>"]  # fmt: skip
    for (name, gpus), same in groupby(drawn, lambda one: (one.name, one.gpus)):
        files = [_name_file(name, gpus, one.style) for one in same]
        images = "".join(f"<img src='{escape(file)}' alt='{escape(file)}'>" for file in files)
        parts.append(f"<h2>{escape(name)}, {gpus} GPUs</h2><div>{images}</div>")
    return "\n".join(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the figures and their page are written")
    parser.add_argument("--samples", nargs="*", default=[], help="names of samples and models (default: all)")
    parser.add_argument("--gpus", nargs="*", type=int, default=[2, 4, 8], help="how many GPUs (default: 2 4 8)")
    parser.add_argument("--styles", nargs="*", choices=STYLES, default=list(STYLES), help="default: all")
    parser.add_argument("--figure", choices=FIGURES, default="overview", help="default: overview")
    parser.add_argument("--docs", type=Path, help="a page in which the measured table is replaced: docs/figures.md")
    return parser


if __name__ == "__main__":
    main()
