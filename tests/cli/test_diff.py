"""`simplace diff`: text, JSON and status; a script runs again under other devices."""

import json

import pytest

import simplace
from simplace.cli import main
from tests.worlds import constant, node

GRAPH = "\n".join(
    [constant("a", (2, 3), device="/CPU:0"), node("x", "Neg", "a", device="/GPU:1"), node("y", "Exp", "x")]
)
SCRIPT = """
import tensorflow as tf

@tf.function
def step(x):
    with tf.device("/GPU:1"):
        y = tf.exp(x)
    return tf.negative(y)

step(tf.ones([2, 2]))
"""


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    return str(file)


def test_another_machine(graph, capsys):
    words = ["diff", graph, "--soft", "--devices", "cpu:1,gpu:2", "--versus-devices", "cpu:1,gpu:1"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "graph: 1 of 3 nodes moved" in out
    assert "x (Neg): GPU:1 → GPU:0, because GPU:1 no longer exists" in out
    assert "a simulated step takes" in out
    assert main([*words, "--exit-code"]) == 1


def test_nothing_moved_is_status_0(graph, capsys):
    words = ["diff", graph, "--soft", "--devices", "cpu:1,gpu:2", "--versus-devices", "cpu:1,gpu:3", "--exit-code"]
    assert main(words) == 0
    assert "graph: none of 3 nodes moved" in capsys.readouterr().out


def test_two_files(graph, tmp_path, capsys):
    other = tmp_path / "other.pbtxt"
    other.write_text(GRAPH.replace("/GPU:1", "/CPU:0"))
    assert main(["diff", graph, str(other), "--devices", "cpu:1,gpu:2"]) == 0
    assert "x (Neg): GPU:1 → CPU:0, because it requests /CPU:0 instead of /GPU:1" in capsys.readouterr().out


def test_soft_placement_off_is_refused_after(graph, capsys):
    assert main(["diff", graph, "--devices", "cpu:1,gpu:1", "--soft", "--versus-hard"]) == 0
    assert "after: TensorFlow does not place this graph (INVALID_ARGUMENT)" in capsys.readouterr().out


def test_json_on_standard_output(graph, capsys):
    words = ["diff", graph, "--devices", "cpu:1,gpu:2", "--pin", "y=CPU", "--costs", "none", "--json", "-"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    written = json.loads(out)
    assert [move["name"] for move in written["programs"][0]["moves"]] == ["y"]
    assert "assuming that y requests /device:CPU:*" in err


def test_nothing_to_compare_with(graph, capsys):
    assert main(["diff", graph]) == 2
    assert "nothing to compare with: name a second target" in capsys.readouterr().err


@pytest.mark.tf
def test_a_script_runs_under_both_machines(tmp_path, forked):
    file = tmp_path / "model.py"
    file.write_text(SCRIPT)
    one, two = (simplace.place(str(file), devices=devices) for devices in ("cpu:1,gpu:1", "cpu:1,gpu:2"))
    changes = simplace.diff(one, two)
    assert [(move.name, move.target[-5:]) for move in changes.programs[0].moves] == [("Exp", "GPU:1")]
    assert one.agrees
    assert two.agrees
    pinned = simplace.diff(two, pins={"Exp": "GPU:0"})
    assert [(m.name, m.target) for m in pinned.programs[0].moves] == [("Exp", changes.programs[0].moves[0].source)]
    assert "Exp requests /device:GPU:0" in str(pinned)
    assert pinned.to_json()["after"]["checked"] is False
