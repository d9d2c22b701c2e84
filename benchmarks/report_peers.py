"""Open one placed graph in simplace's page, Model Explorer, TensorBoard and Netron, and measure what each takes.

`python -m benchmarks.report --peers` runs it. All viewers get files that simplace wrote, in a fresh browser each. A
page has settled when the browser's processes, workers included, have used next to no processor for some seconds: that
can be said of any page, whatever it draws.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from benchmarks.mixed_graph import mixed_graph
from simplace.cli import main as run_simplace
from tests.report.chromium import start
from viz import Column, Table, to_text

NODES, LIMIT = 10_000, 180.0
_DEVICES = ("--devices", "cpu:1,gpu:2", "--soft")
_QUIET, _IDLE = 4.0, 0.10  # seconds, and the share of one processor that counts as next to none
_PORT = 8790
_TICK = os.sysconf("SC_CLK_TCK")
OBSERVE_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((task) => task.duration)))
  .observe({ type: "longtask", buffered: true });
"""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Record of a viewer: the package it needs, what simplace writes for it, its server and its address."""

    name: str
    package: str
    write: Callable[[str, Path], Path]
    serve: Callable[[Path, int], list[str]]
    address: Callable[[Path, int], str]


def _write_report(graph: str, folder: Path) -> Path:
    return _run(["report", graph, *_DEVICES, "-o", str(folder / "report.html")], folder / "report.html")


def _writer(name: str, form: str) -> Callable[[str, Path], Path]:
    def write(graph: str, folder: Path) -> Path:
        file = folder / name
        return _run(["export", graph, str(file), "--format", form, *_DEVICES], file)

    return write


def _run(words: list[str], file: Path) -> Path:
    with contextlib.redirect_stdout(sys.stderr):
        assert run_simplace(words) == 0, words
    return file


VIEWERS = (
    Viewer("simplace", "simplace", _write_report, lambda _file, _port: [], lambda file, _port: file.as_uri()),
    Viewer("Model Explorer", "model_explorer", _writer("placed.graph.json", "model-explorer"),
           lambda file, port: ["-m", "model_explorer", str(file), "--no_open_in_browser", "--port", str(port)],
           lambda file, port: f"http://localhost:{port}/?data="
           + quote(json.dumps({"models": [{"url": str(file)}]}))),
    Viewer("TensorBoard", "tensorboard", _writer("logs", "tensorboard"),
           lambda file, port: ["-m", "tensorboard.main", "--logdir", str(file), "--port", str(port)],
           lambda _file, port: f"http://localhost:{port}/#graphs"),
    Viewer("Netron", "netron", _writer("placed.pb", "graph-def"),
           lambda file, port: ["-c", "import netron, sys, time; netron.start(sys.argv[1], int(sys.argv[2]), False); "
                               "time.sleep(9999)", str(file), str(port)],
           lambda _file, port: f"http://localhost:{port}/"),
)  # fmt: skip


def print_peers(folder: Path, nodes: int = NODES) -> None:
    """Open the graph once in each viewer that is installed, and print a table; files and screenshots stay in folder."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = folder / "graph.pb"
    graph.write_bytes(mixed_graph(nodes))
    rows = []
    for number, viewer in enumerate(VIEWERS):
        if find_spec(viewer.package) is None:
            rows.append((viewer.name, "not installed", "", "", ""))
            continue
        file = viewer.write(str(graph), folder)
        with _served(viewer.serve(file, _PORT + number), _PORT + number):
            rows.append((viewer.name, *_open(viewer.address(file, _PORT + number), folder / f"{viewer.package}")))
    titles = ("viewer", "settles after", "processor", "longest task", "heap")
    columns = tuple(Column(title, "left" if title == "viewer" else "right") for title in titles)
    print(to_text(Table(columns, tuple(rows))))


@contextlib.contextmanager
def _served(words: list[str], port: int) -> Iterator[None]:
    """Run a viewer's server until its page has been measured."""
    if not words:
        yield
        return
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None, f"{words} ended"
            assert time.monotonic() < deadline, f"{words} does not answer"
            time.sleep(0.2)
        yield
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _open(address: str, at: Path) -> tuple[str, str, str, str]:
    """Open a page in a fresh browser; return when it settled, processor time, longest task and heap."""
    from selenium.common.exceptions import WebDriverException

    browser = start(at.with_suffix(".profile"))
    try:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OBSERVE_TASKS})
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["https://*"]})  # nothing is reported to anybody
        if address.startswith("http:"):  # Netron's question about cookies counts as answered
            browser.execute_cdp_cmd("Network.setCookie", {"name": "consent", "value": "1", "url": address})
        driver = browser.service.process.pid
        before = _processor_seconds(driver)
        began = time.monotonic()
        browser.execute_cdp_cmd("Page.navigate", {"url": address})  # does not wait for the page
        settled = _wait_until_quiet(driver, began)
        took = _processor_seconds(driver) - before
        if settled >= LIMIT:  # a page that is still busy answers no question
            return (f"not in {LIMIT:.0f} s", f"{took:.1f} s", "", "")
        browser.save_screenshot(str(at.with_suffix(".png")))
        longest = max(browser.execute_script("return window.longTasks || []"), default=0.0)
        heap = browser.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
    except WebDriverException as error:
        return ("fails", (error.msg or "").splitlines()[0][:40], "", "")
    else:
        return (f"{settled:.1f} s", f"{took:.1f} s", f"{longest / 1000:.2f} s", f"{heap / 1e6:.0f} MB")
    finally:
        browser.quit()


def _wait_until_quiet(driver: int, began: float) -> float:
    """Return the seconds until the browser was busy for the last time."""
    last, used = time.monotonic(), _processor_seconds(driver)
    looked = last
    while time.monotonic() - last < _QUIET and time.monotonic() - began < LIMIT:
        time.sleep(0.25)
        now, seconds = time.monotonic(), _processor_seconds(driver)
        if seconds - used > _IDLE * (now - looked):
            last = now
        looked, used = now, seconds
    return last - began if time.monotonic() - began < LIMIT else LIMIT


def _processor_seconds(driver: int) -> float:
    """Return the processor time of a process and of all that it has started, those that have ended among them."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    family = {driver}
    grown = True
    while grown:
        more = {one for one, (parent, _) in parents.items() if parent in family} - family
        grown = bool(more)
        family |= more
    return sum(parents[one][1] for one in family if one in parents) / _TICK
