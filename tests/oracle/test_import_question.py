"""TensorFlow's C library says whether it imports a graph, and whatever the graph is, the question ends."""

from __future__ import annotations

import os

import pytest

from simplace.errors import ImportRefusedError
from simplace.graph.graph_def import parse_graph_def, parse_text
from simplace.graph.node_def import GraphDef
from simplace.graph.protos import from_text
from simplace.kernels.registry import KernelTable
from simplace.oracle import import_question
from simplace.oracle.import_question import MOST_NODES, NOT_ASKED, ask_import
from tests.worlds import constant, node

VERSIONS = "versions { producer: 1286 }"
OF_INTS = 'attr { key: "Tidx" value { type: DT_INT32 } }'


def number(name: str, value: int, dims: str = "") -> str:
    """Write a constant of int32 numbers that are all alike."""
    tensor = f"tensor {{ dtype: DT_INT32 tensor_shape {{ {dims} }} int_val: {value} }}"
    return node(name, "Const", dtype="DT_INT32", extra=f'attr {{ key: "value" value {{ {tensor} }} }}')


def graph(*nodes: str) -> GraphDef:
    return parse_text("\n".join([*nodes, VERSIONS]))


def is_imported(asked: GraphDef) -> bool:
    with ask_import(asked) as question:
        return question.refuse()


@pytest.mark.tf
def test_a_sound_graph_is_imported() -> None:
    assert is_imported(graph(constant("a", (2, 3)), node("b", "Neg", "a")))


@pytest.mark.tf
def test_the_graph_of_a_meta_graph_is_asked_about() -> None:
    text = f"graph_def {{ {constant('a', (2, 3))} {VERSIONS} }}"
    assert is_imported(parse_graph_def(from_text("MetaGraphDef", text).SerializeToString()))


@pytest.mark.tf
def test_the_reason_is_tensorflows() -> None:
    asked = graph(constant("a", (2, 3)), number("axis", 5), node("b", "Sum", "a", "axis"))
    with pytest.raises(ImportRefusedError, match="would not import this graph: Invalid reduction dimension 5 "):
        is_imported(asked)


@pytest.mark.tf
def test_an_op_that_only_tensorflows_python_brings_along_is_no_reason() -> None:
    assert KernelTable.shipped().op("GraphDefVersion")
    assert not is_imported(graph(node("version", "GraphDefVersion")))


@pytest.mark.tf
def test_an_attribute_without_a_value_has_its_default() -> None:
    unset = 'attr { key: "transpose_a" value {} } attr { key: "_mine" value {} }'
    assert is_imported(graph(constant("a", (2, 2)), node("b", "MatMul", "a", "a", extra=unset)))


def sum_up(size: int, rounds: int) -> GraphDef:
    """Build a graph whose last shape depends on a constant: the sum of a tensor that is summed up so many times."""
    sizes = number("size", size, "dim { size: 1 }"), number("one", 1), number("axis", 0), number("high", 9)
    fill = node("sums0", "Fill", "size", "one", dtype="DT_INT32")
    sums = [node(f"sums{i + 1}", "Cumsum", f"sums{i}", "axis", dtype="DT_INT32") for i in range(rounds)]
    total = node("sum", "Sum", f"sums{rounds}", "axis", dtype="DT_INT32")
    return graph(*sizes, fill, *sums, total, node("all", "Range", "one", "sum", "high", extra=OF_INTS))


@pytest.mark.tf
def test_a_constant_that_takes_long_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(import_question, "_PATIENCE", 3)
    assert is_imported(sum_up(8, 1))
    assert not is_imported(sum_up(1 << 26, 200))


@pytest.mark.tf
def test_a_constant_that_takes_gigabytes_is_given_up_or_left_out_but_not_refused(monkeypatch) -> None:
    """Without memory for it TensorFlow goes on, at once or after a while."""
    monkeypatch.setattr(import_question, "_PATIENCE", 3)
    is_imported(sum_up(1 << 29, 0))


@pytest.mark.tf
def test_a_graph_that_would_write_a_file_is_not_asked_about(tmp_path) -> None:
    written = tmp_path / "written"
    debug = f"""node {{ name: "d" op: "DebugIdentity" input: "a" attr {{ key: "T" value {{ type: DT_INT32 }} }}
      attr {{ key: "debug_urls" value {{ list {{ s: "file://{written}" }} }} }} }}"""
    asked = graph(number("a", 1, "dim { size: 1 }"), debug, constant("x", ()), node("b", "Reshape", "x", "d"))
    with ask_import(asked) as question:
        assert question is NOT_ASKED
    assert not written.exists()


def test_of_many_nodes_nothing_is_asked() -> None:
    with ask_import(graph(*[node(f"n{i}", "NoOp") for i in range(MOST_NODES + 1)])) as question:
        assert question is NOT_ASKED


def test_a_library_that_cannot_be_loaded_gives_no_answer(monkeypatch) -> None:
    monkeypatch.setattr(import_question, "installed_libraries", lambda: ["/nowhere/libtensorflow_cc.so.2"])
    assert not is_imported(graph(node("a", "NoOp")))


def test_nothing_is_left_of_a_question_that_is_dropped(monkeypatch) -> None:
    monkeypatch.setattr(import_question, "installed_libraries", lambda: ["/nowhere/libtensorflow_cc.so.2"])
    open_files = len(os.listdir("/proc/self/fd"))
    with ask_import(graph(node("a", "NoOp"))) as question:
        assert question is not NOT_ASKED
    assert len(os.listdir("/proc/self/fd")) == open_files
    with pytest.raises(ChildProcessError):
        os.waitpid(question._child, os.WNOHANG)  # it was waited for: no zombie is left
