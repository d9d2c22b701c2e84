"""The lines of a program that its page shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplace.program.program import NodeNotes
from simplace.report.page import write_page
from simplace.report.source_excerpts import collect_excerpts
from simplace.result import Result
from tests.report import worlds
from tests.report.conftest import Opened
from tests.worlds import constant, place


def test_a_line_has_its_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("one\ntwo\nthree\nfour\n")
    found = collect_excerpts([f"{file}:1", f"{file}:4", f"{file}:99", "", "somewhere"])
    assert found == {str(file): {1: "one", 2: "two", 3: "three", 4: "four"}}


@pytest.mark.parametrize("place", ["absent.py:1", "notes.txt:1", "model.py:x", "\0.py:1"])
def test_what_cannot_be_read_has_no_lines(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("a")
    (tmp_path / "model.py").write_text("a")
    assert collect_excerpts([place]) == {}


def test_the_panel_shows_the_line_of_a_node(opened: Callable[[Result], Opened], tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("import this\nx = <b>\nlast\n")
    page = opened(worlds.result(place(constant("x", (2,)), notes={"x": NodeNotes(at=f"{file}:2")})))
    page.run("go(0)")
    assert page.find("#details .excerpt").text == "1 import this\n2 x = <b>\n3 last"
    assert page.find("#details .excerpt b").text == "2 x = <b>"


def test_a_page_can_leave_the_lines_out(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("secret = 1\n")
    result = worlds.result(place(constant("x", (2,)), notes={"x": NodeNotes(at=f"{file}:1")}))
    assert "secret" in write_page(result)
    without = write_page(result, has_source=False)
    assert "secret" not in without
    assert f"{file}:1" in without
