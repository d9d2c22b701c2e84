"""`--require`, `--junit` and `--sarif` on the command line."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from simplace.cli import main
from tests.worlds import constant, node

GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("dense/MatMul", "MatMul", "a", "a", device="/GPU:0")])
LOG = "".join(f"{name}: ({op}): /job:localhost/replica:0/task:0/device:{device}\n" for name, op, device in (
    ("a", "Const", "CPU:0"), ("dense/MatMul", "MatMul", "GPU:0")))  # fmt: skip


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.pbtxt").write_text(GRAPH)
    (tmp_path / "tf.log").write_text(LOG)
    return "graph.pbtxt"


def test_show_fails_where_a_requirement_is_not_met(graph, capsys):
    words = ["show", graph, "--devices", "cpu:1,gpu:2", "--require", "MatMul=gpu:1", "--require", "a=cpu"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "requirements not met" in out
    row = next(line for line in out.splitlines() if line.startswith("MatMul=gpu:1"))
    assert row.split()[1:5] == ["graph", "dense/MatMul", "(MatMul)", "GPU:0"]


def test_show_says_that_all_are_met(graph, capsys):
    assert main(["show", graph, "--require", "MatMul=gpu", "--require", "op:Const=cpu:*"]) == 0
    assert "all 2 requirements are met" in capsys.readouterr().out


def test_a_requirement_that_does_not_parse_costs_no_run(capsys):
    assert main(["show", "nothing.py", "--require", "MatMul"]) == 2
    assert "cannot read the requirement 'MatMul'" in capsys.readouterr().err


def test_check_writes_both_reports(graph, tmp_path):
    words = ["check", graph, "--log", "tf.log", "--devices", "cpu:1,gpu:2", "--require", "MatMul=cpu"]
    assert main([*words, "--junit", "junit.xml", "--sarif", "log.sarif"]) == 1
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("3", "1")
    (run,) = json.loads((tmp_path / "log.sarif").read_text())["runs"]
    assert [r["ruleId"] for r in run["results"] if r["level"] == "error"] == ["requirement-not-met"]


def test_check_passes_where_all_is_well(graph):
    assert main(["check", graph, "--log", "tf.log", "--devices", "cpu:1,gpu:2", "--require", "MatMul=gpu:0"]) == 0


def test_a_report_that_can_not_be_written_costs_no_run(graph, capsys):
    assert main(["check", graph, "--junit", "no/such/folder.xml"]) == 2
    assert "there is no directory no/such" in capsys.readouterr().err
