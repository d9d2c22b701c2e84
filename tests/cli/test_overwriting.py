"""A file that is there is replaced only if simplace wrote it, or where `--force` says so."""

from __future__ import annotations

import os

import pytest

import simplace
from simplace.api import Diff
from simplace.changes.what_if import read_pin, suppose_changes
from simplace.cli import main
from simplace.errors import DrawingError
from simplace.views.figures import drawing
from simplace.views.file_mark import add_mark, is_own
from tests.exports import every_output, readers
from tests.report import worlds
from tests.worlds import constant, node

GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("b", "Neg", "a", device="/GPU:0")])
REFUSED = (
    "exists, and simplace did not write it; name another file, or overwrite it (--force; in Python, overwrite=True)"
)
WRITES = [
    *(["show", "-o", f"figure{kind}"] for kind in (".svg", ".png", ".pdf", ".dot")),
    ["show", "--json", "show.json"],
    ["report", "-o", "page.html"],
    *(["export", f"graph{kind}"] for kind in (".pb", ".pbtxt", ".graph.json", ".nodes.json", ".graphml")),
    *(["export", f"graph{kind}"] for kind in (".trace.json", ".report.json", ".tfevents")),
    ["schedule", "-o", "chart.svg"],
    ["schedule", "--trace", "trace.json"],
    ["schedule", "--json", "schedule.json"],
    ["diff", "--pin", "b=CPU", "--json", "diff.json"],
    ["check", "--log", "tf.log", "--junit", "junit.xml"],
    ["check", "--log", "tf.log", "--sarif", "found.sarif"],
]
LOG = (
    "a: (Const): /job:localhost/replica:0/task:0/device:CPU:0\nb: (Neg): /job:localhost/replica:0/task:0/device:GPU:0\n"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.pbtxt").write_text(GRAPH)
    (tmp_path / "tf.log").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("words", WRITES, ids=lambda words: words[-1])
def test_only_what_simplace_wrote_is_replaced(words, here, capsys):
    run = [words[0], "g.pbtxt", *words[1:], "--devices", "cpu:1,gpu:1", "--soft"]
    file = here / words[-1]
    assert main(run) == 0
    first = file.read_bytes()
    assert main(run) == 0, "its own file, again"
    for foreign in (b"precious", b"<svg>simplace</svg>", b"\0" * 200_000):
        file.write_bytes(foreign)
        capsys.readouterr()
        assert main(run) == 2
        assert capsys.readouterr().err == f"simplace: {words[-1]}: {REFUSED}\n"
        assert file.read_bytes() == foreign
    assert main([*run, "--force"]) == 0
    assert len(file.read_bytes()) == len(first)


PLACED = {
    "figure.svg": lambda result, file, **force: result.draw(file, **force),
    "chart.svg": lambda result, file, **force: result.draw(file, "timeline", **force),
    "picture.png": lambda result, file, **force: result.figure().save(file, **force),
    "page.html": lambda result, file, **force: result.report(file, **force),
    "step.svg": lambda result, file, **force: result.schedule().draw(file, **force),
    "change.svg": lambda result, file, **force: simplace.diff(result, pins={"b": "CPU"}).draw(file, **force),
}


@pytest.mark.parametrize("name", PLACED)
def test_the_library_replaces_only_what_simplace_wrote(name, here):
    result, file = simplace.place("g.pbtxt", devices="cpu:1,gpu:1", soft_placement=True), here / name
    write = PLACED[name]
    write(result, file)
    first = file.read_bytes()
    write(result, file)
    file.write_bytes(b"precious")
    with pytest.raises(DrawingError) as refused:
        write(result, file)
    assert str(refused.value) == f"{file}: {REFUSED}"
    assert file.read_bytes() == b"precious"
    write(result, file, overwrite=True)
    assert file.read_bytes() == first


def test_a_file_that_the_program_wrote_meanwhile_is_not_lost(here, capsys, monkeypatch):
    drawn = drawing.draw_picture

    def draw_late(*what):
        (here / "figure.svg").write_text("<svg/>")
        return drawn(*what)

    monkeypatch.setattr(drawing, "draw_picture", draw_late)
    assert main(["show", "g.pbtxt", "-o", "figure.svg", "--devices", "cpu:1,gpu:1", "--soft"]) == 2
    assert REFUSED in capsys.readouterr().err
    assert (here / "figure.svg").read_text() == "<svg/>"


def test_nothing_is_lost_in_an_empty_file_a_pipe_or_a_device(here):
    (here / "empty.json").touch()
    os.mkfifo(here / "pipe")
    assert [is_own(here / name) for name in ("empty.json", "pipe", "none")] == [True, True, True]
    assert is_own(here.joinpath("/dev/null"))
    (here / "loop").symlink_to("loop")
    assert not is_own(here / "loop")


def test_a_file_is_as_readable_with_its_mark_as_without():
    result = worlds.towers()
    changes = Diff(result, suppose_changes(result, [read_pin("*=GPU:1")]))
    made = every_output.outputs(result, changes, shaped=["placement", "partition", "colocation"])
    for name, data in made.items():
        if not name.endswith((".txt", "notebook.html", "diff.html", "schedule.html")):
            readers.read(name, add_mark(data))
