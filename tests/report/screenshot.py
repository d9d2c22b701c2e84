"""Make the screenshot of docs/report.md anew: python -m tests.report.screenshot PAGE.html FILE.png [NODE]."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.report.chromium import start


def main(page: str, file: str, node: str = "") -> None:
    """Open a page, select the node of that name, and save what is seen."""
    with tempfile.TemporaryDirectory() as profile:
        browser = start(Path(profile), 1440, 860)
        try:
            browser.get(Path(page).resolve().as_uri())
            while browser.execute_script("return document.documentElement.dataset.ready") != "yes":
                time.sleep(0.1)
            if node:
                browser.execute_script(_SELECT, node)
                time.sleep(0.5)
            browser.save_screenshot(file)
        finally:
            browser.quit()


_SELECT = """
const node = [...Array(state.program.count).keys()].find((i) => state.program.name(i) === arguments[0]);
go(node);
"""

if __name__ == "__main__":
    main(*sys.argv[1:])
