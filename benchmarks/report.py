"""Measure the HTML page of a large graph: its making, its size, how long opening, searching and panning take.

Run `python -m benchmarks.report` in the repository; it needs chromium and chromedriver, and TensorFlow for the graph of
kind mixed.
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
from benchmarks.random_graphs import KINDS, random_graph
from benchmarks.report_peers import OBSERVE_TASKS, print_peers
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
    parser.add_argument("--kinds", nargs="+", default=("mixed",), choices=("mixed", *KINDS), help="of each size")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often each page is opened")
    what = (
        "instead: open one graph in simplace's page, Model Explorer, TensorBoard and Netron; screenshots go to FOLDER"
    )
    parser.add_argument("--peers", metavar="FOLDER", type=Path, help=what)
    options = parser.parse_args(arguments)
    if options.peers:
        print_peers(options.peers.resolve())
        return
    rows = [_row(kind, size, options.repeats) for size in options.sizes for kind in options.kinds]
    print(to_text(Table(_COLUMNS, tuple(rows))))


_TITLES = (
    "graph", "nodes", "written in", "MB", "opens in", "processor", "opens scope in", "searches in", "regroups in",
    "longest task",
)  # fmt: skip
_COLUMNS = tuple(Column(title, "left" if title == "graph" else "right") for title in _TITLES)


def _row(kind: str, size: int, repeats: int) -> tuple[str, ...]:
    """Return a row; the seconds of writing are those of the processor, as is the column so called."""
    result = _placed(kind, size)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.html")
        began = time.process_time()
        text = write_page(result)
        seconds = time.process_time() - began
        file.write_text(text, encoding="utf-8")
        rounds = [_open_page(file, Path(folder, str(i))) for i in range(repeats)]
    times = [f"{median(values):.0f} ms" for values in zip(*rounds, strict=True)]
    nodes = len(result.programs[0].placement.decisions)
    return (kind, f"{nodes:,}", f"{seconds:.1f} s", f"{len(text) / 1e6:.1f}", *times)


def _placed(kind: str, size: int) -> Result:
    data = mixed_graph(size) if kind == "mixed" else random_graph(kind, size)
    devices, table = local_devices([("CPU", 1), ("GPU", 2)]), KernelTable.shipped()
    program = Program("benchmark", "graph", graph_def.parse_graph_def(data), soft_placement=True)
    return Result("benchmark.pb", table.version, table.name, devices, (Placed(place_program(program, devices, table)),))


def _open_page(file: Path, profile: Path) -> tuple[float, ...]:
    """Open a page in a fresh browser; return milliseconds in the order of the columns."""
    browser = start(profile)
    try:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OBSERVE_TASKS})
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
const drawn = () => new Promise((resolve) => doAfterwards(() => requestAnimationFrame(resolve)));
const timed = async (act) => {
  const start = performance.now();
  act();
  await drawn();
  return performance.now() - start;
};
const where = (x) => ({ clientX: x, clientY: 500, button: 0, pointerId: 1 });
const at = (type, x) => graph.svg.dispatchEvent(new PointerEvent(type, where(x)));
const measure = async () => {
  const scope = graph.visibleItems.find((item) => graph.tree.isScope(item) && !graph.open.has(item));
  const opening = await timed(() => graph.toggle(scope));
  byId("search").value = "matmul gpu";
  const searching = await timed(() => byId("search").dispatchEvent(new Event("input")));
  const grouping = await timed(() => { choose("grouping", "scope"); showGraph(); });
  graph.svg.setPointerCapture = () => {};
  at("pointerdown", 600);
  for (let frame = 1; frame < 60; frame += 1) { at("pointermove", 600 + frame * 7); await drawn(); }
  at("pointerup", 600);
  setTimeout(() => done([ready, opening, searching, grouping, Math.max(0, ...window.longTasks)]), 300);
};
measure();
"""

if __name__ == "__main__":
    main()
