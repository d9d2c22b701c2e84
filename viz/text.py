"""Write tables as text, never wider than the terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len

from viz.names import visible
from viz.shortening import fit, fit_all
from viz.table import Align, Column, Table

if TYPE_CHECKING:
    from rich.console import Console

# rich wraps, cuts and colours; what has room for everything and no colour is written without it.

_GAP = 2  # spaces between columns: one of padding, one that the box draws
_UNLIMITED = 100_000
_FLEXIBLE_LEAST = 3  # cells: below that rigid columns give way too


def print_table(table: Table, file: TextIO | None = None) -> None:
    """Print `table` to `file` (standard output), in colour where it is a terminal and NO_COLOR is not set.

    Long cells lose their middle where the terminal is too narrow. A file or pipe has no width, unless COLUMNS
    gives one: there names stay whole.
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
    titles, rows = _cells(table)
    widths = _widths(table.columns, [titles, *rows], None)
    if table.title:
        yield visible(table.title)
    for i, row in enumerate((titles, *rows)):
        aligned = zip(row, table.columns, widths, strict=True)
        yield (" " * _GAP).join([_aligned(cell, column.align, size) for cell, column, size in aligned])
        if i == 0:
            yield "─" * (sum(widths) + _GAP * (len(widths) - 1))
    if table.footer:
        yield visible(table.footer)


def _aligned(text: str, align: Align, cells: int) -> str:
    text = text if align == "left" else text.rstrip()
    room = cells - cell_len(text)
    before = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * before + text + " " * (room - before)


def _cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the titles and the rows as they can be shown."""
    return [visible(column.title) for column in table.columns], [list(map(visible, row)) for row in table.rows]


def _print(console: Console, table: Table, width: int | None) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    titles, rows = _cells(table)
    widths = _widths(table.columns, [titles, *rows], width)
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False)
    for column, title, size in zip(table.columns, titles, widths, strict=True):
        drawn.add_column(Text(fit(title, size), "bold"), justify=column.align, width=size, no_wrap=True)
    fitted = [fit_all(cells, size) for cells, size in zip(zip(*rows, strict=True), widths, strict=False)]
    for row in zip(*fitted, strict=True):
        drawn.add_row(*map(Text, row))
    if table.title:
        console.print(Text(visible(table.title), "bold"), overflow="fold")
    console.print(drawn, no_wrap=True, crop=True)
    if table.footer:
        console.print(Text(visible(table.footer), "dim"), overflow="fold")


def _widths(columns: tuple[Column, ...], rows: list[list[str]], limit: int | None) -> list[int]:
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
