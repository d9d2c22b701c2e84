"""What a notebook shows of a result: the page in a frame, or figures of a large one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simplace.report import notebook_frame
from simplace.report.notebook_frame import write_notebook_html
from tests.report import worlds
from tests.report.conftest import Opened
from tests.views import graphs


def test_a_large_result_is_shown_as_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_frame, "LARGEST", 14)
    shown = write_notebook_html(worlds.towers())
    assert "<iframe" not in shown
    assert "<details" in shown


def test_a_result_without_programs_has_no_frame() -> None:
    assert "<iframe" not in write_notebook_html(worlds.result(graphs.empty()))


def test_the_frame_is_the_page_and_reaches_nothing_around_it(browser: Any, tmp_path: Path) -> None:
    page = Opened(browser)
    file = tmp_path / "cell.html"
    file.write_text(f"<meta charset='utf-8'>{write_notebook_html(worlds.towers())}", encoding="utf-8")
    browser.get_log("browser")
    browser.get(file.as_uri())
    assert page.find("p:last-of-type").text == "agrees with TensorFlow 2.21.0: 15/15 nodes"
    frame = page.find("iframe")
    assert frame.get_attribute("title") == "model.py on CPU:0, GPU:0, GPU:1"
    browser.switch_to.frame(frame)
    try:
        page.wait_until_ready()
        page.run("go(state.program.find('tower_1/dense_0/MatMul'))")
        assert page.find("#details h2").text == "tower_1/dense_0/MatMul"
        assert page.value("window.origin") == "null"
    finally:
        browser.switch_to.default_content()
    assert page.complaints() == []


def test_hostile_names_do_not_leave_the_frame(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "cell.html"
    file.write_text(f"<meta charset='utf-8'>{write_notebook_html(worlds.hostile())}", encoding="utf-8")
    browser.get(file.as_uri())
    assert Opened(browser).value("typeof window.hacked") == "undefined"
    assert browser.execute_script("return document.querySelectorAll('body *').length") == 5
