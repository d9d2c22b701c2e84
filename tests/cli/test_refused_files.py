"""A file that TensorFlow does not import is refused with TensorFlow's reason, by `show` as by `check`."""

from __future__ import annotations

import pytest

from simplace.cli import main
from simplace.graph import protos
from tests.worlds import node

MISFIT = """
node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "b" op: "MatMul" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"""
DIMENSIONS = "Dimensions must be equal, but are 3 and 2 for "


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1, f"one line, got {err!r}"
    assert out == ""
    return err


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_shapes_that_do_not_fit_are_refused_in_tensorflows_words(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "misfit.pbtxt").write_text(MISFIT)
    assert said(capsys, "show", "misfit.pbtxt", "--soft") == (
        f"simplace: misfit.pbtxt: TensorFlow would not import this graph: {DIMENSIONS}'{{{{node b}}}} = MatMul["
        "T=DT_FLOAT, grad_a=false, grad_b=false, transpose_a=false, transpose_b=false](a, a)' "
        "with input shapes: [2,3], [2,3].\n"
    )
    refused = f"simplace: misfit.pbtxt: TensorFlow refuses this graph: {DIMENSIONS}'{{{{node b}}}} = MatMul["
    assert said(capsys, "check", "misfit.pbtxt").startswith(refused)


def test_the_last_line_says_that_shapes_were_not_looked_at(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "misfit.pbtxt").write_text(MISFIT)
    assert main(["show", "misfit.pbtxt", "--soft", "--tensorflow", "2.18"]) == 0
    assert capsys.readouterr().out.endswith("simplace check misfit.pbtxt asks it, whether shapes fit included\n")


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_saved_model_that_does_not_load_is_refused_in_tensorflows_words(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    model = protos.from_text(
        "SavedModel", f"meta_graphs {{ meta_info_def {{ tags: 'serve' }} graph_def {{ {MISFIT} }} }}"
    )
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    refused = f"simplace: model: TensorFlow refuses this SavedModel: {DIMENSIONS}"
    assert said(capsys, "check", "model").startswith(refused)


def test_what_is_no_graph_is_told_without_tensorflow(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.pbtxt").write_text(node("a", "NoOp") + "\nnode { opp: 3 }")
    assert said(capsys, "check", "text.pbtxt") == (
        "simplace: text.pbtxt: not a GraphDef in text form, line 2: "
        'Message type "tensorflow.NodeDef" has no field named "opp"\n'
    )
    (tmp_path / "bytes.pb").write_bytes(b"\xff" * 100)
    assert said(capsys, "check", "bytes.pb") == (
        "simplace: bytes.pb: not a binary GraphDef: truncated, damaged, or another kind of file; write it again\n"
    )
