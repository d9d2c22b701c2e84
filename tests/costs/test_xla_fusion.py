"""Compiled clusters: which kernels XLA makes of a hand-made graph, and what they cost."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace import place
from simplace.analysis.schedule import schedule_placement
from simplace.analysis.time_sources import compare_errors
from simplace.costs import cluster_ops
from simplace.costs.cluster_cost import estimate_cluster
from simplace.costs.cluster_ops import list_cluster_ops
from simplace.costs.cost_model import COMPILED, KernelCost, OpCall
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor
from simplace.costs.xla_fusion import OUTSIDE, ClusterOps, FusedKernel, FusibleOp, Ref, fuse_ops
from simplace.errors import SimplaceError
from simplace.graph.node_def import FuncRef
from simplace.pipeline import place_program
from simplace.program.program import NodeNotes, Program
from tests.lowering.worlds import DEVICES, TABLE, function, session_program

ROWS, WIDE = 256, 512
# A dense layer, its activation op by op, and a loss: what a user compiles with jit_compile=True.
LAYER = function(
    "layer(x: float, w: float, b: float) -> loss: float, y: float",
    """
    product = MatMul(x, w)
    shifted = BiasAdd(product:product:0, b)
    scaled = Mul(shifted:output:0, shifted:output:0)
    squashed = Tanh(scaled:z:0)
    y = AddV2(squashed:y:0, shifted:output:0)
    view = Reshape(y:z:0, sides:output:0) {Tshape=int32}
    sides = Const() {dtype=int32, shape=dims(1)}
    all = Const() {dtype=int32, shape=dims(1)}
    loss = Sum(view:output:0, all:output:0) {Tidx=int32}
    """,
    {"loss": "loss:output:0", "y": "y:z:0"},
)
SHAPES = {"view": (ROWS * WIDE,), "sides": (1,), "all": (1,), "loss": ()}


def compiled_program(device: str = "GPU:0") -> Program:
    called = "f=fn('layer'), Tin=(float, float, float), Tout=(float, float), _XlaMustCompile=True"
    program = session_program(
        f"""
        x = Placeholder() @/device:{device} {{dtype=float, shape=dims({ROWS}, {WIDE})}}
        w = Placeholder() @/device:{device} {{dtype=float, shape=dims({WIDE}, {WIDE})}}
        b = Placeholder() @/device:{device} {{dtype=float, shape=dims({WIDE})}}
        step = PartitionedCall(x, w, b) @/device:{device} {{{called}}}
        """,
        LAYER,
    )
    inside = {name: NodeNotes(shapes=(shape,)) for name, shape in SHAPES.items()}
    return replace(program, notes={"": {"step": NodeNotes(shapes=((), (ROWS, WIDE)))}, "layer": inside})


def the_call() -> OpCall:
    inputs = tuple(make_tensor("float32", shape, 4) for shape in ((ROWS, WIDE), (WIDE, WIDE), (WIDE,)))
    return OpCall("step", "PartitionedCall", "GPU", {"f": FuncRef("layer", {})}, inputs, ())


def fuse(ops: Sequence[FusibleOp], *results: Ref) -> tuple[FusedKernel, ...]:
    return fuse_ops(ClusterOps(tuple(ops), results)).kernels


def test_a_layer_is_a_product_and_one_fusion_for_each_thing_that_is_kept() -> None:
    runs = list_cluster_ops(compiled_program(), FuncRef("layer", {}), the_call(), batch=32).runs
    kernels = [
        (one.name, one.op, [t.shape for t in one.inputs], [t.shape for t in one.outputs])
        for one in [kernel.call for kernel in fuse_ops(runs).kernels]
    ]
    assert kernels == [
        ("step/product", "MatMul", [(ROWS, WIDE), (WIDE, WIDE)], [(ROWS, WIDE)]),
        # y is returned, so it is written; loss and all before it are of the same kernel
        ("step/loss", "XlaFusion", [(ROWS, WIDE), (WIDE,), (1,)], [(), (ROWS, WIDE)]),
    ]


def list_body(text: str, returned: str, device: str) -> dict[str, tuple[str, ...]]:
    """Return the ops that are compiled of a function of the image x, filters w and gradients b, with what they read."""
    body = function("layer(x: float, w: float, b: float) -> y: float", text, {"y": returned})
    program = compiled_program()
    program = replace(program, graph=replace(program.graph, library={"layer": body}), notes={})
    call = replace(the_call(), device_type=device)
    ops = list_cluster_ops(program, FuncRef("layer", {}), call, batch=32).runs.ops
    return {op.call.name: tuple(ops[i].call.name for i, _ in op.producers if i >= 0) for op in ops}


def test_what_nothing_needs_is_not_compiled() -> None:
    text = """
        product = MatMul(x, w)
        unused = Exp(product:product:0)
        handle = VarHandleOp() {dtype=float, shape=dims(2, 2)}
        update = AssignVariableOp(handle:resource:0, product:product:0) {dtype=float}
        y = Tanh(b)
    """
    found = list_body(text, "y:y:0", "GPU")
    assert found == {
        "step/product": (),
        "step/handle": (),
        "step/update": ("step/handle", "step/product"),
        "step/y": (),
    }


def test_a_shape_keeps_no_tensor() -> None:
    text = "a = Exp(x)\nsize = Shape(a:y:0) {T=float}\ny = Reshape(b, size:output:0) {T=float, Tshape=int32}\n"
    assert list_body(text, "y:output:0", "GPU") == {"step/size": (), "step/y": ("step/size",)}


def test_on_a_cpu_a_gradient_of_filters_reads_copies_in_other_layouts() -> None:
    text = """
        sizes = Const() {dtype=int32, shape=dims(4)}
        y = Conv2DBackpropFilter(x, sizes:output:0, b) {T=float, strides=(1, 1, 1, 1), padding='SAME'}
    """
    assert list_body(text, "y:output:0", "GPU")["step/y"] == ("step/sizes",)
    found = list_body(text, "y:output:0", "CPU")
    assert found["step/y"] == ("step/y/operand 0", "step/sizes", "step/y/operand 2")


@pytest.mark.parametrize(("device", "kind"), [("GPU:0", "modelled"), ("CPU:0", "guessed cluster")])
def test_kernels_of_xla_are_off_by_themselves_on_a_cpu(device: str, kind: str) -> None:
    done = schedule_placement(place_program(compiled_program(device), DEVICES, TABLE), costs="modelled")
    errors = {of: error for of, error in done.errors.items() if of not in ("executor", "copy", "guessed kernel")}
    assert list(errors) == [kind]
    assert compare_errors(errors, {"guessed kernel": errors[kind]}) > errors[kind]


def test_the_schedule_prices_the_kernels_and_no_longer_the_call() -> None:
    whole = schedule_placement(place_program(compiled_program(), DEVICES, TABLE), costs="modelled")
    (cost,) = [cost for cost in whole.estimated.kernels if cost.device_s]
    model = make_modelled_costs()
    runs = list_cluster_ops(compiled_program(), FuncRef("layer", {}), the_call(), batch=32).runs
    assert cost == estimate_cluster(fuse_ops(runs).kernels, model)
    assert (cost.source, whole.estimated.assumptions) == ("modelled", ())
    alone = [model.kernel(op.call).device_s for op in runs.ops]
    assert max(alone) < cost.device_s < 0.6 * sum(alone)


def test_what_is_expensive_is_kept_and_what_is_cheap_computed_twice() -> None:
    def kernels_of(op: str) -> list[str]:
        x = make_tensor("float32", (64, 64), 4)
        first = FusibleOp(OpCall("first", op, "GPU", {}, (x,), (x,)), ((OUTSIDE, 0),))
        users = [
            FusibleOp(OpCall(name, "Sum", "GPU", {}, (x,), (make_tensor("float32", (), 4),)), ((0, 0),))
            for name in ("left", "right")
        ]
        return [one.call.name for one in fuse((first, *users), (1, 0), (2, 0))]

    assert kernels_of("Neg") == ["left", "right"]
    assert kernels_of("Exp") == ["first", "left", "right"]


def test_launches_of_small_kernels_are_waited_for() -> None:
    small = OpCall("a", "Neg", "GPU", {}, (make_tensor("float32", (8,), 4),), (make_tensor("float32", (8,), 4),))
    model = make_modelled_costs()
    one = model.kernel(replace(small, attrs={COMPILED: True}))
    assert one.device_s < one.host_s < model.kernel(small).host_s
    cost = estimate_cluster([FusedKernel(small, (), ())] * 10, model)
    assert (cost.host_s, cost.device_s) == (one.host_s, pytest.approx(9 * one.host_s + one.device_s))
    assert estimate_cluster([], model) == KernelCost(0.0)


OPS = ("Neg", "Exp", "AddV2", "Sum", "MatMul", "Reshape", "Softmax")


@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=25))
def test_every_op_is_computed_and_fusions_never_move_more(world: list[tuple[str, int, int]]) -> None:
    x, ops = make_tensor("float32", (32, 32), 4), []
    for i, (op, left, right) in enumerate(world):
        producers = [(OUTSIDE, 0) if at % (i + 1) == i else (at % (i + 1), 0) for at in (left, right)]
        count = 2 if op in ("AddV2", "MatMul") else 1
        ops.append(FusibleOp(OpCall(str(i), op, "GPU", {}, (x,) * count, (x,)), tuple(producers[:count])))
    kernels = [kernel.call for kernel in fuse(ops, (len(ops) - 1, 0))]
    names = [one.name for one in kernels]
    assert names == sorted(set(names), key=int)
    moved = sum(t.size for one in kernels for t in (*one.inputs, *one.outputs))
    alone = sum(t.size for op in ops if op.call.op != "Reshape" for t in (*op.call.inputs, *op.call.outputs))
    assert moved <= alone
    kept = {i for i, (op, *_) in enumerate(world) if op in ("MatMul", "Softmax")}
    assert kept <= set(map(int, names))  # a library's kernel is never part of another


def test_a_softmax_is_one_kernel_with_what_it_reads() -> None:
    scores, mask = make_tensor("float32", (8, 512, 512), 4), make_tensor("float32", (512, 512), 4)
    scaled = FusibleOp(OpCall("scaled", "Mul", "GPU", {}, (scores, scores), (scores,)), ((OUTSIDE, 0), (OUTSIDE, 0)))
    masked = FusibleOp(OpCall("masked", "AddV2", "GPU", {}, (scores, mask), (scores,)), ((0, 0), (OUTSIDE, 1)))
    shares = FusibleOp(OpCall("shares", "Softmax", "GPU", {}, (scores,), (scores,)), ((1, 0),))
    (kernel,) = (fused.call for fused in fuse((scaled, masked, shares), (2, 0)))
    assert (kernel.op, kernel.inputs, kernel.outputs) == ("Softmax", (scores, mask), (scores,))
    model = make_modelled_costs()
    fused, alone = (model.kernel(one).device_s for one in (kernel, shares.call))
    assert fused < alone + model.kernel(masked.call).device_s / 2


def test_a_long_chain_of_views_is_walked() -> None:
    x = make_tensor("float32", (8, 8), 4)
    chain = [("Neg", OUTSIDE), *(("Identity", i) for i in range(3000)), ("Neg", 3000)]
    ops = [FusibleOp(OpCall(str(i), op, "GPU", {}, (x,), (x,)), ((at, 0),)) for i, (op, at) in enumerate(chain)]
    assert [(one.call.name, one.call.op) for one in fuse(ops, (3001, 0))] == [("3001", "XlaFusion")]


def test_functions_that_call_each_other_without_end_stay_a_guess(monkeypatch) -> None:
    monkeypatch.setattr(cluster_ops, "_MOST", 100)
    endless = function(
        "endless(x: float) -> y: float",
        """
        a = PartitionedCall(x) {f=fn('endless'), Tin=(float,), Tout=(float,)}
        b = PartitionedCall(a:output:0) {f=fn('endless'), Tin=(float,), Tout=(float,)}
        """,
        {"y": "b:output:0"},
    )
    program = session_program("", endless)
    with pytest.raises(SimplaceError, match="step compiles more than"):
        list_cluster_ops(program, FuncRef("endless", {}), the_call(), batch=32)


@pytest.mark.tf
def test_a_function_that_tensorflow_compiles_is_a_product_and_a_fusion(tmp_path) -> None:
    script = tmp_path / "model.py"
    script.write_text(dedent(
        """
        import tensorflow as tf
        w = tf.Variable(tf.random.normal([512, 512]))
        @tf.function(jit_compile=True)
        def step(x):
            y = tf.nn.relu(tf.matmul(x, w) * 2.0 + 1.0)
            return tf.reduce_sum(tf.exp(y) * y)
        step(tf.ones([128, 512]))
        """
    ))  # fmt: skip
    placements = [one.placement for one in place(script, devices="cpu:1,gpu:1").programs]
    (compiled,) = [one for one in placements if one.program.kind == "compiled"]
    done = schedule_placement(compiled, costs="modelled")
    (cost,) = [cost for cost in done.estimated.kernels if cost.device_s]
    model = make_modelled_costs()
    x, w = (make_tensor("float32", shape, 4) for shape in ((128, 512), (512, 512)))
    product = model.kernel(OpCall("", "MatMul", "GPU", {}, (x, w), (x,))).device_s
    assert cost.source == "modelled"
    assert product < cost.device_s < product + 2 * cost.host_s  # one launch more, and a short kernel
