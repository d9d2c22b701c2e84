"""Share a terminal's width among the columns of a table: how wide each is, and which go below their row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from viz.table import Column

GAP = 2  # spaces between columns
_MOST_LINES = 3  # of a cell that wraps
_LEGIBLE = (12, 20)  # cells of a name on a narrow, a wide terminal: its column goes below its row where it had fewer


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Record of which columns are beside each other, with their widths in cells, and which are above or below a row."""

    beside: tuple[int, ...]
    widths: tuple[int, ...]
    below: tuple[int, ...]
    above: tuple[int, ...] = ()


def lay_out_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> TableLayout:
    """Share `width` cells (None: as many as it takes) among columns; the first row has the titles.

    Headings go above their row first. Titles wrap before any cell is narrowed. The widest cells that can be narrowed
    are, one cell at a time, down to what can be read: some 20 cells of a name, a word or three lines of what wraps.
    Where that does not suffice, columns go below their row, the widest of these first, then the last of the others, but
    never the first one. The last resort is to cut everything to what fits.
    """
    natural = [max(max(cell_len(row[place]) for row in rows), 1) for place in range(len(columns))]
    if width is None or _sum_widths(natural) <= width:
        return TableLayout(tuple(range(len(columns))), tuple(natural), ())
    above = tuple(place for place, column in enumerate(columns) if column.heading)
    below = [place for place, column in enumerate(columns) if column.below and not all(each.below for each in columns)]
    legible = min(max(width // 3, _LEGIBLE[0]), _LEGIBLE[1])
    least = [_find_least(column, [row[place] for row in rows], legible) for place, column in enumerate(columns)]
    beside = [place for place in range(len(columns)) if place not in below and place not in above]
    while len(beside) > 1 and _sum_widths([least[place] for place in beside]) > width:
        movable = [place for place in beside[1:] if columns[place].flexible]
        beside.remove(max(movable, key=lambda place: natural[place], default=beside[-1]))
    below = [place for place in range(len(columns)) if place not in beside and place not in above]
    whole = [max(_longest_word(rows[0][at]), 1, *(cell_len(row[at]) for row in rows[1:])) for at in beside]
    widths = [natural[place] for place in beside]
    for floor in (whole, [least[place] for place in beside], [1] * len(beside)):
        widths = _narrow(widths, floor, width - GAP * (len(beside) - 1))
    return TableLayout(tuple(beside), tuple(widths), tuple(below), above)


def _sum_widths(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _find_least(column: Column, cells: Sequence[str], legible: int) -> int:
    """Return the least cells in which a column, its title first, can be read."""
    title, *others = cells
    widest = max(map(cell_len, others), default=0)
    if column.wrapped:
        widest = max(0 if column.listed else widest // _MOST_LINES, 0, *map(_longest_word, others))
    elif column.flexible:
        widest = min(widest, legible)
    return max(_longest_word(title), widest, 1)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _narrow(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """Cap widths at the largest common cap that makes their sum fit `room`, none lower than its floor."""
    cap = max(widths)
    narrowed = list(widths)
    while cap > 1 and sum(narrowed) > room:
        cap -= 1
        narrowed = [max(min(width, cap), min(width, floor)) for width, floor in zip(widths, floors, strict=True)]
    return narrowed
