"""Placed graphs of the shapes that figures must cope with."""

from __future__ import annotations

from itertools import pairwise

from simplace.devices.device_set import local_devices, seen_from_the_first
from simplace.graph.graph_def import parse_text
from simplace.graph.node_def import GraphDef
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Program
from tests.worlds import constant, node, place, shipped


def empty() -> Placement:
    """Place a graph without nodes."""
    return place_program(
        Program("nothing", "graph", GraphDef((), {})), local_devices([("CPU", 1), ("GPU", 1)]), shipped()
    )


def towers(gpus: int, layers: int = 2) -> Placement:
    """Place one model per GPU, fed and summed up on the CPU: names as TensorFlow makes them unique."""
    lines = [constant("batch", (8, 8), "/cpu:0"), constant("other", (8, 8), "/cpu:0")]
    for gpu in range(gpus):
        suffix = f"_{gpu}" if gpu else ""
        before = "start"
        lines.append(node(f"start{suffix}", "Add", "batch", "other", device=f"/gpu:{gpu}"))
        before += suffix
        for layer in range(layers):
            scope = f"tower{suffix}/dense_{layer}"
            lines.append(node(f"{scope}/MatMul", "MatMul", before, "batch", device=f"/gpu:{gpu}"))
            lines.append(node(f"{scope}/Relu", "Relu", f"{scope}/MatMul", device=f"/gpu:{gpu}"))
            before = f"{scope}/Relu"
        lines.append(node(f"out{suffix}", "Neg", before, device=f"/gpu:{gpu}"))
    ends = [f"out_{gpu}" if gpu else "out" for gpu in range(gpus)]
    count = f'attr {{ key: "N" value {{ i: {gpus} }} }}'
    lines.append(node("sum", "AddN", *ends, device="/cpu:0", extra=count))
    return place(*lines, gpus=gpus)


def two_tasks(gpus: int) -> Placement:
    """Place a model per GPU of two tasks: all read a variable on the first task's CPU, and are summed up there."""
    tasks = [f"/job:worker/replica:0/task:{i}/device:" for i in range(2)]
    shape = "shape { dim { size: 16 } dim { size: 1 } }"
    lines = [
        node("weight", "VariableV2", device=f"{tasks[0]}CPU:0", extra=f'attr {{ key: "shape" value {{ {shape} }} }}')
    ]
    lines += [node("weight/read", "Identity", "weight", device=f"{tasks[0]}CPU:0")]
    for i, device in enumerate(f"{task}GPU:{gpu}" for task in tasks for gpu in range(gpus)):
        lines.append(node(f"tower_{i}/Neg", "Neg", "weight/read", device=device))
        lines += [node(f"tower_{i}/Relu_{k}", "Relu", f"tower_{i}/Neg", device=device) for k in range(4)]
        lines.append(node(f"loss_{i}", "Neg", f"tower_{i}/Relu_3", device=device))
    count = f'attr {{ key: "N" value {{ i: {2 * gpus} }} }}'
    lines.append(node("sum", "AddN", *(f"loss_{i}" for i in range(2 * gpus)), device=f"{tasks[0]}CPU:0", extra=count))
    devices = [f"{task}{kind}" for task in tasks for kind in ("CPU:0", *(f"GPU:{i}" for i in range(gpus)))]
    program = Program("step", "graph", parse_text("\n".join(lines)), soft_placement=True)
    return place_program(program, seen_from_the_first(devices), shipped())


def training_step(layers: int) -> Placement:
    """Place a model, its gradients and an optimizer: about ten nodes a layer on one GPU."""
    lines = [constant("x", (8, 8), "/cpu:0")]
    before = "x"
    for i in range(layers):
        scope = f"model/dense_{i}"
        lines.append(node(f"{scope}/kernel", "Neg", "x", device="/gpu:0"))
        lines.append(node(f"{scope}/MatMul", "MatMul", before, f"{scope}/kernel", device="/gpu:0"))
        lines.append(node(f"{scope}/Relu", "Relu", f"{scope}/MatMul", device="/gpu:0"))
        before = f"{scope}/Relu"
    for i in reversed(range(layers)):
        scope = f"gradient_tape/model/dense_{i}"
        lines.append(node(f"{scope}/ReluGrad", "ReluGrad", before, f"model/dense_{i}/Relu", device="/gpu:0"))
        lines.append(node(f"{scope}/MatMul", "MatMul", f"{scope}/ReluGrad", before, device="/gpu:0"))
        before = f"{scope}/MatMul"
        number = f"_{i}" if i else ""
        for op in ("Mul", "Sub"):
            lines.append(node(f"adam/{op}{number}", op, before, f"model/dense_{i}/kernel", device="/gpu:0"))
    return place(*lines)


def loop() -> Placement:
    """Place a while loop, lowered as TensorFlow does: a cycle."""
    frame = 'attr { key: "frame_name" value { s: "loop" } }'
    two = 'attr { key: "N" value { i: 2 } }'
    return place(
        constant("x", (4,)),
        constant("limit", ()),
        node("enter", "Enter", "x", extra=frame),
        node("merge", "Merge", "enter", "next", extra=two),
        node("total", "Max", "merge", "axes", extra='attr { key: "Tidx" value { type: DT_INT32 } }'),
        constant("axes", (1,), dtype="DT_INT32"),
        node("less", "Less", "total", "limit"),
        'node { name: "cond" op: "LoopCond" input: "less" }',
        node("switch", "Switch", "merge", "cond"),
        node("body/Relu", "Relu", "switch:1", device="/gpu:1"),
        node("body/Neg", "Neg", "body/Relu", device="/gpu:0"),
        node("next", "NextIteration", "body/Neg"),
        node("exit", "Exit", "switch"),
    )


def chain(count: int, op: str = "Relu") -> Placement:
    """Place one op after the other."""
    lines = [constant("n0", (4,), "/gpu:0")]
    lines += [node(f"n{i}", op, f"n{i - 1}", device="/gpu:0") for i in range(1, count)]
    return place(*lines)


def passing_on(device: str) -> Placement:
    """Place a constant, and twenty nodes that pass it on and ask for `device`."""
    names = ["c", *(f"n{i}" for i in range(20))]
    lines = [node(new, "Identity", old, device=device) for old, new in pairwise(names)]
    return place(constant("c", (4,)), *lines)
