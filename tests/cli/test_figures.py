"""`-o`, `--figure` and `--style` of the subcommands that draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.cli import main
from tests.worlds import constant, node

GRAPH = "\n".join(
    [constant("a", (2, 3), device="/CPU:0"), node("x", "Neg", "a", device="/GPU:0"), node("y", "Exp", "x")]
)
CASES = {
    "overview": ["show", "--style", "paper"],
    "placement": ["show", "--detail"],
    "partition": ["show", "--figure", "partition", "--style", "paper"],
    "colocation": ["show", "--figure", "colocation", "--style", "dark", "--nodes", "5"],
    "memory": ["schedule", "--figure", "memory", "--style", "slide"],
    "parallelism": ["schedule", "--figure", "parallelism"],
    "changes": ["diff", "--pin", "y=CPU", "--costs", "none"],
    "side-by-side": ["diff", "--pin", "y=CPU", "--costs", "none", "--figure", "side-by-side", "--style", "slide"],
}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    return str(file)


@pytest.mark.parametrize("case", CASES)
def test_each_figure_is_written_the_same_twice(graph: str, case: str, tmp_path: Path) -> None:
    command, *rest = CASES[case]
    files = [tmp_path / f"{i}.svg" for i in range(2)]
    for file in files:
        assert main([command, graph, "--devices", "cpu:1,gpu:1", "-o", str(file), *rest]) == 0
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert b"<desc>" in first


def test_detail_is_the_figure_of_the_placement(graph: str, tmp_path: Path) -> None:
    drawn = []
    for number, words in enumerate((["--detail"], ["--figure", "placement"], ["--figure", "partition"])):
        file = tmp_path / f"{number}.dot"
        assert main(["show", graph, "--devices", "cpu:1,gpu:1", "-o", str(file), *words]) == 0
        drawn.append(file.read_text())
    assert drawn[0] == drawn[1] != drawn[2]
    assert "Split over CPU:0 and GPU:0" in drawn[0]


def test_captions_are_written_beside_a_figure_for_print(graph: str, tmp_path: Path) -> None:
    assert main(["show", graph, "--devices", "cpu:1,gpu:1", "-o", str(tmp_path / "f.pdf"), "--style", "paper"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.pdf", "f.tex", "f.txt", "graph.pbtxt"]


def test_an_unknown_figure_or_style_lists_the_choices(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--figure", "pie"], ["--style", "neon"]):
        with pytest.raises(SystemExit):
            main(["show", graph, *words])
        assert "choose from" in capsys.readouterr().err


def test_a_figure_of_eager_ops_where_none_ran(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", graph, "--figure", "eager", "-o", str(tmp_path / "f.svg")]) == 2
    said = f"simplace: {graph}: no eager op ran, so there are none to draw; choose another figure\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "f.svg").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "--detail"], "--detail"),
        (["show", "--nodes", "5", "--style", "paper"], "--nodes and --style"),
        (["schedule", "--figure", "memory"], "--figure"),
        (["memory", "--style", "slide"], "--style"),
        (["diff", "--pin", "y=CPU", "--detail"], "--detail"),
    ],
)
def test_options_of_figures_without_a_figure_are_an_error(
    graph: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], graph, *words[1:]]) == 2
    told = f"simplace: {said}: nothing is drawn without -o; add -o FILE, such as -o figure.svg\n"
    assert capsys.readouterr() == ("", told)
