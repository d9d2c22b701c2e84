"""A graph of 10,000 nodes in TensorBoard and in Model Explorer themselves: few boxes at first, arguments folded."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from simplace.placement.placement import Placement
from tests.exports.test_formats import data
from tests.report.conftest import browser
from tests.worlds import node, place

__all__ = ["browser"]
LAYERS, DEPTH, READ = 25, 380, 12
SHOTS = os.environ.get("SIMPLACE_SCREENSHOTS", "")  # a folder for pictures of what was seen
PATIENCE = 300  # seconds until a viewer has drawn, on a busy machine
IN_SHADOWS = """
    const found = [], waiting = [document];
    while (waiting.length) {
      const root = waiting.pop();
      found.push(...root.querySelectorAll(arguments[0]));
      for (const each of root.querySelectorAll("*")) if (each.shadowRoot) waiting.push(each.shadowRoot);
    }
    return found.map((each) => each.textContent.trim());
"""


@pytest.fixture(scope="module")
def large() -> Placement:
    """Place 10,000 nodes: layers one after the other, and hundreds of variables outside of them."""
    index = 'attr {{ key: "index" value {{ i: {} }} }}'
    variables = [f"w{i}" for i in range(LAYERS * READ)]
    nodes = [node(name, "_Arg", dtype="DT_RESOURCE", extra=index.format(i)) for i, name in enumerate(variables)]
    nodes.append(node("x", "_Arg", extra=index.format(len(variables))))
    last = "x"
    for layer in range(LAYERS):
        device = f"/GPU:{layer % 2}"
        for i in range(DEPTH):
            name = f"layer_{layer}/step_{i}"
            if i < READ:
                nodes.append(node(f"{name}/read", "ReadVariableOp", variables[layer * READ + i], device=device))
                nodes.append(node(f"{name}/add", "AddV2", last, f"{name}/read", device=device))
            else:
                nodes.append(node(f"{name}/add", "Relu", last, device=device))
            last = f"{name}/add"
    made = place(*nodes)
    assert len(made.graph) > 10_000
    return made


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """Start a viewer and yield the address that it prints."""
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            assert running.stdout is not None
            said = ""
            for line in running.stdout:
                said += line
                if found := re.search(r"http://[^\s/]+(/\?\S+)?", line):
                    yield found[0]
                    return
            pytest.fail(said)
        finally:
            running.kill()


def wait_for(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "the viewer has not drawn"
        time.sleep(0.5)
    return found


def test_tensorboard_folds_the_variables(browser: Any, large: Placement, tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.simplace").write_bytes(data("tensorboard", large))
    with serving("tensorboard.main", "--logdir", str(tmp_path), "--port", "0") as address:
        browser.get(f"{address}/#graphs")
        names = wait_for(lambda: browser.execute_script(IN_SHADOWS, "g.node > text, g.node text.nodelabel"))
        if SHOTS:
            browser.save_screenshot(f"{SHOTS}/tensorboard.png")
    shown = set(names)
    assert {name for name in shown if not name.startswith("layer_")} == {"argumentsarguments", "variablesvariables"}


def test_model_explorer_folds_the_variables(browser: Any, large: Placement, tmp_path: Path) -> None:
    pytest.importorskip("model_explorer", reason="pip install ai-edge-model-explorer")
    (tmp_path / "large.graph.json").write_bytes(data("model-explorer", large))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = ("model_explorer", str(tmp_path / "large.graph.json"), "--no_open_in_browser", "--port", str(port))
    with serving(*words) as address:
        browser.get(address)
        text = "return document.body.innerText"
        said = wait_for(lambda: re.search(r"op node count\s+(\d+)", browser.execute_script(text)))
        if SHOTS:
            time.sleep(5)
            browser.save_screenshot(f"{SHOTS}/model_explorer.png")
    assert int(said[1]) == len(large.graph.op_ids)
