"""Draw all samples in all styles on one page, and measure how their figures are laid out.

Run `python -m benchmarks.figures FOLDER` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path

import simplace
from benchmarks.figure_layout import Layout, measure_layout
from simplace.errors import SimplaceError
from simplace.result import Placed
from simplace.views.figures.drawing import draw_picture, fit_boxes
from simplace.views.figures.placed_figures import FIGURES
from viz import STYLES, Column, Figure, Table, to_text

_SAMPLES = Path(__file__).resolve().parents[1] / "samples"
_EMPTY = 0.35  # of a page: more is marked
_COLUMNS = (
    Column("sample"),
    Column("GPUs", "right"),
    Column("boxes", "right"),
    Column("through boxes", "right"),
    Column("through titles", "right"),
    Column("overlaps", "right"),
    Column("empty", "right"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Place each sample on each machine, draw it, write the page, print the table."""
    options = _parser().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    rows, sheet = [], []
    for name, gpus, placed in _place_samples(options.samples, options.gpus):
        figure = FIGURES[options.figure](placed, STYLES["screen"].boxes)
        rows.append((name, gpus, figure, measure_layout(figure)))
        sheet.append((f"{name}, {gpus} GPUs", _draw_styles(options, f"{name}.{gpus}", placed)))
    page = options.folder / "index.html"
    page.write_text(_write_sheet(sheet), encoding="utf-8")
    print(to_text(Table(_COLUMNS, (*map(_write_row, rows), _sum_rows(rows)))))
    print(f"\nall figures: {page}")


def _place_samples(names: Sequence[str], machines: Sequence[int]) -> Iterator[tuple[str, int, Placed]]:
    for sample in sorted(_SAMPLES.glob("*.py")):
        if names and sample.stem not in names:
            continue
        for gpus in machines:
            result = simplace.check(str(sample), f"cpu:1,gpu:{gpus}")
            try:
                yield sample.stem, gpus, result.largest()
            except SimplaceError:  # all of it ran outside of functions
                continue


def _draw_styles(options: argparse.Namespace, stem: str, placed: Placed) -> list[str]:
    files = []
    for style in options.styles:
        figure = fit_boxes(partial(FIGURES[options.figure], placed), style, STYLES[style].boxes)
        file = f"{stem}.{style}.svg"
        (options.folder / file).write_bytes(draw_picture(figure, file, style))
        files.append(file)
    return files


def _write_row(row: tuple[str, int, Figure, Layout]) -> tuple[str, ...]:
    name, gpus, figure, layout = row
    empty = f"{layout.empty:.0%}" + (" !" if layout.empty > _EMPTY else "")
    counts = (layout.through_boxes, layout.through_titles, layout.overlaps)
    return name, str(gpus), str(len(figure.nodes)), *map(str, counts), empty


def _sum_rows(rows: Sequence[tuple[str, int, Figure, Layout]]) -> tuple[str, ...]:
    layouts = [row[-1] for row in rows]
    sums = [sum(getattr(one, name) for one in layouts) for name in ("through_boxes", "through_titles", "overlaps")]
    mean = sum(one.empty for one in layouts) / max(len(layouts), 1)
    return "all", "", str(sum(len(row[2].nodes) for row in rows)), *map(str, sums), f"{mean:.0%} on average"


def _write_sheet(sheet: Sequence[tuple[str, list[str]]]) -> str:
    parts = ["<!doctype html><meta charset='utf-8'><title>All samples</title>",
             "<style>body{font-family:sans-serif;background:#888}div{display:flex;gap:8px;align-items:flex-start}"
             "img{width:24vw;background:#fff}</style>"]  # fmt: skip
    for title, files in sheet:
        images = "".join(f"<img src='{escape(file)}' alt='{escape(file)}'>" for file in files)
        parts.append(f"<h2>{escape(title)}</h2><div>{images}</div>")
    return "\n".join(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the figures and their page are written")
    parser.add_argument("--samples", nargs="*", default=[], help="names of samples (default: all)")
    parser.add_argument("--gpus", nargs="*", type=int, default=[2, 4, 8], help="how many GPUs (default: 2 4 8)")
    parser.add_argument("--styles", nargs="*", choices=STYLES, default=list(STYLES), help="default: all")
    parser.add_argument("--figure", choices=FIGURES, default="overview", help="default: overview")
    return parser


if __name__ == "__main__":
    main()
