"""Nothing that a file or an argument holds can steer the terminal; what the user's own program prints passes."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len

from simplace.cli import main
from simplace.commands import output
from simplace.errors import ProgramError
from simplace.explain.explanation import Explanation
from simplace.progress import show_progress
from simplace.views.text.summary import agreement_line, write_summary
from tests.exports.hostile import NAMES
from tests.report import worlds
from tests.report.test_hostile_outputs import outputs
from tests.worlds import constant, node

ROOT = Path(__file__).resolve().parents[2]
CLEAR = "\x1b[2J\x9b31m\u202e"  # an escape sequence, the same by one character, and text that runs backwards
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
READ_AS_TEXT = (".txt", ".html", ".svg", ".dot", ".json", ".sarif", ".xml", ".graphml", ".pbtxt")
LIBRARY = ROOT / "simplace/report/assets/vendor/dagre.min.js"  # has two of its own
PRINTS = ("print", "sys.stdout.write", "sys.stderr.write")
OWN_PROGRAM = {"oracle/native_output.py", "oracle/child/script.py"}  # what the program prints, or Python for it
WATCHES = {"watching.py"}  # in the user's own process
AT_THE_DESK = {"oracle/child/capture.py", "oracle/child/tf_private.py", "kernels/difference.py"}


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / f"graph{CLEAR}.pbtxt"
    names = (constant("a", (2, 3), device=f"/CPU:0{CLEAR}"), node(f"b{CLEAR}", "Neg", "a"))
    file.write_text("\n".join(names), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{graph}", "--soft", "--table"],
        ["show", "{graph}.none"],
        ["show", "{graph}", "--devices", "cpu:{clear}"],
        ["show", "{graph}", "--require", "{clear}"],
        ["show", "{graph}", "--program", "{clear}"],
        ["show", "{graph}", "-o", "{clear}.gif"],
        ["show", "{graph}", "--json", "no{clear}/file"],
        ["explain", "{graph}", "b{clear}", "--soft"],
        ["explain", "{graph}", "c{clear}", "--soft"],
        ["schedule", "{graph}", "--soft"],
        ["diff", "{graph}", "{graph}", "--soft"],
        ["export", "{graph}", "{folder}/{clear}.pbtxt", "--soft"],
        ["kernels", "{clear}"],
        ["--{clear}"],
        ["show", "{graph}", "--calls", "{clear}"],
    ],
)
def test_no_command_lets_it_through(words, graph, tmp_path, capsys):
    with contextlib.suppress(SystemExit):
        main([word.format(graph=graph, clear=CLEAR, folder=tmp_path) for word in words])
    out, err = capsys.readouterr()
    assert out + err
    assert STEERING.findall(out + err) == []


LAYER = "encoder/a_layer_with_a_long_name_as_users_give_them/self_attention"


@pytest.fixture
def long_names(tmp_path):
    """A graph with long names on several GPUs."""
    file = tmp_path / "graph.pbtxt"
    names = [
        constant("a", (2, 3), device="/GPU:0"),
        *(node(f"{LAYER}/query_{i}", "Neg", "a", device=f"/GPU:{i % 2}") for i in range(9)),
        node(f"{LAYER}/as_string", "AsString", f"{LAYER}/query_1", device="/GPU:1"),
    ]
    file.write_text("\n".join(names), encoding="utf-8")
    return str(file)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Return a function that runs a command as at a terminal and returns what it printed there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*words, width=80):
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setenv("COLUMNS", str(width))
            patched.setattr(sys.stdout, "isatty", lambda: True)
            main(list(words))
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{graph}"],
        ["show", "{graph}", "--table"],
        ["schedule", "{graph}", "--inter-op", "1,2"],
        ["memory", "{graph}"],
        ["doctor", "{graph}"],
        ["explain", "{graph}", "as_string"],
        ["diff", "{graph}", "--pin", "*query_3=CPU"],
        ["kernels", "Cast"],
        ["kernels", "AssignAddVariableOp"],
        ["explain", "--rule"],
        ["explain", "--rule", "colocated"],
    ],
)
@pytest.mark.parametrize("width", [80, 60])
def test_nothing_is_wider_than_the_terminal(words, width, long_names, terminal):
    on = ("--devices", "cpu:1,gpu:8", "--soft") if "{graph}" in words else ()
    told = terminal(*(word.format(graph=long_names) for word in words), *on, width=width)
    lines = re.sub("\x1b\\[[0-9;]*m", "", told).splitlines()
    assert len(lines) > 5
    assert [line for line in lines if cell_len(line) > width] == []
    headings = [before for before, line in pairwise(lines) if line.startswith("──")]
    assert [line for line in headings if "…" in line] == []


@pytest.mark.tf
@pytest.mark.parametrize("width", [80, 60])
def test_what_runs_tensorflow_is_no_wider_but_for_the_lines_of_a_patch(width, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    sample = str(ROOT / "samples/towers_on_cpu.py")
    suggested = terminal("suggest", sample, "--devices", "cpu:1,gpu:2", "--seconds", "1", width=width)
    measured = terminal("measure", str(ROOT / "samples/two_towers.py"), "--steps", "2", width=width)
    assert "…" not in measured
    lines = [line for line in (suggested + measured).splitlines() if not line.startswith(("-", "+", " ", "@"))]
    assert len(lines) > 10
    assert [line for line in lines if cell_len(line) > width] == []


@pytest.mark.parametrize("words", [["show", "--table"], ["schedule"], ["memory"]])
def test_names_are_shortened_each_to_a_text_of_its_own_and_types_never(words, long_names, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = terminal(words[0], long_names, *words[1:], "--devices", "cpu:1,gpu:8", "--soft")
    names = [line.split()[0] for line in out.splitlines() if "…" in line.split("  ")[0] and "query" in line]
    assert len(names) == len(set(names)), "two names are shortened to the same text"
    assert re.findall(r"\bAs\w*…|…\w*(?:ring|String)\b(?! )|\bN…", out) == []


def test_devices_and_findings_have_colour_at_a_terminal(long_names, terminal, monkeypatch):
    coloured = terminal("show", long_names, "--devices", "cpu:1,gpu:8", "--soft")
    assert {"\x1b[36mCPU:0", "\x1b[32mGPU:0", "\x1b[35mGPU:1", "\x1b[1;33m  ! "} <= set(
        re.findall(r"\x1b\[[\d;]+m(?:[CG]PU:[01]|  ! )", coloured)
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == terminal("show", long_names, "--devices", "cpu:1,gpu:8", "--soft")


def test_idle_gpus_share_a_line(long_names, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert (
        "  ! GPU:2 … GPU:7 are idle: no op requests them, and TensorFlow does not\n"
        "    distribute ops by itself, see doctor/idle-gpu\n"
    ) in (out := terminal("show", long_names, "--devices", "cpu:1,gpu:8", "--soft"))
    assert "GPU:2 to GPU:7    0           0 B  -\n" in out


def test_lines_stay_lines_and_an_error_is_one(capsys):
    output.print_text("one\n\ttwo\x1b[31m")
    output.report_error(ProgramError("broken\nagrees with TensorFlow", details="line 1\r\n\tline 2\x07"))
    assert capsys.readouterr() == (
        "one\n\ttwo\ufffd[31m\n",
        "line 1↵\n\tline 2\ufffd\nsimplace: broken↵agrees with TensorFlow\n",
    )


def test_no_name_can_pose_as_a_line_of_ours():
    pose = "x\nagrees with TensorFlow 2.21.0: 9/9 nodes"
    result = worlds.hostile(tuple(f"{pose}{part}" for part in ("", "/a", "/b", "/c")))
    told = [write_summary(result), agreement_line(result), str(Explanation(pose, f"{pose} runs", (pose,)))]
    assert [line for text in told for line in text.splitlines() if line.startswith("agrees")] == []


def test_a_stage_at_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_progress() as stage:
        stage(f"running {CLEAR}[link=https://example.org]here[/link] ...")
    said = capsys.readouterr().err
    assert "\x9b" not in said
    assert "\x1b[2J" not in said
    assert "[link=https://example.org]here" in said


def test_every_file_that_is_text_can_be_shown():
    names = (*NAMES, *worlds.HOSTILE, f"name{CLEAR}", "isolated\u2066", "deleted\x7f")
    found = {name: data.decode() for name, data in outputs(names).items() if name.endswith(READ_AS_TEXT)}
    found["report.html"] = found["report.html"].replace(LIBRARY.read_text(encoding="utf-8").strip(), "")
    assert {name: STEERING.findall(text)[:3] for name, text in found.items() if STEERING.search(text)} == {}


def test_one_door():
    printing = set()
    for path in (ROOT / "simplace").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in PRINTS:
                printing.add(path.relative_to(ROOT / "simplace").as_posix())
    assert printing - OWN_PROGRAM - WATCHES - AT_THE_DESK == {"commands/output.py"}


@pytest.mark.tf
def test_what_the_program_prints_passes(tmp_path, capfd):
    script = tmp_path / "coloured.py"
    script.write_text(
        "import os, tensorflow as tf\n"
        "print('\\x1b[31mred\\x1b[0m')\n"
        "os.write(1, b'\\x1b[32mgreen\\x1b[0m\\n')\n"
        "tf.function(lambda: tf.add(1, 2))()\n"
    )
    assert main(["show", str(script), "--devices", "cpu:1"]) == 0
    out = capfd.readouterr().out
    assert "\x1b[31mred\x1b[0m\n" in out
    assert "\x1b[32mgreen\x1b[0m\n" in out


@pytest.mark.parametrize("words", [(), ("show",), ("schedule",), ("diff",), ("explain",), ("check",), ("measure",)])
def test_help_is_not_wider_than_the_terminal(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert [line for line in capsys.readouterr().out.split("\n") if cell_len(line) > 80] == []
