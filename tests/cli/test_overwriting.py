"""A file that is there is replaced only if simplace wrote it, or where `--force` says so."""

from __future__ import annotations

import os

import pytest

from simplace.api import Diff
from simplace.changes.what_if import read_pin, suppose_changes
from simplace.cli import main
from simplace.views.marks import add_mark, is_own
from tests.exports import every_output, readers
from tests.report import worlds
from tests.worlds import constant, node

GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("b", "Neg", "a", device="/GPU:0")])
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
        said = f"simplace: {words[-1]}: exists, and simplace did not write it; name another file, or --force\n"
        assert capsys.readouterr().err == said
        assert file.read_bytes() == foreign
    assert main([*run, "--force"]) == 0
    assert len(file.read_bytes()) == len(first)


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
