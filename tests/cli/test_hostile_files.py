"""Arguments and files made to break a reader: one clear line each, in a process with 1 GB and 30 seconds."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from simplace.cli import main
from simplace.graph import protos
from tests.worlds import node

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


def said(capsys, *words: str) -> str:
    try:
        status = main(words)
    except SystemExit as left:  # argparse's way out
        status = left.code
    assert status == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert err.count("\n") == 1, f"one line, got {err!r}"
    assert len(err) < 2500
    return err


def limited(words: list[str], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command with 1 GB of memory, as a process may take it, and 30 seconds of processor: it takes one."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    command = [sys.executable, "-m", "simplace", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=cwd, env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=900
    )


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.pbtxt"
    file.write_text(node("a", "Placeholder"))
    return str(file)


@pytest.mark.parametrize("option", [["--kernels"], ["--json"], ["-o"], ["--devices"], ["--program"], []])
def test_a_nul_in_an_argument(option, graph, capsys):
    words = ["show", graph, *option, "a\0b.toml"] if option else ["show", "a\0b.pb"]
    assert said(capsys, *words) == "simplace: an argument contains a NUL character, which no name can have\n"


@pytest.mark.parametrize("option", [["--kernels"], ["--json"], ["-o"], ["--devices"], []])
def test_a_name_that_is_too_long(option, graph, capsys):
    for name in ("a" * 300, "a/" * 3000):
        words = ["show", graph, *option, f"{name}x.{'svg' if option == ['-o'] else 'toml'}"]
        assert "the name is too long" in said(capsys, *(words if option else ["show", f"{name}.pb"]))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("model.pb", b"", "model.pb: empty, so not a GraphDef; write it again"),
        (
            "model.pb",
            b"\x0a\xff",
            "model.pb: not a binary GraphDef: truncated, damaged, or another kind of file; write it again",
        ),
        (
            "model/saved_model.pb",
            b"\x12\xff",
            "the saved_model file in model is truncated or damaged; save the model again",
        ),
    ],
)
@pytest.mark.parametrize("command", ["show", "measure"])
def test_a_truncated_file_is_refused_before_anything_runs(
    command, name, content, why, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(content)
    trusted = ["--run-untrusted"] if command == "measure" else []
    assert said(capsys, command, name.partition("/")[0], *trusted) == f"simplace: {why}\n"


@pytest.mark.parametrize("command", ["show", "doctor"])
def test_a_target_without_a_name(command, capsys):  # as of a variable of the shell that is not set
    why = "no such file or directory; give a script, a SavedModel directory or a graph file"
    assert said(capsys, command, "") == f"simplace: '': {why}\n"


@pytest.mark.parametrize("option", [["--devices", "cpu:1"], ["--junit", "verdicts.xml"], ["--sarif", "found.sarif"]])
def test_what_is_about_a_program_needs_one(option, capsys):
    wanted = "--devices, --junit and --sarif are about a program; name a TARGET"
    assert said(capsys, "doctor", *option) == f"simplace: {wanted}\n"


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".keras", ".toml"])
def test_a_pipe_a_device_and_a_link_to_itself(suffix, graph, tmp_path, capsys):
    pipe, device, loop = (tmp_path / f"{name}{suffix}" for name in ("pipe", "device", "loop"))
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    loop.symlink_to(loop)
    for path, words in ((pipe, "named pipe"), (device, "a device"), (loop, "symbolic link")):
        options = ["show", graph, "--devices", str(path)] if suffix == ".toml" else ["show", str(path)]
        assert words in said(capsys, *options)


def test_a_pipe_in_place_of_a_saved_model_or_a_log(graph, tmp_path, capsys):
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / "model" / "saved_model.pb")
    assert "it is a named pipe" in said(capsys, "show", str(tmp_path / "model"))
    assert "it is a named pipe" in said(capsys, "check", graph, "--log", str(tmp_path / "model" / "saved_model.pb"))


def test_a_pipe_that_nobody_reads(graph, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.json")
    assert "it is a named pipe that nobody reads" in said(capsys, "show", graph, "--json", str(tmp_path / "pipe.json"))


def test_a_file_that_was_never_filled(tmp_path, capsys):
    with (tmp_path / "graph.pb").open("wb") as file:
        file.truncate(1 << 31)
    assert "not a binary GraphDef" in said(capsys, "show", str(tmp_path / "graph.pb"))


def test_a_working_directory_that_was_removed(graph, tmp_path):
    gone = tmp_path / "gone"
    code = f"import os; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); " + (
        f"from simplace.cli import main; raise SystemExit(main(['show', {graph!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the working directory cannot be used" in done.stderr


@pytest.mark.parametrize(
    ("devices", "line"),
    [
        ("99999999xworker=gpu:1", "has 99999999 tasks; a cluster has 1 to 64"),
        (f"{'9' * 5000}xworker=gpu:1", "write tasks like ps=cpu:1"),
        (f"gpu:{'9' * 5000}", "write a type and how many there are of it"),
        ("gpu:99999999", "names more than 64 devices of one type"),
        (f"/job:worker/task:{'9' * 5000}=cpu:1", "write tasks like ps=cpu:1"),
    ],
)
def test_counts_of_devices(devices, line, graph, capsys):
    assert line in said(capsys, "show", graph, "--devices", devices)


@pytest.mark.parametrize("option", ["--calls", "--nodes", "--visible"])
def test_numbers_of_thousands_of_digits(option, graph, capsys):
    assert "9" * 900 in said(capsys, "show", graph, option, "9" * 5000)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[gpu]]\nmemory = 'nan GiB'", "is not an amount of memory"),
        ("[[gpu]]\nmemory = nan", "is not an amount of memory"),
        (f"[[gpu]]\nmemory = '{'9' * 400} GiB'", "is not an amount of memory"),
        ("[[gpu]]\nmemory = '0 GiB'", "is not an amount of memory"),
        ("[[gpu]]\ncount = 64\n" * 20, "there are more than 1024 GPUs"),
        ("[[task]]\ncount = 64\n" * 9000, "there are more than 64 tasks"),
        (f"[[gpu]]\nvirtual = [{'1, ' * 60_000}]", "there are more than 1024 GPUs"),
        (f"visible = {'[' * 2000}", "nested more than 100 levels deep"),
    ],
)
def test_machine_files(text, line, graph, tmp_path, capsys):
    (tmp_path / "machine.toml").write_text(text)
    assert line in said(capsys, "show", graph, "--devices", str(tmp_path / "machine.toml"))


@pytest.mark.parametrize("value", ["nan", "inf", "'high'", "[]", "true", "1e3", "4294967296"])
def test_priorities_that_are_no_numbers(value, graph, tmp_path, capsys):
    (tmp_path / "kernels.toml").write_text(f'[[kernel]]\nop = "A"\ndevice = "GPU"\npriority = {value}')
    line = said(capsys, "show", graph, "--kernels", str(tmp_path / "kernels.toml"))
    assert "must be a whole number, such as 0" in line


def keras(path: Path, config: str) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", config)
    return str(path)


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ("1" * 5000, "config.json is not valid JSON"),
        ('{"class_name": ["Sequential"], "config": {"layers": []}}', "the model is a ['Sequential'], not a Sequential"),
        ('{"class_name": {}, "config": {"layers": []}}', "the model is a {}, not a Sequential or Functional model"),
        ('{"class_name": "Sequential", "config": 3}', "does not describe a model as Keras 3 does"),
        ('{"class_name": "Sequential", "config": {"layers": []}}', "does not describe a model as Keras 3 does"),
        ("[1]", "the model is a list, not a Sequential or Functional model"),
    ],
)
def test_keras_files(config, line, tmp_path, capsys):
    assert line in said(capsys, "show", keras(tmp_path / "model.keras", config))


def test_a_long_chain_of_layers_written_backwards(tmp_path):
    def reference(name: str) -> dict[str, object]:
        config = {"shape": [None, 2], "dtype": "float32", "keras_history": [name, 0, 0]}
        return {"class_name": "__keras_tensor__", "config": config}

    layers = [
        {
            "class_name": "Activation",
            "module": "keras.layers",
            "name": f"a{i}",
            "config": {"activation": "relu"},
            "inbound_nodes": [{"args": [reference(f"a{i - 1}" if i else "x")], "kwargs": {}}],
        }
        for i in reversed(range(5000))
    ]
    shape = {"batch_shape": [None, 2], "dtype": "float32"}
    first = {"class_name": "InputLayer", "module": "keras.layers", "name": "x", "config": shape, "inbound_nodes": []}
    ends = {"input_layers": ["x", 0, 0], "output_layers": ["a4999", 0, 0]}
    model = {"class_name": "Functional", "module": "keras", "config": {"name": "m", "layers": [*layers, first], **ends}}
    file = keras(tmp_path / "model.keras", json.dumps(model))
    done = limited(["show", file, "--tensorflow", "2.21"])
    assert (done.returncode, done.stderr) == (0, "")
    assert " 5,003 nodes" in done.stdout, "an argument, 5000 layers, an Identity and a result"


def saved_model(path: Path, **node_ids: int) -> str:
    model = protos.message_class("SavedModel")()
    meta = model.meta_graphs.add()
    meta.graph_def.library.function.add().signature.name = "f"
    root = meta.object_graph_def.nodes.add()
    root.user_object.identifier = "_generic_user_object"
    root.children.add(local_name="signatures", node_id=node_ids.get("signatures", 1))
    signatures = meta.object_graph_def.nodes.add()
    signatures.user_object.identifier = "signature_map"
    signatures.children.add(local_name="serving_default", node_id=node_ids.get("function", 2))
    meta.object_graph_def.nodes.add().bare_concrete_function.concrete_function_name = "f"
    bound = [node_ids["bound"]] if "bound" in node_ids else []
    meta.object_graph_def.concrete_functions["f"].bound_inputs.extend(bound)
    path.mkdir()
    (path / "saved_model.pb").write_bytes(model.SerializeToString())
    return str(path)


@pytest.mark.parametrize("node_id", [3, 10**8, -4])
@pytest.mark.parametrize("where", ["signatures", "function", "bound"])
def test_node_numbers_of_a_saved_model(where, node_id, tmp_path, capsys):
    line = said(capsys, "show", saved_model(tmp_path / "model", **{where: node_id}))
    assert "refers to objects that do not exist" in line or "captures an object that does not exist" in line


def test_nested_protobuf_text(tmp_path, capsys):
    opened = 'node { name: "a" op: "A" attr { key: "f" value { func { name: "g" '
    more = 'attr { key: "f" value { func { name: "g" '
    for depth in (60, 5000):
        file = tmp_path / "graph.pbtxt"
        file.write_text(opened + more * depth + "} } }" * (depth + 1) + " }")
        assert "nested more than 100 levels deep" in said(capsys, "show", str(file))


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
def test_a_loop_longer_than_python_calls_itself(executor, tmp_path, capsys):
    """What enters it on one device is copied to another in each iteration."""
    boolean = 'attr { key: "T" value { type: DT_BOOL } }'
    frame = 'attr { key: "frame_name" value { s: "f" } }'
    lines = [
        node("x", "Placeholder"),
        node("go", "Placeholder", dtype="DT_BOOL"),
        node("enter", "Enter", "x", extra=frame),
        f'node {{ name: "kept" op: "Enter" input: "go" {boolean} {frame} '
        'attr { key: "is_constant" value { b: true } } }',
        node("merge", "Merge", "enter", "next", extra='attr { key: "N" value { i: 2 } }'),
        'node { name: "cond" op: "LoopCond" input: "kept" }',
        node("switch", "Switch", "merge", "cond"),
        node("exit", "Exit", "switch"),
        node("r0", "Relu", "switch:1"),
        *[node(f"r{i}", "Relu", f"r{i - 1}") for i in range(1, 1500)],
        node("next", "NextIteration", "r1499"),
    ]
    (tmp_path / "loop.pbtxt").write_text("\n".join(lines))
    words = ["--soft", "--devices", "cpu:1,gpu:1", "--executor", executor, "--trips", "f=4"]
    assert main(["schedule", str(tmp_path / "loop.pbtxt"), *words]) == 0
    assert "Traceback" not in capsys.readouterr().err
