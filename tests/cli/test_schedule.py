"""The subcommands about time: what they print, write and refuse."""

import json
from pathlib import Path

import pytest

from simplace.cli import main
from tests.oracle import graphs


@pytest.fixture
def graph(tmp_path: Path) -> str:
    file = tmp_path / "graph.pbtxt"
    file.write_text(graphs.chain_beside_others())
    return str(file)


def test_schedule_prints_and_writes(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: str(tmp_path / f"out.{kind}") for kind in ("svg", "json", "trace")}
    words = [graph, "--devices", "cpu:1", "--inter-op", "2,1", "-o", files["svg"], "--json", files["json"]]
    assert main(["schedule", *words, "--trace", files["trace"]]) == 0
    shown = capsys.readouterr().out
    assert "critical path" in shown
    assert "inter-op  intra-op" in shown
    assert Path(files["svg"]).read_text().startswith("<?xml")
    assert json.loads(Path(files["json"]).read_text())["schema"] == "simplace/schedule/1"
    assert json.loads(Path(files["trace"]).read_text())["traceEvents"]


def test_flat_textbook_run(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [graph, "--as-placed", "--devices", "cpu:1", "--costs", "flat", "--executor", "textbook", "--inter-op", "4"]
    assert main(["schedule", *words]) == 0
    assert "14 ms on the textbook executor" in capsys.readouterr().out  # fill 1, 12 others on 4 threads 3, chain 10


def test_what_depends_on_constants_alone_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "folded.pbtxt"
    file.write_text(graphs.constant_beside_input())
    words = ["schedule", str(file), "--devices", "cpu:1", "--costs", "flat", "--inter-op", "1"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "leaves out 2 of 5 ops" in shown
    assert main([*words, "--as-placed"]) == 0
    times = [text.partition(" on ")[0] for text in (shown, capsys.readouterr().out)]
    assert times == ["folded: 1 ms", "folded: 2 ms"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trips", "while"], "cannot read --trips 'while'"),
        (["--trips", "while=3"], "no loop is called 'while' in this graph"),
        (["--branch", "if=yes"], "cannot read --branch 'if=yes'"),
    ],
)
def test_memory_takes_loops_and_branches_too(
    graph: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", graph, "--devices", "cpu:1", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--inter-op", "-3"], "inter_op must be -1"),
        (["--inter-op", "two"], "cannot read the thread counts 'two'"),
        (["--gpu", "k80"], "'k80' is not a GPU that simplace has performance data for"),
        (["--cpu", "xeon-8375d"], "'xeon-8375d' is not a CPU that simplace has performance data for: did you mean"),
        (["--cpu", "4 cores, 3 GHz"], "the CPU '4 cores, 3 GHz' lacks bit, fma, gb/s"),
        (["--batch", "0"], "batch must be a whole number above 0; got 0"),
        (["--trips", "while"], "cannot read --trips 'while'"),
        (["--trips", "while=3"], "no loop is called 'while' in this graph"),
        (["--costs", "nothing"], "nothing: cannot read the costs"),
        (["-o", "chart.txt"], "chart.txt: a figure's name ends in"),
    ],
)
def test_bad_input_gets_one_line(
    graph: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", graph, "--devices", "cpu:1", *words]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
