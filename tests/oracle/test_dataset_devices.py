"""On which device TensorFlow places the functions of a dataset: that of the iterator over it, wherever its ops are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

import simplace

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

START = """\
    import tensorflow as tf
    D = tf.data.Dataset
    to_gpu = tf.data.experimental.copy_to_device("/gpu:0")
    def add(x):
        return x + 1
    def total(before, x):
        return before + x
    zero = tf.constant(0, tf.int64)
    def make():
        with tf.device("/cpu:1"):
            return D.range(5).map(add)
"""
WALKS = {
    "an iterator made where the dataset is": ("list(far)", {"map_add": ["CPU:1"]}),
    "one behind another dataset": ("list(far.take(3))", {"map_add": ["CPU:0"]}),
    "one of each": ("list(far), list(far.batch(2))", {"map_add": ["CPU:1", "CPU:0"]}),
    "a walk": ("far.reduce(zero, total)", {"map_add": ["CPU:0"], "reduce_total": ["CPU:0"]}),
    "two datasets in one": ("list(D.zip((far, D.range(3))))", {"map_add": ["CPU:0"]}),
    "a walk in another dataset's function": (
        "list(D.range(2).map(lambda x: far.reduce(x, total)))",
        {"map_add": ["CPU:0"], "map_lambda": ["CPU:0"], "reduce_total": ["CPU:0"]},
    ),
    "none": ("far", {"map_add": ["CPU:1"]}),
    "a call": (
        "tf.function(lambda rows: rows.reduce(zero, total))(far)",
        {"map_add": ["CPU:0"], "reduce_total": ["CPU:0"]},
    ),
}
IN_GRAPHS = {
    "a walk": ("return make().reduce(zero, total)", ["CPU:0"]),
    "a walk there": ('with tf.device("/cpu:1"): return make().reduce(zero, total)', ["CPU:1"]),
    "behind another dataset": ("return make().take(3).reduce(zero, total)", ["CPU:0"]),
    "a walk with a dataset's like for its state":
        ("return make().reduce(tf.TensorArray(tf.int64, 5), lambda rows, x: rows.write(0, x)).stack()", ["CPU:0"]),
    "an iterator there": ('with tf.device("/cpu:1"): return next(iter(make()))', ["CPU:1"]),
    "a dataset's own function": ("return D.range(3).flat_map(lambda x: make()).reduce(zero, total)", ["CPU:0"]),
}  # fmt: skip
ON_GPU = {
    "an iterator there": ("list(D.range(4).apply(to_gpu))", ["GPU:0"]),
    "one behind another dataset": ("list(D.range(4).apply(to_gpu).take(3))", ["CPU:0"]),
    "one of each": ("rows = D.range(4).apply(to_gpu); list(rows), list(rows.map(add))", ["GPU:0", "CPU:0"]),
    "a walk": ("D.range(4).apply(to_gpu).reduce(zero, total)", ["CPU:0"]),
    "a call": ("tf.function(lambda rows: rows.reduce(zero, total))(D.range(4).apply(to_gpu))", ["CPU:0"]),
}


def list_devices(source: str, machine: str, path: Path) -> dict[str, list[str]]:
    """Check a program; return by function of Python the devices that its dataset's functions are placed on."""
    model = path / "model.py"
    model.write_text(source)
    result = simplace.check(str(model), machine)
    assert result.agrees
    found: dict[str, list[str]] = {}
    for placed in result:
        program = placed.placement.program
        if program.kind == "dataset":
            devices = found.setdefault(placed.name.removeprefix("Dataset_").removeprefix("_"), [])
            devices.append(program.scope.rpartition("device:")[2])
    return found


@pytest.mark.parametrize(("walk", "devices"), WALKS.values(), ids=WALKS)
def test_functions_are_where_the_iterator_is(walk: str, devices: dict[str, Sequence[str]], tmp_path: Path) -> None:
    assert list_devices(f"{dedent(START)}far = make()\n{walk}", "cpu:2", tmp_path) == devices


@pytest.mark.parametrize(("walk", "devices"), IN_GRAPHS.values(), ids=IN_GRAPHS)
def test_in_a_graph_too(walk: str, devices: Sequence[str], tmp_path: Path) -> None:
    call = f"""
@tf.function
def call():
    {walk}
call()
"""
    assert list_devices(dedent(START) + call, "cpu:2", tmp_path)["map_add"] == devices


@pytest.mark.parametrize(("walk", "devices"), ON_GPU.values(), ids=ON_GPU)
def test_what_copies_to_a_gpu(walk: str, devices: Sequence[str], tmp_path: Path) -> None:
    found = list_devices(dedent(START) + walk, "cpu:2,gpu:1", tmp_path)
    assert [found[f"remote_{name}_func"] for name in ("init", "next", "finalize")] == [devices] * 3


def test_what_is_copied_to_a_gpu_is_made_on_the_cpu(tmp_path: Path) -> None:
    walk = "list(make().apply(to_gpu)), list(make().batch(2).apply(to_gpu).take(1))"
    found = list_devices(dedent(START) + walk, "cpu:2,gpu:1", tmp_path)
    assert (found["map_add"], found["remote_next_func"]) == (["CPU:0"] * 2, ["GPU:0", "CPU:0"])
