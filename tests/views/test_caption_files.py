"""The caption of a figure for print, beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simplace.result import Placed
from simplace.views.figures.caption_files import write_captions
from simplace.views.figures.drawing import Picture, fit_boxes
from simplace.views.figures.overview_figure import overview_figure
from tests.views import graphs
from viz import STYLES, Edge, Figure, Group, Node, measure_empty


def test_a_figure_for_print_has_its_caption_as_text_and_for_latex(tmp_path: Path) -> None:
    Picture(overview_figure(Placed(graphs.towers(2))), "paper").save(tmp_path / "a_b.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a_b.svg", "a_b.tex", "a_b.txt"]
    text, latex = ((tmp_path / f"a_b{ending}").read_text() for ending in (".txt", ".tex"))
    assert text.startswith("The same ops on 2 GPUs: 6 copies, ≥ 1 KiB per step. Placement of the graph world")
    assert latex.startswith("\\caption[The same ops on 2 GPUs: 6 copies, $\\geq$ 1 KiB per step]{")
    drawing = re.sub(r"<(title|desc|metadata).*?</\1>", "", (tmp_path / "a_b.svg").read_text(), flags=re.DOTALL)
    assert "GPU:1" in drawing
    assert not any(words in drawing for words in ("6 copies", "TensorFlow", "not drawn"))


def test_another_style_has_no_caption_beside_it(tmp_path: Path) -> None:
    Picture(overview_figure(Placed(graphs.towers(2)))).save(tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_signs_that_latex_reads_are_escaped(tmp_path: Path) -> None:
    write_captions("a_b & 50 %", "", "x \u00b7 y", tmp_path / "f.svg")
    assert (tmp_path / "f.tex").read_text().startswith(r"\caption[a\_b \& 50 \%]{a\_b \& 50 \%. Shown: x; y.}")


def test_a_caption_says_nothing_twice(tmp_path: Path) -> None:
    said = "Simulated schedule of f: 5 nodes. f: 13 µs; GPU:0 idle; 2 cores; sends 1 copy."
    write_captions("f: 13 µs; GPU:0 idle", said, "2 cores\nsends 1 copy", tmp_path / "chart.svg")
    assert (tmp_path / "chart.txt").read_text().splitlines()[0] == (
        "f: 13 µs; GPU:0 idle. Simulated schedule of f: 5 nodes. Shown: 2 cores; sends 1 copy."
    )
    agrees = "Placement of f: 5 nodes. TensorFlow's log agrees (TensorFlow 2.21: 5/5 nodes)."
    write_captions("All on GPU:0", agrees, "f · 5 nodes in 2 boxes · TensorFlow agrees: 5/5 nodes", tmp_path / "f.svg")
    assert (tmp_path / "f.txt").read_text().splitlines()[0] == f"All on GPU:0. {agrees} Shown: 5 nodes in 2 boxes."


def test_only_captions_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("notes of mine")
    for title in ("one", "two"):
        written = write_captions(title, "", "", tmp_path / "f.svg")
        assert [path.name for path in written] == ["f.tex"]
    assert (tmp_path / "f.txt").read_text() == "notes of mine"
    assert "two" in (tmp_path / "f.tex").read_text()


@pytest.mark.parametrize(("style", "most"), [("screen", 40), ("paper", 24)])
def test_a_page_has_as_many_boxes_as_can_be_read(style: str, most: int) -> None:
    placed = Placed(graphs.towers(2, layers=12))
    figure = fit_boxes(lambda limit: overview_figure(placed, limit), style, most)
    assert 3 <= len(figure.nodes) <= most


def test_a_page_that_is_too_empty_has_fewer_boxes_but_half_of_them_at_least() -> None:
    def line_up(boxes: int) -> Figure:
        """Return a row of devices that each have one box, whose copies leave the more empty the more there are."""
        groups = tuple(Group(str(i), f"GPU:{i}", "1 op", "GPU", i) for i in range(boxes))
        copies = [Edge(str(i), str(j), "copy", "float32 [64] · 256 B") for i in range(boxes) for j in range(i)]
        nodes = tuple(Node(str(i), "Neg", group=str(i)) for i in range(boxes))
        return Figure("copies", groups=groups, nodes=nodes, edges=tuple(copies), arrangement="rows")

    empty = {boxes: measure_empty(line_up(boxes), STYLES["slide"]) for boxes in (5, 4, 3, 2, 1)}
    assert min(empty, key=lambda boxes: empty[boxes]) == 1
    assert all(share > 0.34 for boxes, share in empty.items() if boxes > 1)
    best = min((3, 4, 5), key=lambda boxes: empty[boxes])  # half of five at least
    assert len(fit_boxes(line_up, "slide", 5).nodes) == best
    assert len(fit_boxes(line_up, "slide", 2).nodes) == 1
