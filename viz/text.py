"""Write tables as text, never wider than the terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len

from viz.names import visible
from viz.shortening import count_rest, fit, fit_all, fit_lists
from viz.table import Align, Column, Table
from viz.table_layout import GAP, lay_out_table

if TYPE_CHECKING:
    from rich.console import Console

# rich wraps, cuts and colours; what has room for everything and no colour is written without it.

_INDENT = "  "  # of cells below their row
_NOTHING = "-"  # a cell that says nothing, and so is left out below its row
_UNLIMITED = 100_000


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
    """Yield the titles, a rule and the rows; what goes above or below its row has lines of its own there."""
    rows = [[visible(column.title) for column in table.columns], *(list(map(visible, row)) for row in table.rows)]
    layout = lay_out_table(table.columns, rows, width)
    aligns = [table.columns[place].align for place in layout.beside]
    sizes = dict(zip(layout.beside, layout.widths, strict=True))
    sizes |= {place: (width or _UNLIMITED) - len(_INDENT) for place in layout.below}
    shown = {
        place: _fit_column(table.columns[place], [row[place] for row in rows], sizes[place], place in layout.below)
        for place in sizes
    }
    for number in range(len(rows)):
        if number:
            yield from _write_above([(rows[0][place], rows[number][place]) for place in layout.above], console)
        cells = [_wrap(shown[place][number], sizes[place], console) for place in layout.beside]
        for line in zip_longest(*cells, fillvalue=""):
            yield (" " * GAP).join(map(_aligned, line, aligns, layout.widths))
        yield from _write_below([shown[place][number] for place in layout.below], console)
        if number == 0:
            yield "─" * (sum(layout.widths) + GAP * (len(layout.widths) - 1))


def _fit_column(column: Column, cells: Sequence[str], size: int, is_below: bool) -> list[str]:
    """Return the cells of a column as they are shown in `size` cells; those that wrap may be wider, as its title is."""
    title, *others = cells
    if column.below or (
        is_below and not column.listed and all(len(word) <= size for c in others for word in c.split())
    ):
        return [title, *others]
    if column.wrapped:
        return [title, *((count_rest(cell, size) for cell in others) if column.listed else others)]
    return [title, *(fit_lists if column.listed else fit_all)(others, size)]


def _write_above(cells: Sequence[tuple[str, str]], console: Console | None) -> Iterator[str]:
    """Yield what goes above a row, each cell after its title."""
    for title, cell in cells:
        if cell.strip() and console is not None:
            yield from _wrap(f"{title} {cell}", console.width, console)


def _write_below(cells: Sequence[str], console: Console | None) -> Iterator[str]:
    """Yield what goes below a row, indented: several cells on a line where it has room for them."""
    line = ""
    for cell in (cell for cell in cells if cell.strip() and cell != _NOTHING):
        assert console is not None, "a table of any width has room for every column"
        joined = f"{line}{' ' * GAP}{cell}" if line else cell
        if line and cell_len(joined) > console.width - len(_INDENT):
            yield from (_INDENT + part for part in _wrap(line, console.width - len(_INDENT), console))
            joined = cell
        line = joined
    if line and console is not None:
        yield from (_INDENT + part for part in _wrap(line, console.width - len(_INDENT), console))


def _wrap(text: str, size: int, console: Console | None) -> list[str]:
    """Return a text as lines of at most `size` cells; a word that is wider loses its middle."""
    if console is None or cell_len(text) <= size:
        return [text]
    from rich.text import Text

    words = " ".join(fit(word, max(size, 1)) for word in text.split())
    return [line.plain.rstrip() for line in Text(words).wrap(console, max(size, 1))]


def _aligned(text: str, align: Align, cells: int) -> str:
    text = text if align == "left" else text.rstrip()
    room = cells - cell_len(text)
    before = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * before + text + " " * (room - before)


def _terminal_width(stream: TextIO) -> int | None:
    if stream.isatty():
        from rich.console import Console

        return Console(file=stream).width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None
