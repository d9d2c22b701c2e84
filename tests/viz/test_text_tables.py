from __future__ import annotations

import builtins
import io
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from viz import Column, FigureError, Table, print_table, to_text

PLACEMENT = Table(
    (Column("op"), Column("device", flexible=False), Column("bytes", "right", flexible=False)),
    (
        ("sequential/dense/MatMul/ReadVariableOp", "GPU:0", "401,408"),
        ("sequential/dense/BiasAdd", "GPU:0", "512"),
        ("[red]markup[/red]\x1b[31m\n", "CPU:0", "4"),
        ("名前/行列積", "GPU:1", "0"),
    ),
    "Placement",
    "4 ops on 3 devices",
)


@pytest.mark.parametrize("width", [None, 40, 24])
def test_table_is_the_golden_text(width: int | None, golden: Callable[[str, str], None]) -> None:
    golden(f"table_{width or 'whole'}.txt", to_text(PLACEMENT, width) + "\n")


REASONS = Table(
    (Column("node"), Column("device", flexible=False), Column("because", below=True), Column("line")),
    (
        ("dense/MatMul", "GPU:0", "No device was requested; the highest-priority candidate is used.", "model.py:4"),
        ("dense/Const", "GPU:0", "", "model.py:5"),
        ("名前", "CPU:0", "名前 " * 12, "-"),
    ),
)


def test_sentences_go_below_their_row_where_the_table_is_too_wide() -> None:
    assert to_text(REASONS, 40).split("\n") == [
        "node          device  line",
        "  because",
        "────────────────────────────────",
        "dense/MatMul  GPU:0   model.py:4",
        "  No device was requested; the",
        "  highest-priority candidate is used.",
        "dense/Const   GPU:0   model.py:5",
        "名前          CPU:0   -",
        "  名前 名前 名前 名前 名前 名前 名前",
        "  名前 名前 名前 名前 名前",
    ]
    assert to_text(REASONS, 120) == to_text(REASONS)
    alone = Table((Column("because", below=True),), (("It is so, for a reason.",),))
    assert to_text(alone, 12).split("\n")[2:] == ["It is so,", "for a", "reason."]


@given(
    rows=st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40), st.text(max_size=10)), max_size=4),
    width=st.integers(8, 60),
    footer=st.text(max_size=100),
)
def test_never_wider_than_asked(rows: list[tuple[str, ...]], width: int, footer: str) -> None:
    for below in (False, True):
        columns = (Column("op"), Column("name", below=below), Column("n", "right", flexible=False))
        table = Table(columns, tuple(rows), footer, footer)
        assert all(cell_len(line) <= width for line in to_text(table, width).split("\n"))


@given(
    rows=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9)), max_size=4),
    title=st.text(max_size=9),
)
def test_room_for_everything_is_as_good_as_no_limit(rows: list[tuple[str, ...]], title: str) -> None:
    columns = (Column("op"), Column("行", "right"), Column("kind", "center"))
    table = Table(columns, tuple(rows), title, footer=title)
    assert to_text(table) == to_text(table, 1000)


def test_file_gets_whole_names_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    file = io.StringIO()
    print_table(PLACEMENT, file)
    assert "sequential/dense/MatMul/ReadVariableOp  GPU:0" in file.getvalue()
    assert "\x1b" not in file.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_colour", [True, False])
def test_terminal_gets_its_width_and_bold_unless_no_color(monkeypatch: pytest.MonkeyPatch, no_colour: bool) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    print_table(PLACEMENT, terminal)
    lines = terminal.getvalue().split("\n")
    assert any("sequential" in line and "…" in line for line in lines)
    assert ("\x1b[1m" in terminal.getvalue()) is not no_colour
    assert all(cell_len(re.sub(r"\x1b\[\d+m", "", line)) <= 40 for line in lines)


def test_refuses_ragged_rows_and_unknown_alignment() -> None:
    with pytest.raises(FigureError, match="row 1 has 1 cells; the table has 2 columns: a, b"):
        Table((Column("a"), Column("b")), (("x",),))
    with pytest.raises(FigureError, match="column 'a' is aligned 'middle'; choose from: left, right, center"):
        Table((Column("a", "middle"),))  # type: ignore[arg-type]
    with pytest.raises(FigureError, match="at least one column"):
        Table(())


def test_a_table_is_text_within_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = type("ZMQInteractiveShell", (), {})  # by this name rich knows a notebook
    expected = to_text(PLACEMENT)
    monkeypatch.setattr(builtins, "get_ipython", shell, raising=False)
    assert to_text(PLACEMENT) == expected


def test_titles_types_and_lists_of_types_wrap_and_a_name_that_is_too_short_goes_below() -> None:
    columns = (Column("data types", wrapped=True), Column("of the step", "right", flexible=False))
    assert to_text(Table(columns, (("T=float32, float16", "100%"),)), 16).split("\n") == [
        "data types    of",
        "             the",
        "            step",
        "────────────────",
        "T=float32,  100%",
        "float16",
    ]
    columns = (Column("device"), Column("ops", listed=True, wrapped=True))
    assert to_text(Table(columns, (("GPU:0", "StatelessRandomUniform, Fill, Add"),)), 32).split("\n")[2:] == [
        "GPU:0   StatelessRandomUniform,",
        "        2 more",
    ]
    columns = (Column("device"), Column("size", "right", flexible=False), Column("used by"))
    assert to_text(Table(columns, (("GPU:0", "256 KiB", "gradient_tape/dense/MatMul"),)), 28).split("\n") == [
        "device     size",
        "  used by",
        "───────────────",
        "GPU:0   256 KiB",
        "  gradient_tape/dense/MatMul",
    ]


def test_lists_lose_whole_things_and_what_says_nothing_has_no_line_below() -> None:
    columns = (Column("line"), Column("ops", listed=True), Column("because", below=True))
    rows = (
        ("a.py:1", "Fill, VarHandleOp, AssignVariableOp", "-"),
        ("a.py:2", "MatMul, BiasAdd, Relu, 2 more", "It has a kernel"),
    )
    assert (
        to_text(Table(columns, rows), 24)
        == """\
line    ops
  because
────────────────────────
a.py:1  Fill, 2 more
a.py:2  MatMul, 4 more
  It has a kernel"""
    )


def test_a_heading_goes_above_its_row_whole_and_what_is_below_wraps_before_it_is_cut() -> None:
    columns = (Column("run", heading=True), Column("copy", flexible=False), Column("what"))
    rows = (
        ("train.py:26: ReadVariableOp:0", "CPU:0 → GPU:0", "send tower_0/MatMul:0 to GPU:0"),
        ("", "CPU:0 → GPU:1", "send tower_0/MatMul:0 to GPU:1"),
    )
    assert to_text(Table(columns, rows), 24).split("\n") == [
        "copy",
        "  what",
        "─────────────",
        "run train.py:26:",
        "ReadVariableOp:0",
        "CPU:0 → GPU:0",
        "  send tower_0/MatMul:0",
        "  to GPU:0",
        "CPU:0 → GPU:1",
        "  send tower_0/MatMul:0",
        "  to GPU:1",
    ]
    assert to_text(Table(columns, rows), 60).split("\n")[2:4] == [
        "run train.py:26: ReadVariableOp:0",
        "CPU:0 → GPU:0  send tower_0/MatMul:0 to GPU:0",
    ]
