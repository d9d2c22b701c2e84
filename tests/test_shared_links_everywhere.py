"""Every simulated step of a target has the shared links of its machine file."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.api.judged_step import judge_step
from simplace.cli import main

NODE = """
node {{ name: "{name}" op: "{op}" device: "{device}" {inputs}
  attr {{ key: "{key}" value {{ type: DT_FLOAT }} }} {shape} }}
"""
SHAPE = 'attr { key: "shape" value { shape { dim { size: 4096 } dim { size: 1024 } } } }'
MACHINE = """
[[gpu]]
count = 2

[[shared_link]]
name = "switch"
gpus = [0, 1]
"""
BYTES = 4 * 4096 * 1024  # a PCIe 4.0 x16 moves 31.5 in a nanosecond
SLOWED = "its 2 copies took 2.0 times as long as without it"


@pytest.fixture
def target(tmp_path: Path) -> list[str]:
    """Write a graph whose two GPUs read 16 MiB of the host at once, and a machine where they share a switch."""
    text = NODE.format(name="x", op="Placeholder", device="/cpu:0", inputs="", key="dtype", shape=SHAPE)
    for i in range(2):
        text += NODE.format(name=f"y{i}", op="Neg", device=f"/gpu:{i}", inputs='input: "x"', key="T", shape="")
    (tmp_path / "graph.pbtxt").write_text(text + "versions { producer: 1286 }")
    (tmp_path / "machine.toml").write_text(MACHINE)
    return [str(tmp_path / "graph.pbtxt"), str(tmp_path / "machine.toml")]


def test_library(target: list[str], tmp_path: Path) -> None:
    shared, alone = simplace.place(target[0], target[1]), simplace.place(target[0], "gpu:2")
    step, unshared = shared.schedule(), alone.schedule()
    assert SLOWED in str(step)
    # the second copy starts a bit later than the first
    assert 0 <= BYTES / 31.5 - (step.trace.makespan - unshared.trace.makespan) < 1000
    assert shared.memory().schedule.trace.makespan == step.trace.makespan
    (times,) = simplace.diff(alone, shared).step_times()
    assert (times.before, times.after) == (unshared.trace.makespan, step.trace.makespan)
    assert "on its own link: shares switch" in judge_step(shared)
    assert "shares" not in judge_step(alone)
    shared.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert SLOWED in page
    assert "on its own link: shares switch with copies of GPU:1" in page


def test_commands(target: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    graph, machine = target
    assert main(["schedule", graph, "--devices", machine]) == 0
    assert SLOWED in capsys.readouterr().out
    assert main(["schedule", graph, "--devices", machine, "--compare-devices", "gpu:2"]) == 0
    assert "GPU:0, GPU:1" in capsys.readouterr().out
