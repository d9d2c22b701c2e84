"""The choice of TensorFlow's version: files are placed as it would, programs only by the installed one."""

import json

import pytest

from simplace.cli import main
from tests.worlds import constant, node

# An Identity with one consumer: TensorFlow puts it where its input is since 2.17.
GRAPH = "\n".join([
    constant("a", (2,), device="/CPU:0"),
    node("in", "Neg", "a", device="/CPU:0"),
    node("late", "Identity", "in"),
    node("out", "Neg", "late", device="/CPU:0"),
])  # fmt: skip


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    return str(file)


def refusal(capsys, *words):
    assert main(words) == 2
    return capsys.readouterr().err.strip()


@pytest.mark.parametrize(("version", "device"), [("2.16", "GPU:0"), ("2.17", "CPU:0"), ("2.21.0", "CPU:0")])
def test_a_version_has_its_own_rules(graph, version, device, capsys):
    assert main(["show", graph, "--devices", "cpu:1,gpu:1", "--soft", "--tensorflow", version, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    devices = {node["name"]: node["device"].rpartition("device:")[2] for node in report["programs"][0]["nodes"]}
    assert devices == {"a": "CPU:0", "in": "CPU:0", "late": device, "out": "CPU:0"}
    assert report["tensorflow"].startswith(version)


def test_a_version_has_its_own_kernels(capsys):
    assert main(["kernels", "DecodeJxl", "--tensorflow", "2.21"]) == 0
    assert "CPU" in capsys.readouterr().out
    said = refusal(capsys, "kernels", "DecodeJxl", "--tensorflow", "2.20")
    assert said.startswith("simplace: TensorFlow 2.20.0 (captured from a Linux build with CUDA) has no op 'DecodeJxl'")


def test_the_nearest_version_is_named(capsys):
    assert main(["kernels", "MatMul", "--tensorflow", "2.18.0"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(
        "; kernel table: TensorFlow 2.18.1 (captured from a Linux build with CUDA), the nearest to 2.18.0"
    )


def test_a_version_that_is_none(graph, capsys):
    said = refusal(capsys, "show", graph, "--tensorflow", "new")
    there = "2.16.2, 2.17.1, 2.18.1, 2.19.1, 2.20.0, 2.21.0"
    assert said == f"simplace: no kernel table for TensorFlow new; there is one for {there}"


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_program_runs_under_the_installed_version(command, tmp_path, capsys):
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\n")
    said = refusal(capsys, command, str(script), "--tensorflow", "2.3")
    assert said.startswith(f"simplace: {script}: the installed TensorFlow ")
    assert " runs this, not 2.3; install that version instead" in said
