"""Measure the HTML page of a large graph: its making, its size, how long it takes to open, to open a scope, to pan.

Run `python -m benchmarks.report` in the repository; it needs TensorFlow (for the graph), chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.mixed_graph import mixed_graph
from benchmarks.report_peers import print_peers
from simplace.devices.device_set import local_devices
from simplace.graph import graph_def
from simplace.kernels.registry import KernelTable
from simplace.pipeline import place_program
from simplace.program.program import Program
from simplace.report.page import write_page
from simplace.result import Placed, Result
from tests.report.chromium import start
from viz import Column, Table, to_text

SIZES = (5_000, 50_000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page of each graph, open it some times, print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="nodes of each graph")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often each page is opened")
    what = (
        "instead: open one graph in simplace's page, Model Explorer, TensorBoard and Netron; screenshots go to FOLDER"
    )
    parser.add_argument("--peers", metavar="FOLDER", type=Path, help=what)
    options = parser.parse_args(arguments)
    if options.peers:
        print_peers(options.peers.resolve())
        return
    rows = [_row(size, options.repeats) for size in options.sizes]
    print(to_text(Table(_COLUMNS, tuple(rows))))


_TITLES = ("nodes", "written in", "MB", "opens in", "processor", "scope opens in", "search", "longest frame")
_COLUMNS = tuple(Column(title, "right") for title in _TITLES)


def _row(size: int, repeats: int) -> tuple[str, ...]:
    result = _placed(size)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.html")
        began = time.perf_counter()
        text = write_page(result)
        seconds = time.perf_counter() - began
        file.write_text(text, encoding="utf-8")
        rounds = [_opened(file, Path(folder, str(i))) for i in range(repeats)]
    times = [f"{median(values):.0f} ms" for values in zip(*rounds, strict=True)]
    nodes = len(result.programs[0].placement.decisions)
    return (f"{nodes:,}", f"{seconds:.1f} s", f"{len(text) / 1e6:.1f}", *times)


def _placed(size: int) -> Result:
    devices, table = local_devices([("CPU", 1), ("GPU", 2)]), KernelTable.shipped()
    program = Program("benchmark", "graph", graph_def.parse_graph_def(mixed_graph(size)), soft_placement=True)
    return Result("benchmark.pb", table.version, table.name, devices, (Placed(place_program(program, devices, table)),))


def _opened(file: Path, profile: Path) -> tuple[float, ...]:
    """Open a page in a fresh browser; return milliseconds in the order of the columns."""
    browser = start(profile)
    try:
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        browser.get(file.as_uri())
        deadline = time.monotonic() + 60
        while browser.execute_script("return document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < deadline, "the page gets ready within a minute"
            time.sleep(0.05)
        processor = _processor_ms(browser)
        ready, *others = browser.execute_async_script(_MEASURE)
        return (ready, processor, *others)
    finally:
        browser.quit()


def _processor_ms(browser: Any) -> float:
    """Return what the page's main thread has taken of a processor so far: it tells more than time on a busy machine."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration") * 1000


# A mark's time counts from the start of the navigation.
_MEASURE = """
const done = arguments[0];
const ready = performance.getEntriesByName("simplace-ready")[0].startTime;
const timed = (act) => { const start = performance.now(); act(); return performance.now() - start; };
const scope = graph.visibleItems.find((item) => graph.tree.isScope(item) && !graph.open.has(item));
const opening = timed(() => { graph.toggle(scope); graph.svg.getBoundingClientRect(); });
const searching = timed(() => doAtOnce(search.matches("matmul gpu")));
const where = (x) => ({ clientX: x, clientY: 500, button: 0, pointerId: 1 });
const at = (type, x) => graph.svg.dispatchEvent(new PointerEvent(type, where(x)));
graph.svg.setPointerCapture = () => {};
at("pointerdown", 600);
let [frames, last, longest] = [0, performance.now(), 0];
const pan = (now) => {
  if (frames) longest = Math.max(longest, now - last);
  last = now;
  frames += 1;
  at("pointermove", 600 + frames * 7);
  if (frames < 60) requestAnimationFrame(pan);
  else { at("pointerup", 600); done([ready, opening, searching, longest]); }
};
requestAnimationFrame(pan);
"""

if __name__ == "__main__":
    main()
