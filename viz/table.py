"""The record of a table: cells of text, and how columns take a line that is too narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from viz.errors import FigureError

Align = Literal["left", "right", "center"]


@dataclass(frozen=True, slots=True)
class Column:
    """Describe a column, and what happens to it where the table is too wide.

    Cells of a `flexible` column lose their middle. Those of a `listed` one, things with ", " between them, lose the
    last things, which are counted. Those of a `wrapped` one, such as types, lose nothing and take several lines. Those
    of a column `below`, such as sentences, go below their row, wrapped. Those of a `heading` one, which few rows have,
    go above their row, after the title.
    """

    title: str
    align: Align = "left"
    flexible: bool = True
    below: bool = False
    listed: bool = False
    wrapped: bool = False
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Record of a table of text; `footer` is a line of plain words below it.

    Raises:
        FigureError: there is no column, a row has another number of cells, or an alignment is not one of those listed.

    >>> Table((Column("op"),), (("MatMul", "GPU:0"),))
    Traceback (most recent call last):
        ...
    viz.errors.FigureError: row 1 has 2 cells; the table has 1 columns: op
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    title: str = ""
    footer: str = ""

    def __post_init__(self) -> None:
        if not self.columns:
            raise FigureError("a table needs at least one column")
        titles = ", ".join(column.title for column in self.columns)
        for column in self.columns:
            if column.align not in get_args(Align):
                allowed = ", ".join(get_args(Align))
                raise FigureError(f"column {column.title!r} is aligned {column.align!r}; choose from: {allowed}")
        for place, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise FigureError(
                    f"row {place} has {len(row)} cells; the table has {len(self.columns)} columns: {titles}"
                )

    def __str__(self) -> str:
        return "\n".join("\t".join(row) for row in self.rows)
