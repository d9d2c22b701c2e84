"""What a result, a comparison and a simulated run write, draw and show, asked for from Python."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import simplace
from simplace.api import Placements, measuring
from simplace.cli import main
from simplace.errors import DrawingError, NodeNotFoundError, SimplaceError
from simplace.result import Placed, Result
from tests.worlds import constant, node, place

GRAPH = (constant("a", (2, 3), device="/CPU:0"), node("x", "Neg", "a", device="/GPU:0"), node("b>c", "Exp", "x"))
DEVICES = "cpu:1,gpu:1"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    file = tmp_path / "graph.pbtxt"
    file.write_text("\n".join(GRAPH))
    return file


@pytest.fixture
def result(graph: Path) -> Placements:
    return simplace.place(str(graph), devices=DEVICES)


@pytest.mark.parametrize(("words", "options"), [([], {}), (["--gpu", "t4", "--batch", "8"], {"gpu": "t4", "batch": 8}),
                                                (["--cpu", "m1", "--cores", "8"], {"cpu": "m1", "cores": 8}),
                                                (["--no-schedule"], {"schedule": False}),
                                                (["--no-source"], {"source": False})])  # fmt: skip
def test_the_report_is_that_of_the_command(
    graph: Path, result: Placements, tmp_path: Path, words: list[str], options: dict[str, object]
) -> None:
    ours, theirs = tmp_path / "ours.html", tmp_path / "theirs.html"
    result.report(ours, **options)  # type: ignore[arg-type]
    assert main(["report", str(graph), "--devices", DEVICES, "-o", str(theirs), *words]) == 0
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("page.pdf", {}, "a page's name ends in .html"),
        ("none/page.html", {}, "cannot write: No such file"),
        ("page.html", {"gpu": "z9"}, "z9"),
        ("page.html", {"cpu": "z80"}, "'z80' is not a CPU"),
        ("page.html", {"program": "other"}, "no program is called 'other'"),
    ],
)
def test_a_report_that_cannot_be(
    result: Placements, tmp_path: Path, name: str, options: dict[str, str], line: str
) -> None:
    with pytest.raises(SimplaceError, match=line):
        result.report(tmp_path / name, **options)  # type: ignore[arg-type]
    assert not (tmp_path / name).exists()


FIGURES = ("overview", "placement", "partition", "colocation", "timeline", "parallelism", "memory")


@pytest.mark.parametrize("figure", FIGURES)
def test_a_picture_is_what_the_file_is(result: Placements, tmp_path: Path, figure: str) -> None:
    picture = result.figure(figure, style="paper")
    result.draw(tmp_path / "f.svg", figure, style="paper")
    mark = "<!-- made by simplace -->\n"
    assert (tmp_path / "f.svg").read_text(encoding="utf-8") == picture._repr_svg_() + mark
    assert repr(picture).startswith("<picture of ")


def test_an_unknown_figure_lists_those_there_are(result: Placements) -> None:
    with pytest.raises(DrawingError, match="'pie' is not a figure of this; there are: colocation, eager, memory"):
        result.figure("pie")
    with pytest.raises(DrawingError, match="'pie' is not a figure of this; there are: memory, parallelism, timeline"):
        result.schedule().figure("pie")
    with pytest.raises(NodeNotFoundError):
        result.schedule("other")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("deep/Exp", "two"),
        ("Exp", "one"),
        ("Neg", "two"),
        ("x/mul", "'x/mul' is ambiguous in two: 2 nodes end in it; name one of a/x/mul, b/x/mul"),
        ("Nag", "no node is called 'Nag' in one, two; did you mean Neg"),
    ],
)
def test_a_node_is_looked_for_in_all_programs(name: str, found: str) -> None:
    """A whole name comes before the end of one; what is missing is told of all programs."""
    texts = {
        "one": ("Exp", "y/Neg", "z/Neg"),
        "two": ("deep/Exp", "Neg", "a/x/mul", "b/x/mul"),
    }
    placements = [
        place(*(node(each, "Neg", "c") for each in names), constant("c", ()), name=title)
        for title, names in texts.items()
    ]
    result = Result("model.py", "2.21.0", "", placements[0].devices, tuple(map(Placed, placements)))
    if " " in found:
        with pytest.raises(NodeNotFoundError, match=re.escape(found)):
            result.holding(name)
    else:
        assert result.holding(name).title == found


def test_printed_a_result_is_what_show_prints(
    graph: Path, result: Placements, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(graph), "--devices", DEVICES]) == 0
    assert str(result) == capsys.readouterr().out.rstrip("\n")
    assert repr(result) == f"<{graph} on CPU:0, GPU:0: 1 program, 3 nodes>"


def test_printed_a_simulated_run_is_what_schedule_prints(
    graph: Path, result: Placements, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", str(graph), "--devices", DEVICES, "--costs", "flat", "--inter-op", "1"]) == 0
    run = result.schedule(costs="flat", inter_op=1)
    assert str(run) == capsys.readouterr().out.rstrip("\n")
    assert repr(run) == f"<{str(run).splitlines()[0]}>"
    assert str(simplace.schedule(result.programs[0].placement, costs="flat", inter_op=1)) == str(run)
    assert run.to_json()["schema"] == "simplace/schedule/1"


def test_a_notebook_shows_a_comparison_and_a_run_with_their_figures(result: Placements) -> None:
    pinned = simplace.diff(result, pins={"x": "CPU"})
    for shown, words in (
        (result.schedule(costs="flat")._repr_html_(), ["GPU:0 compute", "critical path"]),
        (pinned._repr_html_(), ["from GPU:0", "b&gt;c"]),
    ):
        ElementTree.fromstring(shown)
        assert [word for word in ["<svg", *words] if word not in shown] == []
        assert "b>c" not in shown
    assert repr(pinned).endswith(": 1 node moved>")


def test_nothing_changed_has_no_figure(result: Placements) -> None:
    assert "<svg" not in simplace.diff(result, pins={"x": "GPU:0"})._repr_html_()


def test_a_log_of_another_tensorflow_is_compared_with(graph: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    cpu, gpu = (f"/job:localhost/replica:0/task:0/{kind}:0" for kind in ("cpu", "gpu"))
    log.write_text(f"a: (Const){cpu}\nx: (Neg){cpu}\nb>c: (Exp){gpu}\n")
    result = simplace.check(str(graph), DEVICES, log=str(log))
    agreement = result.programs[0].agreement
    assert agreement is not None
    assert ([one.node for one in agreement.differences], result.agrees) == (["x"], False)


def test_a_log_without_a_placement_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("epoch 1\n")
    with pytest.raises(SimplaceError, match="no placement line in this log"):
        simplace.check(str(tmp_path / "missing.py"), log=str(tmp_path / "train.log"))


@pytest.mark.parametrize(
    ("sizes", "line"), [({"inter_op": [1, -3]}, "inter_op must be -1"), ({"intra_op": -1}, "intra_op must be 0")]
)
def test_threads_that_cannot_be_are_refused_before_steps_run(
    graph: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, object], line: str
) -> None:
    monkeypatch.setattr(measuring, "measure_target", lambda *_: pytest.fail("steps were run"))
    with pytest.raises(SimplaceError, match=line):
        simplace.measure_steps(str(graph), **sizes)  # type: ignore[arg-type]


def test_a_diagnosis_is_what_the_doctor_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpu, cpu = "/GPU:0", "/CPU:0"
    round_trip = [node("y", "Exp", "x", device=cpu), node("z", "Neg", "y", device=gpu)]
    file = tmp_path / "graph.pbtxt"
    file.write_text("\n".join([constant("a", (512, 512), device=gpu), node("x", "Neg", "a", device=gpu), *round_trip]))
    main(["doctor", str(file), "--devices", DEVICES])
    printed = capsys.readouterr().out
    found = simplace.place(str(file), DEVICES).diagnose()
    assert found
    assert all(f"doctor/{each.rule}" in printed for each in found)


def test_a_simulated_run_is_compared_with_other_threads_and_devices(graph: Path, result: Placements) -> None:
    run = result.schedule()
    assert [each.threads.inter_op for each in run.compare_inter_op([1, 3])] == [1, 3]
    other = simplace.place(str(graph), devices="cpu:1,gpu:2").schedule()
    compared = run.compare_devices(other)
    assert (compared.before, compared.after, len(compared.trials)) == (run, other, 1)
