"""Draw all figures of all samples, and of models beside them, on one page, and measure how they are laid out.

Run `python -m benchmarks.figures FOLDER` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

import simplace
from benchmarks.figure_layout import Layout, measure_chart, measure_layout
from simplace.api import Result
from simplace.errors import SimplaceError
from simplace.views.figures.drawing import Picture, draw_picture
from simplace.views.figures.placed_figures import CHARTS, FIGURES
from viz import STYLES, Column, Figure, Table, to_text

_ROOT = Path(__file__).resolve().parents[1]
_EMPTY = 0.35  # of a page: more is marked
_ROUNDED = 0.05  # points: so much smaller than a style's least text is not told from it
_TABLE = re.compile(r"(?<=<!-- measured by benchmarks/figures.py -->\n).*?(?=<!-- end of what is measured -->)", re.S)
_COLUMNS = (
    Column("program"),
    Column("GPUs", "right"),
    Column("figure"),
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
    """Record of one figure: what it is of, and its measures; `file` is its name in the folder, `boxes` 0 in a chart."""

    name: str
    gpus: int
    kind: str
    style: str
    boxes: int
    layout: Layout
    file: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Place each program on each machine, draw it, write the page, print the table, one line a figure."""
    options = _parser().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    page = options.folder / "index.html"
    drawn: list[Drawn] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [
            (file, gpus, pool.submit(_draw_program, options, file, gpus)) for file, gpus in _list_programs(options)
        ]
        for file, gpus, future in running:
            drawn += future.result()
            page.write_text(_write_sheet(drawn), encoding="utf-8")
            print(f"{file.stem}, {gpus} GPUs", flush=True)
    print(to_text(Table(_COLUMNS, (*map(_write_row, drawn), _sum_rows(drawn)))))
    print(f"\nall figures: {page}")
    if options.docs:
        text = options.docs.read_text(encoding="utf-8")
        options.docs.write_text(_TABLE.sub(lambda _: _write_docs(drawn), text), encoding="utf-8")


def _list_programs(options: argparse.Namespace) -> list[tuple[Path, int]]:
    files = [*sorted((_ROOT / "samples").glob("*.py")), *sorted((_ROOT / "benchmarks/programs").glob("*.py"))]
    chosen = [file for file in files if not options.samples or file.stem in options.samples]
    return [(file, gpus) for file in chosen for gpus in options.gpus]


def _draw_program(options: argparse.Namespace, file: Path, gpus: int) -> list[Drawn]:
    return list(_draw_all(options, file.stem, gpus, simplace.check(str(file), f"cpu:1,gpu:{gpus}")))


def _draw_all(options: argparse.Namespace, name: str, gpus: int, result: Result) -> Iterator[Drawn]:
    for kind in options.figures:
        for style in options.styles:
            try:
                picture = result.figure(kind, style=style)
            except SimplaceError as error:  # such as a chart of a graph that is refused
                print(f"{name}, {gpus} GPUs: no {kind}: {error}", flush=True)
                break
            file = f"{name}.{gpus}.{kind}.{style}.{options.format}"
            (options.folder / file).write_bytes(draw_picture(picture.what, file, style))
            boxes = len(picture.what.nodes) if isinstance(picture.what, Figure) else 0
            yield Drawn(name, gpus, kind, style, boxes, _measure(picture), file)


def _measure(picture: Picture) -> Layout:
    style = STYLES[picture.style]
    if isinstance(picture.what, Figure):
        return measure_layout(picture.what, style)
    return measure_chart(draw_picture(picture.what, "chart.dot", picture.style).decode())


def _write_row(one: Drawn) -> tuple[str, ...]:
    layout = one.layout
    empty = f"{layout.empty:.0%}" + (" !" if layout.empty > _EMPTY else "")
    text = f"{layout.text:.1f} pt" + (" !" if _is_small(one) else "")
    counts = (layout.through_boxes, layout.through_titles, layout.overlaps)
    order = "yes" if layout.is_in_order else "no"
    return one.name, str(one.gpus), one.kind, one.style, str(one.boxes), *map(str, counts), empty, text, order


def _is_small(one: Drawn) -> bool:
    return one.layout.text < STYLES[one.style].least - _ROUNDED


def _sum_rows(drawn: Sequence[Drawn]) -> tuple[str, ...]:
    """Return the line below all: sums, the mean of what is empty, the smallest text."""
    layouts = [one.layout for one in drawn]
    sums = [sum(getattr(one, name) for one in layouts) for name in ("through_boxes", "through_titles", "overlaps")]
    mean = sum(one.empty for one in layouts) / max(len(layouts), 1)
    text = min((one.text for one in layouts), default=0.0)
    order = "yes" if all(one.is_in_order for one in layouts) else "no"
    boxes = str(sum(one.boxes for one in drawn))
    return "all", "", "", "", boxes, *map(str, sums), f"{mean:.0%} on average", f"{text:.1f} pt", order


def _write_docs(drawn: Sequence[Drawn]) -> str:
    """Return a table in Markdown, a line a kind of figure and style: the worst of all programs and machines."""
    lines = [
        "| figure | style | drawn | lines through boxes, titles | overlaps | most empty | smallest text | in order |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    kinds = [*FIGURES, *CHARTS]
    ordered = sorted(drawn, key=lambda one: (kinds.index(one.kind), [*STYLES].index(one.style)))
    for (kind, style), same in groupby(ordered, lambda one: (one.kind, one.style)):
        lines.append(_write_docs_row(kind, style, list(same)))
    return "\n".join(lines) + "\n"


def _write_docs_row(kind: str, style: str, drawn: Sequence[Drawn]) -> str:
    found = [one.layout for one in drawn]
    emptiest = max(drawn, key=lambda one: one.layout.empty)
    smallest = min(drawn, key=lambda one: one.layout.text)
    text = f"{smallest.layout.text:.1f} pt ({_name(smallest)})"
    measures = ("", "", "", "")
    if kind in FIGURES:
        through = f"{sum(one.through_boxes for one in found)}, {sum(one.through_titles for one in found)}"
        order = "yes" if all(one.is_in_order for one in found) else "no"
        empty = f"{emptiest.layout.empty:.0%} ({_name(emptiest)})"
        measures = (through, str(sum(one.overlaps for one in found)), empty, order)
    cells = (kind, style, str(len(drawn)), *measures[:3], text, measures[3])
    return f"| {' | '.join(cells)} |"


def _name(one: Drawn) -> str:
    return f"{one.name}, {one.gpus} GPUs"


def _write_sheet(drawn: Sequence[Drawn]) -> str:
    parts = ["<!doctype html><meta charset='utf-8'><title>All samples</title>",
             "<style>body{font-family:sans-serif;background:#888}div{display:flex;gap:8px;align-items:flex-start}"
             "img{width:24vw;background:#fff}</style>"]  # fmt: skip
    for (name, gpus, kind), same in groupby(drawn, lambda one: (one.name, one.gpus, one.kind)):
        images = "".join(f"<img src='{escape(one.file)}' alt='{escape(one.file)}' loading=lazy>" for one in same)
        parts.append(f"<h2>{escape(name)}, {gpus} GPUs, {kind}</h2><div>{images}</div>")
    return "\n".join(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the figures and their page are written")
    parser.add_argument("--samples", nargs="*", default=[], help="names of samples and models (default: all)")
    parser.add_argument("--gpus", nargs="*", type=int, default=[2, 4, 8], help="how many GPUs (default: 2 4 8)")
    parser.add_argument("--styles", nargs="*", choices=STYLES, default=list(STYLES), help="default: all")
    kinds = (*FIGURES, *CHARTS)
    parser.add_argument("--figures", nargs="*", choices=kinds, default=list(kinds), help="default: all")
    parser.add_argument("--format", choices=("svg", "png"), default="svg", help="of the pictures (default: svg)")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once, each in a process (default: 1)")
    parser.add_argument("--docs", type=Path, help="a page in which the measured table is replaced: docs/figures.md")
    return parser


if __name__ == "__main__":
    main()
