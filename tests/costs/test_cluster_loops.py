"""Loops and branches that XLA compiles: how often they run, what the host has to wait for, what it costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.costs.cluster_cost import estimate_cluster
from simplace.costs.cluster_memory import find_held
from simplace.costs.cluster_ops import CompiledCall, list_cluster_ops
from simplace.costs.cost_model import COMPILED, OpCall
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor
from simplace.costs.outcomes import Loop
from simplace.costs.xla_fusion import FusedKernel, fuse_ops, keep_ops
from simplace.errors import SimplaceError
from simplace.graph.node_def import FuncRef, FunctionDef
from tests.lowering.worlds import function, session_program

SIDE = 64
BODY = function(
    "body(i: int32, x: float) -> next: int32, y: float",
    """
    one = Const() {dtype=int32, value=number(1)}
    next = AddV2(i, one:output:0) {T=int32}
    product = MatMul(x, x)
    squashed = Tanh(product:product:0)
    y = Mul(squashed:y:0, squashed:y:0)
    """,
    {"next": "next:z:0", "y": "y:z:0"},
)


def condition(text: str) -> FunctionDef:
    return function("cond(i: int32, x: float) -> goes: bool", text, {"goes": "goes:z:0"})


BELOW_20 = condition(
    """
    limit = Const() {dtype=int32, value=number(20)}
    goes = Less(i, limit:output:0) {T=int32}
    """
)
ALSO_BELOW_30 = condition(
    """
    limit = Const() {dtype=int32, value=number(20)}
    below = Less(i, limit:output:0) {T=int32}
    other = Const() {dtype=int32, value=number(30)}
    also = Less(i, other:output:0) {T=int32}
    goes = LogicalAnd(below:z:0, also:z:0)
    """
)
BY_VALUE = condition(
    """
    limit = Const() {dtype=float}
    all = Const() {dtype=int32}
    sum = Sum(x, all:output:0) {Tidx=int32}
    goes = Less(sum:output:0, limit:output:0)
    """
)
STEP = function(
    "step(x: float) -> y: float",
    """
    zero = Const() {dtype=int32, value=number(0)}
    loop = StatelessWhile(zero:output:0, x) {T=(int32, float), cond=fn('cond'), body=fn('body')}
    """,
    {"y": "loop:output:1"},
)


def compile_step(
    *functions: FunctionDef, device: str = "GPU", trips: dict[str, int] | None = None, is_compiled: bool = True
) -> CompiledCall:
    x = make_tensor("float32", (SIDE, SIDE), 4)
    call = OpCall("step", "PartitionedCall", device, {"f": FuncRef("step", {})}, (x,), (x,))
    program = session_program("", *functions)
    return list_cluster_ops(program, FuncRef("step", {}), call, batch=32, trips=trips, is_compiled=is_compiled)


def fuse(compiled: CompiledCall) -> tuple[FusedKernel, ...]:
    return fuse_ops(compiled.runs).kernels


def test_a_round_has_kernels_of_its_own() -> None:
    compiled = compile_step(STEP, BODY, BELOW_20)
    (loop,) = fuse(compiled)
    assert compiled.loops == (Loop("step/loop", 20, "read"),)
    assert loop.body is not None
    assert (loop.body.rounds, loop.body.asked) == (20, None)
    names = [(one.call.name.removeprefix("step/loop/"), one.call.op) for one in loop.body.runs.kernels]
    assert names == [("next", "AddV2"), ("product", "MatMul"), ("y", "XlaFusion")]


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 200])
def test_a_loop_costs_its_rounds(rounds: int) -> None:
    model = make_modelled_costs()
    (loop,) = fuse(compile_step(STEP, BODY, BELOW_20, trips={"step/loop": rounds}))
    assert loop.body is not None
    unrolled = estimate_cluster(loop.body.runs.kernels * rounds, model)
    cost = estimate_cluster([loop], model)
    assert cost.device_s == pytest.approx(unrolled.device_s, rel=1e-9)
    assert (cost.host_s, cost.source) == (unrolled.host_s, unrolled.source)
    assert cost.off == pytest.approx(unrolled.off, rel=1e-6)


def test_a_stream_that_is_behind_when_a_loop_begins_makes_up_for_it() -> None:
    model, x = make_modelled_costs(), make_tensor("float32", (1536, 1536), 4)
    first = FusedKernel(OpCall("first", "MatMul", "GPU", {}, (x, x), (x,)), (), ())
    (loop,) = fuse(compile_step(STEP, BODY, BELOW_20, trips={"step/loop": 500}))
    assert loop.body is not None
    three_rounds = sum(model.kernel(one.call).host_s for one in loop.body.runs.kernels * 3)
    assert three_rounds < model.kernel(first.call).device_s
    unrolled = estimate_cluster([first, *loop.body.runs.kernels * 500], model)
    assert estimate_cluster([first, loop], model).device_s == pytest.approx(unrolled.device_s, rel=1e-9)
    assert unrolled.waits_s > 1e-6


def test_the_host_is_done_when_it_has_launched_them_and_its_share_is_of_the_peak_that_binds() -> None:
    model, x, w = make_modelled_costs(), make_tensor("float32", (4096, 4096), 4), make_tensor("float32", (64, 4096), 4)
    product = FusedKernel(OpCall("product", "MatMul", "GPU", {COMPILED: True}, (x, x), (x,)), (), ())
    small = FusedKernel(OpCall("small", "Tanh", "GPU", {COMPILED: True}, (w,), (w,)), (), ())
    one, two = (model.kernel(kernel.call) for kernel in (product, small))
    cost = estimate_cluster([product, small], model)
    assert (cost.host_s, cost.later_s) == (one.host_s, pytest.approx(two.host_s))
    assert cost.device_s == pytest.approx(one.device_s + two.device_s)
    assert one.bound == cost.bound == "arithmetic" != two.bound
    assert cost.share == pytest.approx(one.share * one.device_s / cost.device_s)


def test_on_a_cpu_it_is_the_sum_of_its_kernels() -> None:
    model = make_modelled_costs()
    (loop,) = fuse(compile_step(STEP, BODY, BELOW_20, device="CPU"))
    assert loop.body is not None
    whole = 20 * sum(model.kernel(one.call).host_s for one in loop.body.runs.kernels)
    assert estimate_cluster([loop], model).host_s == pytest.approx(whole)


@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_what_is_not_compiled_runs_op_by_op_with_the_executors_bookkeeping(device: str) -> None:
    model = make_modelled_costs()
    kernels = keep_ops(compile_step(STEP, BODY, BELOW_20, device=device, is_compiled=False).runs).kernels
    *_, loop = kernels
    assert loop.body is not None
    calls = [one.call for one in loop.body.runs.kernels]
    on_host = "CPU"  # a kernel for int32 on a GPU computes there, too
    assert [(call.op, call.device_type) for call in calls] == [
        ("Const", on_host), ("AddV2", on_host), ("MatMul", device), ("Tanh", device), ("Mul", device),
    ]  # fmt: skip
    cost = estimate_cluster(kernels, model, is_compiled=False)
    host = model.overheads.op_s + 20 * sum(model.kernel(call).host_s + model.overheads.op_s for call in calls)
    if device == "CPU":
        assert (cost.host_s, cost.device_s) == (pytest.approx(host), 0.0)
    else:
        assert cost.host_s + cost.device_s == pytest.approx(host + model.kernel(calls[-1]).device_s, rel=0.01)
        assert cost.launches == 20 * 3


@pytest.mark.parametrize(
    ("condition", "loop"),
    [(ALSO_BELOW_30, Loop("step/loop", 20, "read")), (BY_VALUE, Loop("step/loop", 10, "assumed"))],
)
def test_the_host_waits_for_a_condition_that_xla_does_not_know(condition: FunctionDef, loop: Loop) -> None:
    compiled, model = compile_step(STEP, BODY, condition), make_modelled_costs()
    assert compiled.loops == (loop,)
    (kernel,) = fuse(compiled)
    assert kernel.body is not None
    assert kernel.body.asked is not None
    assert kernel.body.asked.kernels
    asked, known = (
        estimate_cluster([one], model)
        for one in (kernel, *fuse(compile_step(STEP, BODY, BELOW_20, trips={"step/loop": loop.trips})))
    )
    wait = model.copy(1, "GPU", "CPU")
    assert asked.device_s > known.device_s + loop.trips * wait
    assert asked.off > known.off  # a copy is guessed


def test_what_the_user_gives_counts() -> None:
    compiled = compile_step(STEP, BODY, BY_VALUE, trips={"step/loop": 7, "another": 3})
    assert compiled.loops == (Loop("step/loop", 7, "given"),)


def test_counters_that_run_alike_are_one() -> None:
    twice = function(
        "body(i: int32, j: int32, x: float) -> next: int32, after: int32, y: float",
        """
        one = Const() {dtype=int32, value=number(1)}
        next = AddV2(i, one:output:0) {T=int32}
        after = AddV2(one:output:0, j) {T=int32}
        y = Tanh(x)
        """,
        {"next": "next:z:0", "after": "after:z:0", "y": "y:y:0"},
    )
    both = function(
        "cond(i: int32, j: int32, x: float) -> goes: bool",
        "limit = Const() {dtype=int32, value=number(5)}\ngoes = Less(j, limit:output:0) {T=int32}",
        {"goes": "goes:z:0"},
    )
    step = function(
        "step(x: float) -> y: float",
        """
        zero = Const() {dtype=int32, value=number(0)}
        loop = While(zero:output:0, zero:output:0, x) {T=(int32, int32, float), cond=fn('cond'), body=fn('body')}
        """,
        {"y": "loop:output:2"},
    )
    (loop,) = fuse(compile_step(step, twice, both))
    assert loop.body is not None
    assert [one.call.name for one in loop.body.runs.kernels] == ["step/loop/next", "step/loop/y"]


def test_a_loop_that_counts_down_and_one_that_runs_as_often_as_another_has_counted() -> None:
    """As the loop of a gradient does."""
    down = function(
        "down(i: int32, x: float) -> next: int32, y: float",
        """
        three = Const() {dtype=int32, value=number(3)}
        next = Sub(i, three:output:0) {T=int32}
        y = Tanh(x)
        """,
        {"next": "next:z:0", "y": "y:y:0"},
    )
    above = function(
        "above(i: int32, x: float) -> goes: bool",
        "zero = Const() {dtype=int32, value=number(0)}\ngoes = Greater(i, zero:output:0) {T=int32}",
        {"goes": "goes:z:0"},
    )
    step = function(
        "step(x: float) -> y: float",
        """
        zero = Const() {dtype=int32, value=number(0)}
        loop = StatelessWhile(zero:output:0, x) {T=(int32, float), cond=fn('cond'), body=fn('body')}
        back = StatelessWhile(loop:output:0, loop:output:1) {T=(int32, float), cond=fn('above'), body=fn('down')}
        """,
        {"y": "back:output:1"},
    )
    compiled = compile_step(step, BODY, BELOW_20, down, above)
    assert compiled.loops == (Loop("step/loop", 20, "read"), Loop("step/back", 7, "read"))


@pytest.mark.parametrize(
    ("predicate", "op", "told", "waits"),
    [
        ("", "Tanh", ("step/branch",), True),
        ("value=number(1)", "Tanh", (), False),
        ("value=number(0)", "Exp", (), False),
    ],
)
def test_of_a_branch_the_first_function_counts_where_nothing_tells(
    predicate: str, op: str, told: tuple[str, ...], waits: bool
) -> None:
    functions = [
        function(f"{name}(x: float) -> y: float", f"y = {op}(x)", {"y": "y:y:0"})
        for name, op in (("yes", "Tanh"), ("no", "Exp"))
    ]
    step = function(
        "step(x: float) -> y: float",
        f"""
        which = Const() {{dtype=int32, {predicate}}}
        branch = StatelessIf(which:output:0, x) {{Tcond=int32, Tin=(float,), Tout=(float,), then_branch=fn('yes'), \
else_branch=fn('no')}}
        """,
        {"y": "branch:output:0"},
    )
    compiled = compile_step(step, *functions)
    (kernel,) = fuse(compiled)
    assert compiled.branches == told
    assert kernel.body is not None
    assert [one.call.op for one in kernel.body.runs.kernels] == [op]
    assert (kernel.body.asked is not None) == waits


@pytest.mark.parametrize(("index", "op"), [(0, "Neg"), (1, "Abs"), (2, "Exp"), (3, "Exp"), (-2, "Exp")])
def test_an_index_that_no_branch_has_means_the_last(index: int, op: str) -> None:
    ops = {"a": "Neg", "b": "Abs", "c": "Exp"}
    functions = [function(f"{name}(x: float) -> y: float", f"y = {op}(x)", {"y": "y:y:0"}) for name, op in ops.items()]
    step = function(
        "step(x: float) -> y: float",
        f"""
        which = Const() {{dtype=int32, value=number({index})}}
        case = StatelessCase(which:output:0, x) {{Tin=(float,), Tout=(float,), branches=(fn('a'), fn('b'), fn('c'))}}
        """,
        {"y": "case:output:0"},
    )
    (kernel,) = fuse(compile_step(step, *functions))
    assert kernel.body is not None
    assert [one.call.op for one in kernel.body.runs.kernels] == [op]


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ((BODY,), "which the graph does not have"),
        ((function("body(i: int32) -> next: int32", "", {"next": "i"}), BELOW_20), "body takes 1 arguments"),
        ((function("body(i: int32, x: float) -> y: float", "", {"y": "x"}), BELOW_20), "body returns 1 values"),
        ((BODY, condition("goes = Less(i) {T=int32}")), "1"),
        ((BODY, replace(BELOW_20, ret={})), "refers to ''"),
        ((replace(BODY, ret={"next": "next:z:0"}), BELOW_20), "refers to ''"),
    ],
    ids=["no condition", "arguments", "results", "inputs of an op", "no result", "no second result"],
)
def test_functions_that_a_loop_cannot_run_are_refused(functions: tuple[FunctionDef, ...], said: str) -> None:
    with pytest.raises(SimplaceError, match=said):
        compile_step(STEP, *functions)


def test_a_condition_that_says_the_same_again_and_again_is_read_once() -> None:
    joined = "\n".join(f"and{i + 1} = LogicalAnd(and{i}:z:0, and{i}:z:0)" for i in range(60))
    text = f"limit = Const() {{dtype=int32, value=number(20)}}\nand0 = Less(i, limit:output:0) {{T=int32}}\n{joined}"
    same = function("cond(i: int32, x: float) -> goes: bool", text, {"goes": "and60:z:0"})
    assert compile_step(STEP, BODY, same).loops == (Loop("step/loop", 20, "read"),)


def test_a_round_holds_what_lies_between_its_kernels() -> None:
    held = find_held(fuse_ops(compile_step(STEP, BODY, BELOW_20).runs))
    assert [tensor.shape for tensor in held] == [(), (SIDE, SIDE)]  # the counter, and in a round the product


def test_a_loop_that_contains_itself_ends() -> None:
    endless = function(
        "body(i: int32, x: float) -> next: int32, y: float",
        "loop = StatelessWhile(i, x) {T=(int32, float), cond=fn('cond'), body=fn('body')}",
        {"next": "loop:output:0", "y": "loop:output:1"},
    )
    compiled = compile_step(STEP, endless, BELOW_20)
    assert len(compiled.loops) > 10
    fused = fuse_ops(compiled.runs)
    assert estimate_cluster(fused.kernels, make_modelled_costs()).device_s > 0
    assert [tensor.shape for tensor in find_held(fused)] == [()]  # the counter


LOOPS = """
import json
import sys

import tensorflow as tf

x = tf.ones([8, 8])

def repeat(x, goes, start=0, step=1):
    return tf.while_loop(lambda i, _: goes(i), lambda i, x: (i + step, tf.tanh(x @ x)), (start, x))[1]

def once(x):
    return repeat(x, lambda i: i < 9)

def in_threes(x):
    return repeat(x, lambda i: i <= 20, start=2, step=3)

def backwards(x):
    return repeat(x, lambda i: i > 0, start=9, step=-1)

def in_a_row(x):
    return repeat(repeat(x, lambda i: i < 5), lambda i: i < 7)

def nested(x):
    return tf.while_loop(
        lambda i, _: i < 4, lambda i, x: (i + 1, repeat(x, lambda i: i < 3)), (0, x))[1]

functions = {
    each.__name__: tf.function(each, jit_compile=True) for each in (once, in_threes, backwards, in_a_row, nested)}
for each in functions.values():
    each(x)
"""
ASK = """
hlo = {name: each.experimental_get_compiler_ir(x)(stage="optimized_hlo") for name, each in functions.items()}
json.dump(hlo, open(sys.argv[1], "w"))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_loops_run_as_often_as_xla_says(tmp_path: Path) -> None:
    script, asking, answer = tmp_path / "loops.py", tmp_path / "ask.py", tmp_path / "hlo.json"
    script.write_text(dedent(LOOPS))
    asking.write_text(dedent(LOOPS) + dedent(ASK))
    subprocess.run([sys.executable, str(asking), str(answer)], check=True, capture_output=True)
    known = {
        name: sorted(int(count) for count in re.findall(r'"known_trip_count":{"n":"(\d+)"}', hlo))
        for name, hlo in json.loads(answer.read_text()).items()
    }
    assert known == {"once": [9], "in_threes": [7], "backwards": [9], "in_a_row": [5, 7], "nested": [3, 4]}
    result = simplace.place(str(script), "cpu:1,gpu:1")
    found = {
        placed.name: schedule_placement(placed.placement, costs="modelled").estimated.loops
        for placed in result.programs
    }
    assert {name: sorted(loop.trips for loop in loops) for name, loops in found.items()} == known
