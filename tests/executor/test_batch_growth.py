"""Which tensors grow with the batch: what the data are made into does, what is as large as a variable does not."""

from __future__ import annotations

from simplace.analysis.batch_memory import BatchMemory
from tests.executor.worlds import run


def list_growing(text: str) -> set[str]:
    """Name what grows of a step, by node."""
    schedule = run(text)
    nodes = schedule.estimated.graph.nodes
    return {nodes[node].name for node, _ in BatchMemory.of(schedule).growing}


def shape(*dims: int) -> str:
    return f"_output_shapes=(dims({', '.join(map(str, dims))}),)"


def test_tokens_of_all_examples_grow_though_a_constant_and_a_weight_have_as_many_rows() -> None:
    text = f"""
        x = Placeholder() @g0 {{dtype=float, {shape(16, 8, 4)}}}
        v = VarHandleOp() @g0 {{dtype=float, shape=dims(4, 128)}}
        w = ReadVariableOp(v) @g0 {{dtype=float, {shape(4, 128)}}}
        s = Const() @g0 {{dtype=int32, value=number(1), {shape(2)}}}
        c = Const() @g0 {{dtype=float, value=number(1), {shape(128, 1)}}}
        tokens = Reshape(x, s) @g0 {{{shape(128, 4)}}}
        scaled = Mul(tokens, c) @g0 {{{shape(128, 4)}}}
        wide = MatMul(scaled, w) @g0 {{{shape(128, 128)}}}
        gradient = MatMul(scaled, wide) @g0 {{transpose_a=True, {shape(4, 128)}}}
        turned = Neg(gradient) @g0 {{{shape(4, 128)}}}
    """
    assert list_growing(text) == {"x", "tokens", "scaled", "wide"}


def test_gradients_that_are_packed_for_a_collective_do_not_grow() -> None:
    text = f"""
        x = Placeholder() @g0 {{dtype=float, {shape(16, 64)}}}
        v = VarHandleOp() @g0 {{dtype=float, shape=dims(64, 32)}}
        b = VarHandleOp() @g0 {{dtype=float, shape=dims(32)}}
        w = ReadVariableOp(v) @g0 {{dtype=float, {shape(64, 32)}}}
        bias = ReadVariableOp(b) @g0 {{dtype=float, {shape(32)}}}
        s = Const() @g0 {{dtype=int32, value=number(1), {shape(1)}}}
        axis = Const() @g0 {{dtype=int32, value=number(0)}}
        y = MatMul(x, w) @g0 {{{shape(16, 32)}}}
        gw = MatMul(x, y) @g0 {{transpose_a=True, {shape(64, 32)}}}
        gb = BiasAddGrad(y) @g0 {{{shape(32)}}}
        flat = Reshape(gw, s) @g0 {{{shape(2048)}}}
        packed = ConcatV2(flat, gb, axis) @g0 {{N=2, {shape(2080)}}}
        sent = Neg(packed) @g0 {{{shape(2080)}}}
        rows = Reshape(y, s) @g0 {{{shape(512)}}}
        used = AddV2(rows, rows) @g0 {{{shape(512)}}}
        biased = AddV2(y, bias) @g0 {{{shape(16, 32)}}}
    """
    assert list_growing(text) == {"x", "y", "rows", "used", "biased"}
