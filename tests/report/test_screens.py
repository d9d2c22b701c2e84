"""Small screenshots of the page beside those in tests/report/screens, which `--rewrite-golden` writes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from simplace.report.page import write_page
from tests.report import worlds
from tests.report.conftest import Opened, Opener
from tests.views import graphs

SCREENS = Path(__file__).parent / "screens"
TOLERATED = 0.02  # of the pixels: fonts differ a little from machine to machine
ACTS = {
    "overview": "",
    "node": "go(state.program.find('model/dense_7/MatMul'))",
    "copies": "openTab('copies')",
    "schedule": "openTab('schedule')",
    "dark": "turnTheme()",
}
SHRINK = """
  const [url, done] = arguments;
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 240, height: 150 });
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    done(canvas.toDataURL("image/png"));
  };
  image.src = url;
"""
# The share of pixels of which a channel differs by more than a sixth.
COMPARE = """
  const [one, other, done] = arguments;
  const pixels = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height).data;
  };
  Promise.all([pixels(one), pixels(other)]).then(([a, b]) => {
    if (a.length !== b.length) { done(1); return; }
    let differing = 0;
    for (let i = 0; i < a.length; i += 4) {
      differing += Number([0, 1, 2].some((channel) => Math.abs(a[i + channel] - b[i + channel]) > 42));
    }
    done(differing / (a.length / 4));
  });
"""


def take_screen(page: Opened) -> str:
    """Return what the page shows as the URL of a small picture; the page is left."""
    shot = page.browser.get_screenshot_as_base64()
    page.browser.get("about:blank")
    return str(page.browser.execute_async_script(SHRINK, f"data:image/png;base64,{shot}"))


def difference(browser: Any, one: str, other: str) -> float:
    return float(browser.execute_async_script(COMPARE, one, other))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("screens") / "report.html"
    path.write_text(write_page(worlds.result(graphs.training_step(30))), encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize("name", ACTS)
def test_the_page_looks_as_it_did(opened: Opener, file: Path, name: str, request: pytest.FixtureRequest) -> None:
    page = opened.open_file(file)
    page.run(ACTS[name])
    page.wait_until_idle()
    page.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    screen, golden = take_screen(page), SCREENS / f"{name}.png"
    if request.config.getoption("--rewrite-golden"):
        golden.write_bytes(base64.b64decode(screen.partition(",")[2]))
    known = f"data:image/png;base64,{base64.b64encode(golden.read_bytes()).decode()}"
    assert difference(page.browser, screen, known) <= TOLERATED, f"tests/report/screens/{name}.png"


def test_another_screen_is_told_apart(browser: Any) -> None:
    browser.get("about:blank")
    urls = {name: base64.b64encode((SCREENS / f"{name}.png").read_bytes()).decode() for name in ACTS}
    found = {
        name: difference(browser, f"data:image/png;base64,{urls['overview']}", f"data:image/png;base64,{url}")
        for name, url in urls.items()
    }
    assert {name for name, share in found.items() if share <= 2 * TOLERATED} == {"overview"}
