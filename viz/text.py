"""Write tables as text, never wider than the terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len

from viz.names import visible
from viz.shortening import fit, fit_all, fit_lists
from viz.table import Align, Column, Table

if TYPE_CHECKING:
    from rich.console import Console

# rich wraps, cuts and colours; what has room for everything and no colour is written without it.

_GAP = 2  # spaces between columns
_INDENT = "  "  # of cells below their row
_NOTHING = "-"  # a cell that says nothing, and so is left out below its row
_UNLIMITED = 100_000
_FLEXIBLE_LEAST = 3  # cells: below that rigid columns give way too


def print_table(table: Table, file: TextIO | None = None) -> None:
    """Print `table` to `file` (standard output), in colour where it is a terminal and NO_COLOR is not set.

    Where the terminal is too narrow, long cells lose their middle, or go below their row. A file or pipe has no width,
    unless COLUMNS gives one: there names stay whole.
    """
    from rich.console import Console

    stream = file or sys.stdout
    width = _terminal_width(stream)
    terminal = False if os.environ.get("NO_COLOR") else None  # None: as the stream says; NO_COLOR alone keeps bold
    console = Console(file=stream, width=width or _UNLIMITED, force_terminal=terminal, force_jupyter=False)
    _print(console, table, width)


def to_text(table: Table, width: int | None = None) -> str:
    """Write `table` as plain text without colour, at most `width` terminal cells wide (None: as wide as it is).

    Lines have no trailing spaces. Below some 3 cells a column, text is cut to whatever fits.

    >>> print(to_text(Table((Column("op"), Column("ops", "right")), (("MatMul", "12"), ("Add", "3"))), 40))
    op      ops
    ───────────
    MatMul   12
    Add       3
    """
    if width is None:
        return "\n".join(line.rstrip() for line in _whole_lines(table))
    from rich.console import Console

    file = io.StringIO()
    # In a notebook rich would display the table at once instead of writing it to `file`.
    console = Console(
        file=file, width=width or _UNLIMITED, color_system=None, force_terminal=False, force_jupyter=False
    )
    _print(console, table, width)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _whole_lines(table: Table) -> Iterator[str]:
    if table.title:
        yield visible(table.title)
    yield from _lines(table, None, None)
    if table.footer:
        yield visible(table.footer)


def _print(console: Console, table: Table, width: int | None) -> None:
    from rich.text import Text

    if table.title:
        console.print(Text(visible(table.title), "bold"), overflow="fold")
    for number, line in enumerate(_lines(table, width, console)):
        console.print(Text(line, "" if number else "bold"), no_wrap=True, crop=True, overflow="crop")
    if table.footer:
        console.print(Text(visible(table.footer), "dim"), overflow="fold")


def _lines(table: Table, width: int | None, console: Console | None) -> Iterator[str]:
    """Yield the titles, a rule and the rows; what goes below its row follows it on lines of its own."""
    cells = [[visible(column.title) for column in table.columns], *(list(map(visible, row)) for row in table.rows)]
    below = _places_below(table.columns, cells, width)
    columns = [column for place, column in enumerate(table.columns) if place not in below]
    beside = [[cell for place, cell in enumerate(row) if place not in below] for row in cells]
    widths = _widths(columns, beside, width)
    for number, (row, fitted) in enumerate(zip(cells, _fit_rows(columns, beside, widths), strict=True)):
        aligned = zip(fitted, columns, widths, strict=True)
        yield (" " * _GAP).join([_aligned(cell, column.align, size) for cell, column, size in aligned])
        yield from (line for place in below if row[place] != _NOTHING for line in _wrap_cell(row[place], console))
        if number == 0:
            yield "─" * (sum(widths) + _GAP * (len(widths) - 1))


def _places_below(columns: Sequence[Column], rows: list[list[str]], width: int | None) -> list[int]:
    """Return the places of the columns that go below their row: none where the table has room for them."""
    below = [place for place, column in enumerate(columns) if column.below]
    fits = width is None or sum(_widths(columns, rows, None)) + _GAP * (len(columns) - 1) <= width
    return [] if fits or len(below) == len(columns) else below


def _fit_rows(columns: Sequence[Column], rows: list[list[str]], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """Shorten cells to the widths of their columns; a title is shortened by itself."""
    titles, *others = rows
    fitted = [
        (fit_lists if column.listed else fit_all)(cells, size)
        for column, cells, size in zip(columns, zip(*others, strict=True), widths, strict=False)
    ]
    return [tuple(map(fit, titles, widths)), *zip(*fitted, strict=True)]


def _wrap_cell(text: str, console: Console | None) -> Iterator[str]:
    """Return a cell as lines that the console has room for, indented."""
    assert console is not None, "a table of any width has room for every column"
    from rich.text import Text

    wrapped = Text(text).wrap(console, max(console.width - len(_INDENT), 1)) if text.strip() else ()
    return (_INDENT + line.plain.rstrip() for line in wrapped)


def _aligned(text: str, align: Align, cells: int) -> str:
    text = text if align == "left" else text.rstrip()
    room = cells - cell_len(text)
    before = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * before + text + " " * (room - before)


def _widths(columns: Sequence[Column], rows: list[list[str]], limit: int | None) -> list[int]:
    """Set each column to its natural width, then narrow the widest flexible one cell at a time, rigid ones last."""
    natural = [max(max(cell_len(row[place]) for row in rows), 1) for place in range(len(columns))]
    if limit is None:
        return natural
    room = limit - _GAP * (len(columns) - 1)
    widths = _narrow(natural, [place for place, column in enumerate(columns) if column.flexible], room, _FLEXIBLE_LEAST)
    return _narrow(widths, list(range(len(columns))), room, 1)


def _narrow(widths: list[int], places: list[int], room: int, least: int) -> list[int]:
    """Cap the widths at `places` at the largest common cap that makes the sum fit `room`, no lower than `least`."""
    fixed = sum(width for place, width in enumerate(widths) if place not in places)
    cap = max((widths[place] for place in places), default=least)
    while cap > least and fixed + sum(min(widths[place], cap) for place in places) > room:
        cap -= 1
    return [min(width, max(cap, least)) if place in places else width for place, width in enumerate(widths)]


def _terminal_width(stream: TextIO) -> int | None:
    if stream.isatty():
        from rich.console import Console

        return Console(file=stream).width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None
