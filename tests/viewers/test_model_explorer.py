"""Model Explorer's own extension manager loads our extensions, opens a file and asks for node data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exports.test_formats import DEVICES, WORLD


@pytest.fixture
def manager() -> Any:
    found = pytest.importorskip("model_explorer.extension_manager", reason="pip install ai-edge-model-explorer")
    made = found.ExtensionManager(["simplace.viewers"])
    made.load_extensions()
    return made


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "world.pbtxt"
    path.write_text("\n".join(WORLD))
    return path


def provided(manager: Any, path: Path, devices: str) -> Any:
    asked = {"extensionId": "simplace_devices", "cmdId": "run", "modelPath": str(path), "graphId": "other"}
    return manager.run_cmd({**asked, "configValues": {"devices": devices}})


def test_the_extensions_are_listed_by_what_they_open(manager: Any) -> None:
    found = {each["id"]: each for each in manager.get_extensions_metadata() if each["id"].startswith("simplace")}
    assert {name: each["type"] for name, each in found.items()} == {
        "simplace": "adapter", "simplace_devices": "node_data_provider",
    }  # fmt: skip
    assert "pb" in found["simplace"]["fileExts"]


def test_the_adapter_opens_a_placed_graph(manager: Any, graph: Path) -> None:
    asked = {"extensionId": "simplace", "cmdId": "convert", "modelPath": str(graph), "settings": {}}
    (collection,) = manager.run_cmd(asked)["graphCollections"]
    (made,) = collection["graphs"]
    assert {each["id"] for each in made["nodes"]} == set(DEVICES)
    assert {pair["value"] for each in made["nodes"] for pair in each["attrs"] if pair["key"] == "device"} <= {
        "CPU:0", "GPU:0",
    }  # fmt: skip


def test_the_node_data_are_of_the_devices_that_are_named(manager: Any, graph: Path) -> None:
    found = provided(manager, graph, "cpu:1,gpu:2")
    assert found["error"] == ""
    values = {name: each["value"] for name, each in found["result"]["results"].items()}
    assert values == {"a": "CPU:0", "dense/mm": "GPU:1", "dense/sum": "GPU:0"}


def test_the_provider_asks_for_devices_and_says_what_is_wrong_with_them(manager: Any, graph: Path) -> None:
    editors = manager.run_cmd({"extensionId": "simplace_devices", "cmdId": "get_config_editors"})["configEditors"]
    assert [(each["id"], each["type"]) for each in editors] == [("devices", "text_input")]
    assert provided(manager, graph, "gpu:x")["error"].startswith("cannot read 'gpu:x' in the device list")
