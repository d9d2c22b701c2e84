"""A headless Chromium for the tests of the page; without one they are skipped, unless SIMPLACE_REQUIRE_BROWSER is 1."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simplace.report.page import write_page
from simplace.result import Result
from tests.report.chromium import NoBrowserError, start

REQUIRED = "SIMPLACE_REQUIRE_BROWSER"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    try:
        running = start(tmp_path_factory.mktemp("chromium"))
    except NoBrowserError as error:
        reason = f"the page is not tested in a browser: {error}; Debian has chromium and chromium-driver"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    yield running
    running.quit()


class Opened:
    """Drive one opened page; `run` evaluates JavaScript, in which the page's own names are known."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def value(self, expression: str, *arguments: Any) -> Any:
        return self.run(f"return {expression}", *arguments)

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", selector))

    def wait_for(self, selector: str) -> list[Any]:
        """Return the elements once there is one: what a `details` holds comes after its event "toggle", in a task."""
        deadline = time.monotonic() + 60
        while not (found := self.all(selector)):
            assert time.monotonic() < deadline, f"nothing is {selector}"
            time.sleep(0.02)
        return found

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        self.browser.switch_to.active_element.send_keys(*keys)

    def wait_until_ready(self) -> None:
        """Wait until the page that is being opened has drawn its first screen."""
        deadline = time.monotonic() + 300
        while self.value("document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < deadline, f"the page did not get ready: {self.complaints()}"
            time.sleep(0.05)

    def wait_until_idle(self) -> None:
        """Wait until what is done in steps is done."""
        deadline = time.monotonic() + 60
        while self.value("jobs.length"):
            assert time.monotonic() < deadline, "work in steps comes to its end"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Return what the browser's console holds: errors, broken policies, failed loads."""
        return [entry["message"] for entry in self.browser.get_log("browser")]


class Opener:
    """Write pages and open them; the console must stay empty to the end."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser = browser
        self.folder = folder
        self.page = Opened(browser)

    def __call__(self, result: Result) -> Opened:
        """Open the page of a result."""
        file = self.folder / "report.html"
        file.write_text(write_page(result), encoding="utf-8", newline="\n")
        return self.open_file(file)

    def open_file(self, file: Path) -> Opened:
        """Open a page that is written."""
        self.browser.get_log("browser")
        self.browser.get(file.as_uri())
        self.page.wait_until_ready()
        return self.page


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(browser, tmp_path)
    yield opener
    assert opener.page.complaints() == []
