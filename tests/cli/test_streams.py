"""What a shell hands over may be closed, full, in another encoding or end early: one clear line, nothing left over."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simplace.cli import main
from tests.worlds import constant, node

ROOT = Path(__file__).resolve().parents[2]
GRAPH = "\n".join([constant("a", (2, 3), device="/CPU:0"), node("größe", "Neg", "a", device="/GPU:0")])
ON_TWO = ("--devices", "cpu:1,gpu:1", "--soft")


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH, encoding="utf-8")
    return str(file)


def shell(script, graph, **environment):
    """Run a line of shell in which $S is simplace and $G the graph."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "S": f"{sys.executable} -m simplace", "G": graph, **environment}
    return subprocess.run(["bash", "-c", script], env=own, capture_output=True, timeout=120)


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
    assert [each["name"] for each in json.loads(done.stdout)["programs"][0]["nodes"]] == ["a", "größe"]


def test_ending_it_is_quiet(tmp_path):
    fifo = tmp_path / "slow.pbtxt"
    os.mkfifo(fifo)  # a reader of it waits for ever
    for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        command = [sys.executable, "-m", "simplace", "show", str(fifo)]
        child = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # under nohup it would be ignored
        )
        time.sleep(3)
        assert child.poll() is None
        child.send_signal(number)
        assert (child.wait(timeout=30), child.stderr.read()) == (status, b"")


def test_an_unknown_option_gets_one_line_with_the_closest(graph, capsys):
    for words, hint in (
        (["show", graph, "--tabel"], "unrecognized arguments: --tabel, did you mean --table? (see simplace --help)"),
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
    assert "both: is to be written twice" in capsys.readouterr().err
