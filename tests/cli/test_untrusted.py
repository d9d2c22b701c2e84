"""What a file holds is data: it is placed, and nothing of it runs unless its user says so."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simplace.cli import main
from simplace.commands.trust import require_trust
from simplace.errors import TargetError

ROOT = Path(__file__).resolve().parents[2]
# A model whose signature, initializer and constants write files, and print; also as a model of TensorFlow 1.
MODELS = """
import sys
from pathlib import Path
import tensorflow as tf
from tensorflow.python.trackable.resource import TrackableResource
v1, folder = tf.compat.v1, sys.argv[1]

def touch(name):
    with tf.control_dependencies([tf.print("ran", name)]):
        return tf.io.write_file(f"{folder}/written/{name}", "x")

def constant(value):  # TensorFlow would evaluate it to know a shape
    urls = [f"file://{folder}/written/constant"]
    return tf.raw_ops.DebugIdentity(input=tf.constant(value), tensor_name="t:0", debug_urls=urls)

class Lookup(TrackableResource):
    def _create_resource(self):
        return tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.float32)

    def _initialize(self):
        touch("initializer")

class Model(tf.Module):
    def __init__(self):
        entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
        self.table, self.lookup = tf.lookup.StaticHashTable(entries, 0.0), Lookup()
        self.weights = tf.Variable(tf.ones([2, 3]))
        self.lookup.resource_handle

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def serve(self, x):
        with tf.control_dependencies([touch("signature")]):
            found = tf.matmul(x, self.weights) + self.table.lookup(tf.constant("a"))
        return {"y": tf.reshape(found, constant([-1, 3]))}

model = Model()
tf.saved_model.save(model, f"{folder}/new", signatures=model.serve)
with tf.Graph().as_default() as graph:
    x = v1.placeholder(tf.float32, [None, 2], "x")
    with tf.control_dependencies([touch("signature")]):
        y = tf.reshape(tf.matmul(x, v1.get_variable("w", [2, 2])), constant([-1, 2]), name="y")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(f"{folder}/old")
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        signatures = {"serving_default": signature}
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=touch("initializer"))
        builder.save()
Path(folder, "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
"""
FILES = ("new", "old", "graph.pb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "written").mkdir()
    subprocess.run([sys.executable, "-c", MODELS, str(folder)], check=True, capture_output=True)
    shutil.rmtree(folder / "written")
    (folder / "written").mkdir()
    return folder


@pytest.fixture(scope="module")
def unconfined(tmp_path_factory):
    """Return folders to import from, the first of which has each process believe that nothing confines it."""
    folder = tmp_path_factory.mktemp("unconfined")
    (folder / "sitecustomize.py").write_text(
        "import simplace.oracle.child.confine as confine\nconfine.confine_writing = lambda folders: False\n"
    )
    return os.pathsep.join([str(folder), str(ROOT)])


@pytest.mark.tf
def test_placing_in_a_new_process_runs_nothing(folder):
    words = ["check", str(folder / "new"), "--devices", "cpu:1,gpu:1"]
    command = [sys.executable, "-m", "simplace", *words]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith("agrees with TensorFlow")) == (0, True), done.stderr
    assert "ran " not in done.stdout + done.stderr
    assert list((folder / "written").iterdir()) == []


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("devices", ["cpu:1", "cpu:1,gpu:1"])
@pytest.mark.parametrize("confined", [True, False])
def test_placing_runs_nothing(file, devices, confined, folder, unconfined, capfd, monkeypatch):
    """Not even where the system does not confine the process."""
    if not confined:
        monkeypatch.setenv("PYTHONPATH", unconfined)
    status = main(["check", str(folder / file), "--devices", devices])
    out, err = capfd.readouterr()
    assert (status, out.startswith("agrees with TensorFlow")) == (0, True), err
    assert "ran " not in out + err
    assert list((folder / "written").iterdir()) == []


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_it_is_placing_that_runs_nothing_where_the_process_is_not_confined(unconfined, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", unconfined)
    (tmp_path / "model.py").write_text(
        "from simplace.oracle.child import process\nprint('confined', process.confine_writing([]))\n"
    )
    main(["check", str(tmp_path / "model.py"), "--devices", "cpu:1"])
    assert "confined False\n" in capfd.readouterr().out


@pytest.mark.tf
@pytest.mark.parametrize("file", FILES)
def test_reading_runs_nothing(file, folder, tmp_path, capfd):
    target = str(folder / file)
    node = "MatMul" if file == "new" else "y"
    for words in (
        ["show", target],
        ["explain", target, node],
        ["diff", target, "--pin", f"{node}=CPU"],
        ["doctor", target],
        ["export", target, str(tmp_path / "out.pb")],
        ["report", target, "-o", str(tmp_path / "out.html")],
    ):
        assert main(words) in (0, 1), capfd.readouterr().err  # 1: the doctor found something
    assert "ran " not in "".join(capfd.readouterr())
    assert list((folder / "written").iterdir()) == []


@pytest.mark.tf
def test_a_process_is_confined(tmp_path):
    code = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from simplace.oracle.child.confine import confine_writing\n"
        "own, other = Path(sys.argv[1], 'own'), Path(sys.argv[1], 'other')\n"
        "own.mkdir(); other.mkdir(); (other / 'old').write_text('old')\n"
        "if not confine_writing([own]): sys.exit(77)\n"
        "(own / 'file').write_text('x'); (own / 'file').rename(own / 'new'); (own / 'new').unlink()\n"
        "Path('/dev/null').write_text('x'); assert (other / 'old').read_text() == 'old'\n"
        "def refused(act, *words):\n"
        "    try: act(*words)\n"
        "    except OSError: return\n"
        "    sys.exit(f'{act} was let through')\n"
        "refused((other / 'file').write_text, 'x'); refused((other / 'old').write_text, 'x')\n"
        "refused((other / 'old').unlink); refused((other / 'folder').mkdir)\n"
        "refused((other / 'old').rename, own / 'old')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    if done.returncode == 77:
        pytest.skip("this system has no Landlock")
    assert done.returncode == 0


@pytest.fixture
def graph(tmp_path):
    (tmp_path / "g.pb").write_bytes(b"")
    return str(tmp_path / "g.pb")


@pytest.mark.parametrize("words", [["measure"], ["check", "--schedule"], ["schedule", "--costs", "measured"]])
def test_running_a_file_needs_a_word(words, graph, capsys):
    assert main([words[0], graph, *words[1:]]) == 2
    assert capsys.readouterr().err == (
        f"simplace: {graph}: measuring runs the ops in this file, and they can read and write any of your files; "
        "if you trust it: --run-untrusted\n"
    )


@pytest.mark.parametrize(("answer", "is_yes"), [("y\n", True), ("Yes\n", True), ("\n", False), ("no\n", False)])
def test_at_a_terminal_it_asks(answer, is_yes, graph, capsys, monkeypatch):
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: answer)
    with contextlib.nullcontext() if is_yes else pytest.raises(TargetError, match="if you trust it: --run-untrusted"):
        require_trust(argparse.Namespace(target=graph, run_untrusted=False))
    said = " ".join(capsys.readouterr().err.split())  # in lines of the terminal's width
    assert said.endswith("can read and write any of your files. Run it? [y/N]")


@pytest.mark.parametrize("target", ["model.py", "model.py:step", "none.pb"])
def test_a_script_is_there_to_be_run(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").touch()
    require_trust(argparse.Namespace(target=target, run_untrusted=False))
