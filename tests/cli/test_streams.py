"""What a shell hands over may be closed, full, in another encoding or end early: one clear line, nothing left over."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simplace.cli import main
from simplace.errors import DrawingError
from simplace.views.file_mark import write_file
from tests.worlds import constant, node

ROOT = Path(__file__).resolve().parents[2]
GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("size", "Neg", "a", device="/GPU:0")])
ON_TWO = ("--devices", "cpu:1,gpu:1", "--soft")
PATIENT = 300  # seconds: the machine may be busy


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "größe.pbtxt"  # nodes have no such names
    file.write_text(GRAPH, encoding="utf-8")
    return str(file)


def shell(script, graph, **environment):
    """Run a line of shell in which $S is simplace and $G the graph."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "S": f"{sys.executable} -m simplace", "G": graph, **environment}
    return subprocess.run(["bash", "-c", script], env=own, capture_output=True, timeout=PATIENT)


@pytest.mark.parametrize("script", ["$S show $G >&-", "$S show $G 2>&-", "$S show $G <&- >&- 2>&-"])
def test_closed_streams_are_no_error(script, graph):
    done = shell(script, graph)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_keeps_its_status_where_nobody_can_read_it(graph):
    assert shell("$S show $G.none 2>&-", graph).returncode == 2


@pytest.mark.parametrize("command", ["show $G", "show $G --json -", "kernels Neg", "schedule $G --soft"])
def test_a_full_disk_is_said_in_one_line(command, graph):
    done = shell(f"$S {command} 2>&1 >/dev/full; echo $?", graph)
    words = done.stdout.decode().splitlines()
    assert words[-1] == "2"
    assert words[-2] == (
        "simplace: standard output: cannot write: No space left on device; send it somewhere with room"
    )
    assert not any("Traceback" in line or "Exception" in line for line in words)


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
def test_messages_that_cannot_be_written_change_no_status(stream, graph, tmp_path):
    for command, status in ((f"show $G -o {tmp_path}/f.dot", 0), ("show $G.none", 2)):
        done = shell(f"$S {command} {stream} >/dev/null; echo $?", graph)
        assert (done.stdout, done.stderr) == (f"{status}\n".encode(), b"")


def test_a_figure_on_a_full_disk_is_not_left_half_there(tmp_path, monkeypatch):
    def half(path, data):
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(DrawingError, match=r"f\.svg: cannot write: No space left on device"):
        write_file(tmp_path / "f.svg", b"<svg/>" * 10)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_counts_while_simplace_is_imported():
    interrupted = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(name, *rest):\n"
        "        if name == 'simplace.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder)\n"
        "from simplace.__main__ import main\n"
        "sys.exit(main())\n"
    )
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", interrupted], env=own, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"simplace: interrupted\n")


def test_a_reader_that_leaves_is_no_error(graph):
    done = shell("$S show $G --json - | true; echo ${PIPESTATUS[0]}", graph)
    assert done.stdout == b"0\n"
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_any_encoding_can_be_written(encoding, graph):
    done = shell("$S show $G --devices cpu:1,gpu:1 --soft --table", graph, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode(encoding)
    assert "CPU:0 > GPU:0" in text
    assert ("gr\\xf6\\xdfe" if encoding == "ascii" else "größe") in text
    assert "\n-----" in text


def test_json_stays_json_in_any_encoding(graph):
    done = shell("$S show $G --soft --json -", graph, PYTHONIOENCODING="ascii")
    assert [each["name"] for each in json.loads(done.stdout)["programs"]] == ["größe"]


def test_ending_it_is_quiet(graph):
    reads_for_ever = (
        "import sys, time\n"
        "from simplace.graph import graph_def\n"
        "graph_def.read_graph_file = lambda path: time.sleep(1000)\n"
        "from simplace.__main__ import main\n"
        "sys.exit(main())\n"
    )
    for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        child = subprocess.Popen(
            [sys.executable, "-c", reads_for_ever, "show", graph],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # under nohup it would be ignored
        )
        while not catches(child.pid, number):
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.05)
        child.send_signal(number)
        assert (child.wait(timeout=PATIENT), child.stderr.read()) == (status, b"")


def catches(process, number):
    """Return whether a process has a handler for a signal."""
    (mask,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), flags=re.MULTILINE)
    return int(mask, 16) >> (number - 1) & 1


def test_an_unknown_option_gets_one_line_with_what_was_meant(graph, capsys):
    for words, hint in (
        (["show", graph, "--tabel"], "unrecognized arguments: --tabel, did you mean --table? (see simplace --help)"),
        (["show", graph, "--noted"], "unrecognized arguments: --noted, did you mean --nodes? (see simplace --help)"),
        (["show", graph, "--rule", "a"], "unrecognized arguments: --rule a; --rule is an option of simplace explain"),
        (["show"], "the following arguments are required: TARGET (see simplace show --help)"),
        (["show", graph, "--nodes", "0"], "argument --nodes: '0' is not a whole number above 0"),
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        err = capsys.readouterr().err
        assert (end.value.code, err.count("\n")) == (2, 1)
        assert err.startswith("simplace: ")
        assert hint in err


def test_nothing_that_is_read_is_written_over(graph, tmp_path, capsys):
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(b"precious")
    script = tmp_path / "model.py"
    script.write_text("precious = 1")
    os.link(graph, tmp_path / "link.pbtxt")
    for words in (
        ["export", graph, graph],
        ["export", graph, str(tmp_path / "link.pbtxt")],
        ["export", str(saved), str(saved / "saved_model.pb")],
        ["show", f"{script}:step", "--json", str(script)],
        ["measure", str(script), "-o", str(script)],
        ["check", graph, "--log", str(script), "--junit", str(script)],
    ):
        assert main(words) == 2
        assert "is read by this command and would be lost; name another file" in capsys.readouterr().err
    assert Path(graph).read_text(encoding="utf-8") == GRAPH
    assert (saved / "saved_model.pb").read_bytes() == b"precious"
    assert script.read_text() == "precious = 1"
    assert main(["check", graph, "--junit", "both", "--sarif", "both"]) == 2
    assert "both: would be written twice" in capsys.readouterr().err
