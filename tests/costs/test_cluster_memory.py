"""What a compiled cluster holds in memory between its kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from simplace import place
from simplace.analysis.schedule import schedule_placement
from simplace.costs.cluster_memory import HeldTensor, find_held, list_arguments, list_results
from simplace.costs.cost_model import OpCall
from simplace.costs.op_work import make_tensor
from simplace.costs.xla_fusion import OUTSIDE, ClusterOps, FusibleOp, fuse_ops
from simplace.executor.trace import SCRATCH

X = make_tensor("float32", (64, 64), 4)


def held_by(*ops: tuple[str, tuple[int, ...]], results: tuple[int, ...], device: str = "GPU") -> int:
    """Return how many tensors of one size a cluster holds at its peak."""
    made = tuple(
        FusibleOp(OpCall(str(i), op, device, {}, (X,) * len(read), (X,)), tuple((at, 0) for at in read))
        for i, (op, read) in enumerate(ops)
    )
    return len(find_held(fuse_ops(ClusterOps(made, tuple((at, 0) for at in results)))))


def test_a_result_lives_until_the_last_kernel_that_reads_it() -> None:
    chain = [("MatMul", (OUTSIDE, OUTSIDE)), ("MatMul", (0, 0)), ("MatMul", (1, 1)), ("MatMul", (2, 2))]
    assert held_by(*chain, results=(3,)) == 2
    assert held_by(*chain, ("MatMul", (0, 3)), results=(4,)) == 3


def test_what_is_returned_has_memory_of_its_own() -> None:
    assert held_by(("MatMul", (OUTSIDE, OUTSIDE)), results=(0,)) == 0


def test_a_function_that_is_compiled_whole_has_arguments_variables_and_results() -> None:
    handle, table = make_tensor("resource", (), None), make_tensor("float32", (1000, 64), 4)
    read = FusibleOp(OpCall("r", "ReadVariableOp", "GPU", {}, (handle,), (table,)), ((OUTSIDE, 0),))
    product = FusibleOp(OpCall("p", "MatMul", "GPU", {}, (table, X), (X,)), ((0, 0), (OUTSIDE, 1)))
    change = FusibleOp(OpCall("a", "AssignAddVariableOp", "GPU", {}, (handle, table), ()), ((OUTSIDE, 0), (0, 0)))
    cluster = ClusterOps((read, product, change), ((1, 0),))
    assert list_arguments(cluster) == {0: table, 1: X}
    assert list(list_results(cluster)) == [HeldTensor(*X, made_by="p")]


def test_an_elementwise_kernel_writes_into_what_it_read_last() -> None:
    product = ("MatMul", (OUTSIDE, OUTSIDE))
    assert held_by(product, ("Exp", (0,)), ("MatMul", (1, 1)), results=(2,)) == 1


def test_what_frees_memory_runs_first() -> None:
    """Two products are made before both are used; the second can wait until the first has been."""
    product = ("MatMul", (OUTSIDE, OUTSIDE))
    assert held_by(product, product, ("MatMul", (0, OUTSIDE)), ("MatMul", (1, OUTSIDE)), results=(2, 3)) == 1


def test_on_a_cpu_kernels_run_first_come_first_served() -> None:
    chains = [("MatMul", (OUTSIDE, OUTSIDE)), ("MatMul", (OUTSIDE, OUTSIDE)), ("MatMul", (0, 0)), ("MatMul", (1, 1))]
    both = [*chains, ("MatMul", (2, OUTSIDE)), ("MatMul", (3, OUTSIDE))]
    assert held_by(*both, results=(4, 5)) == 2
    assert held_by(*both, results=(4, 5), device="CPU") == 3


def test_what_is_transposed_is_not_written_into_its_input() -> None:
    product = ("MatMul", (OUTSIDE, OUTSIDE))
    assert held_by(product, ("Transpose", (0,)), ("MatMul", (1, 1)), results=(2,)) == 2


STEP = """
import tensorflow as tf
ws = [tf.Variable(tf.random.normal([256, 256]) * .05) for _ in range(6)]

@tf.function(jit_compile=True)
def step(x):
    with tf.GradientTape() as tape:
        h = x
        for w in ws:
            h = tf.nn.gelu(h @ w)
        loss = tf.reduce_mean(h ** 2)
    for w, g in zip(ws, tape.gradient(loss, ws)):
        w.assign_sub(.1 * g)
    return loss

step(tf.ones([512, 256]))
"""


CONVOLUTIONS = """
import tensorflow as tf
ws = [tf.Variable(tf.random.normal([3, 3, 16, 32])), tf.Variable(tf.random.normal([3, 3, 32, 32]))]

@tf.function(jit_compile=True)
def step(x):
    with tf.GradientTape() as tape:
        h = x
        for w in ws:
            h = tf.nn.relu(tf.nn.conv2d(h, w, 1, "SAME"))
        loss = tf.reduce_mean(h * h)
    for w, g in zip(ws, tape.gradient(loss, ws)):
        w.assign_sub(.1 * g)
    return loss

step(tf.random.normal([32, 32, 32, 16]))
"""


@pytest.mark.tf
@pytest.mark.long
@pytest.mark.parametrize("text", [STEP, CONVOLUTIONS])
def test_it_is_what_xla_assigns_to_temporary_buffers(text: str, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(dedent(text))
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    environment = {**os.environ, "XLA_FLAGS": flags, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, script], env=environment, check=True, capture_output=True)
    (dump,) = (one for one in tmp_path.glob("*buffer-assignment.txt") if "inference_step" in one.name)
    assigned = [int(size) for size in re.findall(r"size (\d+), preallocated-temp", dump.read_text())]
    (placed,) = (one for one in place(str(script), "cpu:1") if one.placement.program.kind == "compiled")
    schedule = schedule_placement(placed.placement)
    ((node, held),) = schedule.estimated.held.items()
    assert sum(tensor.size for tensor in held) == pytest.approx(sum(assigned), rel=0.1)
    (kept,) = (change for change in schedule.trace.memory if change.slot == SCRATCH and change.change > 0)
    assert (kept.node, kept.change) == (node, sum(tensor.size for tensor in held))
    assert {one.node for one in schedule.trace.resident} == {node}  # its variables, and its argument
