"""The command line on files: no TensorFlow, one clear line for whatever goes wrong."""

import json
import subprocess
import sys

import pytest

from simplace.cli import main
from tests.worlds import constant, node

GRAPH = "\n".join(
    [
        constant("a", (2, 3), device="/CPU:0"),
        node("x", "Neg", "a"),
        node("text", "AsString", "x", device="/GPU:0"),
        node("late", "Exp", "x", device="/GPU:5"),
    ]
)
CHECK = "simplace check %s asks it"


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    return str(file)


def refused(capsys, *words):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1, f"one line, got {err!r}"
    assert "Traceback" not in out + err
    return err.strip()


def test_show_summarises(graph, capsys):
    assert main(["show", graph, "--devices", "cpu:1,gpu:1", "--soft", "--tensorflow", "2.21"]) == 0
    out = capsys.readouterr().out
    assert "graph: graph, 4 nodes, soft placement on" in out
    assert "CPU:0 → GPU:0" in out
    assert "It requested /GPU:0, but AsString has no kernel there for its data types" in out
    assert "but no such device exists here; soft placement chose GPU:0 instead, see doctor/no-such-device\n" in out
    assert out.splitlines()[-1] == f"not checked against TensorFlow, only replayed by its 2.21.0 rules: {CHECK % graph}"


def test_table_lists_every_node(graph, capsys):
    assert main(["show", graph, "--soft", "--table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines if line.split()[1:2] in (["Const"], ["Neg"], ["Exp"], ["AsString"])] == [
        ["a", "Const", "/CPU:0", "CPU:0"],
        ["x", "Neg", "-", "GPU:0"],
        ["text", "AsString", "/GPU:0", "CPU:0"],
        ["late", "Exp", "/GPU:5", "GPU:0"],
    ]


def test_json_follows_its_schema(graph, capsys):
    assert main(["show", graph, "--devices", "cpu:1,gpu:2", "--soft", "--tensorflow", "2.21", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["schema"] == "simplace/placement/1"
    assert report["tensorflow"] == "2.21.0"
    assert report["devices"][0] == "/job:localhost/replica:0/task:0/device:CPU:0"
    (program,) = report["programs"]
    assert set(program) >= {
        "name", "kind", "function", "arg_devices", "soft_placement", "nodes", "copies", "agreement", "error",
    }  # fmt: skip
    assert program["kind"] == "graph"
    assert program["error"] is None
    assert [set(n) for n in program["nodes"]] == [{"name", "op", "requested", "device", "reason", "source"}] * 4
    assert {n["name"]: n["reason"]["rule"] for n in program["nodes"]} == {
        "a": "requested",
        "x": "preferred_device",
        "text": "soft_fallback",
        "late": "soft_fallback",
    }
    first = program["copies"][0]
    assert set(first) >= {"tensor", "from", "to", "dtype", "shape", "bytes", "consumers"}
    assert (first["tensor"], first["shape"], first["bytes"], first["consumers"]) == ("a:0", [2, 3], 24, ["x"])
    assert "4 nodes" in err, "with JSON on stdout the summary goes to stderr"


def test_json_of_a_refused_graph_has_the_error_and_the_nodes_so_far(graph, tmp_path):
    file = tmp_path / "out.json"
    assert main(["show", graph, "--hard", "--json", str(file)]) == 0
    (program,) = json.loads(file.read_text())["programs"]
    assert program["error"]["code"] == "INVALID_ARGUMENT"
    assert program["error"]["message"].startswith("Cannot assign a device for operation")
    assert program["error"]["node"] in ("late", "text")
    assert len(program["nodes"]) < 4


def test_explain_gives_numbered_sentences(graph, capsys):
    assert main(["explain", graph, "text", "--soft"]) == 0
    headline, *sentences, pages = capsys.readouterr().out.splitlines()
    assert headline == "text (AsString) runs on CPU:0."
    assert [line.split(".")[0].strip() for line in sentences] == [str(i) for i in range(1, len(sentences) + 1)]
    assert pages == "see reason/soft_fallback"


def test_a_figure_in_every_format(graph, tmp_path):
    starts = {"dot": b"digraph", "svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for kind, start in starts.items():
        file = tmp_path / f"figure.{kind}"
        assert main(["show", graph, "--soft", "-o", str(file)]) == 0
        assert file.read_bytes().lstrip().startswith(start) or start in file.read_bytes()[:400]


def test_check_compares_with_a_log_from_elsewhere(graph, tmp_path, capsys):
    log = tmp_path / "log.txt"
    log.write_text(
        "a: (Const): /job:localhost/replica:0/task:0/device:CPU:0\n"
        "x: (Neg)/job:localhost/replica:0/task:0/gpu:0\n"
        "text: (AsString): /job:localhost/replica:0/task:0/device:CPU:0\n"
        "late: (Exp): /job:localhost/replica:0/task:0/device:GPU:0\n"
    )
    assert main(["check", graph, "--soft", "--log", str(log)]) == 0
    assert f"agrees with the log {log}: 4/4 nodes" in capsys.readouterr().out
    log.write_text(log.read_text().replace("GPU", "CPU"))
    assert main(["check", graph, "--soft", "--log", str(log)]) == 1
    assert "late" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["show", "{missing}/no.py"], "no such file or directory"),
        (["show", ""], "'': no such file or directory"),
        (["show", "{parent}/graph"], "no such file or directory; did you mean {graph}?"),
        (["show", "{parent}/grahp.pbtxt"], "no such file or directory; did you mean {graph}?"),
        (["show", "{graph}:step"], "only a script takes ':function'; try: simplace show {graph} --program step"),
        (["show", "{graph}", "--devices", "gpu:x"], "write a type and how many there are of it, such as cpu:1,gpu:2"),
        (["show", "{graph}", "--devices", "tpu:1"], "the types are cpu, gpu"),
        (["show", "{graph}", "--devices", "cpu:0"], "TensorFlow always needs one"),
        (["show", "{graph}", "--devices", "none.toml"], "cannot read the device file"),
        (["show", "{graph}", "--visible", "7"], "the numbers are 0 to 0"),
        (["show", "{graph}", "-o", "{missing}/no/x.svg"], "there is no directory"),
        (["show", "{graph}", "-o", "x.gif"], "a figure's name ends in .svg, .png, .pdf, .dot"),
        (["show", "{graph}", "--json", "{missing}"], "is a directory; name a file"),
        (["show", "{graph}", "--kernels", "{missing}/none.toml"], "none.toml"),
        (["show", "{graph}", "--program", "other"], "no program is called 'other'"),
        (["show", "{missing}"], "saved_model.pb is missing"),
        (["explain", "{graph}", "nosuch"], "no node is called 'nosuch'"),
        (["check", "{graph}", "--log", "{missing}/log"], "cannot read the log"),
        (["check", "{graph}", "--log", "{graph}"], "no placement line in this log"),
        (["schedule", "{missing}/no.py", "--costs", "none.json"], "none.json: cannot read the costs"),
        (["schedule", "{missing}/no.py", "--gpu", "z100"], "'z100' is not a GPU"),
        (["diff", "{graph}", "{graph}", "--costs", "none.json"], "none.json: cannot read the costs"),
        (["diff", "{graph}", "{graph}", "--gpu", "z100"], "'z100' is not a GPU"),
        (["kernels", "MatMull"], "did you mean MatMul"),
        (["kernels", "MatMul", "--dtype", "float33"], "'float33' is not a TensorFlow data type"),
    ],
)
def test_bad_input_gets_one_line(words, line, graph, tmp_path, capsys):
    names = {"graph": graph, "parent": tmp_path, "missing": tmp_path / "empty"}
    filled = [word.format(**names) for word in words]
    (tmp_path / "empty").mkdir()
    assert line.format(**names) in refused(capsys, *filled)


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("truncated.pb", b"\x0a\xff\x01abc", "not a binary GraphDef"),
        ("empty.pb", b"", "empty"),
        ("broken.pbtxt", b'node { name: "a" op: ', "line"),
        ("unknown.pbtxt", b'node { name: "a" op: "NoSuchOp" }', "'NoSuchOp'"),
        ("page.pb", b"<!DOCTYPE html><html></html>", "HTML"),
        ("model.keras", b"not a zip", "model.keras"),
        ("model.h5", b"", "unknown file type"),
        ("model.ipynb", b"{}", "make one of it (jupyter nbconvert --to script"),
        (
            "dangling.pbtxt",
            b'node { name: "a" op: "Neg" input: "b" attr { key: "T" value { type: DT_FLOAT } } }',
            "'b'",
        ),
    ],
)
def test_bad_files_get_one_line(name, data, line, tmp_path, capsys):
    file = tmp_path / name
    file.write_bytes(data)
    said = refused(capsys, "show", str(file))
    assert line in said
    assert name in said


def test_help_and_files_never_load_tensorflow(graph):
    code = (
        "import sys; from simplace.cli import main\n"
        f"main(['show', {graph!r}, '--soft'])\n"
        "assert not {'tensorflow', 'keras', 'networkx'} & set(sys.modules), 'too much is imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_python_m_simplace_works():
    done = subprocess.run([sys.executable, "-m", "simplace", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("simplace 0.")
