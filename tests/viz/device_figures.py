"""Figures of the shapes that device placements have, for tests and for looking at."""

from __future__ import annotations

from itertools import pairwise

from viz.figure import Edge, Figure, Group, Node


def device(kind: str, index: int, subtitle: str = "") -> Group:
    return Group(f"{kind}:{index}", f"{kind}:{index}", subtitle, kind, index)


def every_mark() -> Figure:
    nodes = (
        Node("x", "x", "float32 [4]", "CPU:0", "argument"),
        Node("v", "v", group="GPU:0", kind="variable"),
        Node("dense", "dense", group="GPU:0", kind="scope", count=8),
        Node("size", "size", "Size", "GPU:0", host_memory=True),
        Node("lookup", "lookup", "LookupTableFindV2", "CPU:0", requested="GPU:0"),
        Node("send", "float32 [4]", group="GPU:0", kind="copy"),
        Node("y", "y", group="CPU:0", kind="result"),
        Node("free", "free"),
    )
    edges = (
        Edge("x", "dense", "copy", "float32 [4] · 16 B"),
        Edge("v", "dense", count=4),
        Edge("dense", "size", label="int32 []"),
        Edge("dense", "send"),
        Edge("send", "y"),
        Edge("x", "lookup"),
        Edge("lookup", "y", "control"),
    )
    return Figure("Every mark", "each once", (device("CPU", 0, "3 ops"), device("GPU", 0)), nodes, edges)


def two_gpu_model() -> Figure:
    groups = (
        device("CPU", 0, "4 ops · 2.1 MB"),
        device("GPU", 0, "5 ops · 4.2 MB"),
        device("GPU", 1, "4 ops · 3.1 MB"),
    )
    nodes = (
        Node("x", "x", "float32 [256,784]", "CPU:0", "argument"),
        Node("labels", "labels", "int64 [256]", "CPU:0", "argument"),
        Node("dense/kernel", "dense/kernel", "", "GPU:0", "variable"),
        Node("dense/MatMul", "dense/MatMul", "MatMul", "GPU:0"),
        Node("dense/BiasAdd", "dense/BiasAdd", "BiasAdd", "GPU:0"),
        Node("dense/Relu", "dense/Relu", "Relu", "GPU:0"),
        Node("dense_1/kernel", "dense_1/kernel", "", "GPU:1", "variable"),
        Node("dense_1/MatMul", "dense_1/MatMul", "MatMul", "GPU:1"),
        Node("dense_1/Softmax", "dense_1/Softmax", "Softmax", "GPU:1"),
        Node("lookup", "lookup", "LookupTableFindV2", "CPU:0", requested="GPU:1"),
        Node("loss", "loss", "SparseSoftmaxCrossEntropy", "GPU:1"),
        Node("Shape", "Shape", "Shape", "GPU:0", host_memory=True),
        Node("result", "result", "float32 []", "CPU:0", "result"),
    )
    edges = (
        Edge("x", "dense/MatMul", "copy", "float32 [256,784] · 784 KiB"),
        Edge("dense/kernel", "dense/MatMul"),
        Edge("dense/MatMul", "dense/BiasAdd"),
        Edge("dense/BiasAdd", "dense/Relu"),
        Edge("dense/Relu", "dense_1/MatMul", "copy", "float32 [256,512] · 512 KiB"),
        Edge("dense_1/kernel", "dense_1/MatMul"),
        Edge("dense_1/MatMul", "dense_1/Softmax"),
        Edge("dense_1/Softmax", "loss"),
        Edge("labels", "lookup"),
        Edge("lookup", "loss", "copy", "int64 [256] · 2 KiB"),
        Edge("loss", "result", "copy", "float32 [] · 4 B"),
        Edge("dense/MatMul", "Shape"),
        Edge("Shape", "result", "control"),
    )
    return Figure("Model parallelism on two GPUs", "agrees with TensorFlow: 13 of 13", groups, nodes, edges)


def two_tasks() -> Figure:
    """Draw devices of two tasks, each task a box, and one device of neither."""
    groups = (
        Group("a", "CPU:0", kind="CPU", frame="task 0"),
        Group("b", "GPU:0", kind="GPU", frame="task 1"),
        Group("c", "GPU:1", kind="GPU", index=1, frame="task 0"),
        Group("d", "CPU:0", kind="CPU", index=1),
    )
    nodes = tuple(Node(f"{group.id}/op", "op", group=group.id) for group in groups)
    return Figure("two tasks", groups=groups, nodes=nodes, edges=(Edge("a/op", "b/op", "copy", "float32 [2] · 8 B"),))


def towers() -> Figure:
    nodes = [
        Node("batch", "batch", "float32 [64,32]", "CPU:0", "argument"),
        Node("weights", "weights", "float32 [32,8]", "CPU:0", "variable"),
        Node("split", "split", "Split", "CPU:0"),
        Node("AddN", "AddN", "", "CPU:0"),
        Node("apply", "ResourceApplyGradientDescent", "", "CPU:0"),
    ]
    edges = [Edge("batch", "split"), Edge("AddN", "apply")]
    for index in range(2):
        matmul, loss, gradient = (f"tower_{index}/{op}" for op in ("MatMul", "loss", "MatMul_grad"))
        nodes += [Node(name, name, "", f"GPU:{index}") for name in (matmul, loss, gradient)]
        edges += [
            Edge("split", matmul, "copy", "float32 [32,32] · 4 KiB"),
            Edge("weights", matmul, "copy", "float32 [32,8] · 1 KiB"),
            Edge(matmul, loss),
            Edge(loss, gradient),
            Edge(gradient, "AddN", "copy", "float32 [32,8] · 1 KiB"),
        ]
    groups = (device("CPU", 0, "5 ops"), device("GPU", 0, "3 ops"), device("GPU", 1, "3 ops"))
    return Figure("Data-parallel towers", "variables on the CPU, a tower per GPU", groups, tuple(nodes), tuple(edges))


def training_step() -> Figure:
    layers = (
        ("sequential/conv2d", 12),
        ("sequential/conv2d_1", 12),
        ("sequential/flatten", 4),
        ("sequential/dense", 8),
        ("sequential/dense_1", 8),
        ("sparse_categorical_crossentropy", 37),
        ("gradient_tape", 412),
        ("clip_by_global_norm", 31),
        ("Adam/update", 88),
    )
    on_cpu = (("IteratorGetNext", 3), ("cond", 12), ("assert_shapes", 9), ("metrics", 21), ("Adam", 44))
    nodes = [Node("iterator", "iterator", "variant", "CPU:0", "argument"), Node("logs", "logs", "", "CPU:0", "result")]
    nodes += [Node(name, name, "", "CPU:0", "scope", count) for name, count in on_cpu]
    edges = [
        Edge("iterator", "IteratorGetNext"),
        Edge("IteratorGetNext", "cond", count=2),
        Edge("cond", "assert_shapes", "control", count=6),
        Edge("assert_shapes", "metrics", "control", count=2),
        Edge("metrics", "logs"),
    ]
    for index in range(2):
        gpu = f"GPU:{index}"
        prefix = f"replica_{index}/" if index else ""
        names = [prefix + name for name, _ in layers]
        requested = {prefix + "sequential/flatten": "CPU:0"}
        nodes.append(Node(f"{gpu}/variables", "conv2d/kernel", "and 3 others", gpu, "variable"))
        nodes += [
            Node(name, name, "", gpu, "scope", count, requested.get(name, ""))
            for name, (_, count) in zip(names, layers, strict=True)
        ]
        edges += [Edge(one, other, count=1 + place % 4) for place, (one, other) in enumerate(pairwise(names))]
        edges += [Edge(names[place], prefix + "gradient_tape", count=place + 2) for place in (0, 1, 3, 4)]
        edges += [
            Edge(f"{gpu}/variables", names[0]),
            Edge(f"{gpu}/variables", names[8], count=4),
            Edge("cond", names[0], "copy", "float32 [32,28,28,1] · 98 KiB"),
            Edge("cond", names[5], "copy", "int64 [32] · 256 B"),
            Edge(names[5], "metrics", "copy", "2 tensors · 12 B", 2),
            Edge("Adam", names[8], "copy", "3 tensors · 16 B", 3),
            Edge(names[7], "Adam", "control", count=3),
        ]
    groups = (
        device("CPU", 0, "91 ops"),
        device("GPU", 0, "616 ops · 12.4 MB"),
        device("GPU", 1, "616 ops · 12.4 MB"),
    )
    return Figure("Keras training step", "1,323 ops in 23 scopes", groups, tuple(nodes), tuple(edges))


def shards(count: int) -> Figure:
    nodes = [
        Node("x", "x", "float32 [64,128]", "CPU:0", "argument"),
        Node("split", "split", "Split", "CPU:0"),
        Node("concat", "concat", "ConcatV2", "CPU:0"),
        Node("y", "y", "", "CPU:0", "result"),
    ]
    edges = [Edge("x", "split"), Edge("concat", "y")]
    for index in range(count):
        matmul, relu = f"MatMul_{index}", f"Relu_{index}"
        nodes += [Node(matmul, matmul, "", f"GPU:{index}"), Node(relu, relu, "", f"GPU:{index}")]
        edges += [
            Edge("split", matmul, "copy", "float32 [8,128] · 4 KiB"),
            Edge(matmul, relu),
            Edge(relu, "concat", "copy", "float32 [8,64] · 2 KiB"),
        ]
    gpus = tuple(device("GPU", index, "2 ops · 64 KiB") for index in range(count))
    return Figure(f"A shard on each of {count} GPUs", "", (device("CPU", 0), *gpus), tuple(nodes), tuple(edges))


HOSTILE_NAMES = (
    '"quoted" \\ back\\slash\\',
    '<script>alert("x")</script>',
    "{rec|ord}<p>|",
    "<b>html</b>",
    "line\nbreak\ttab",
    "名前/スコープ/行列積",
    "\\N \\G \\l \\E",
    "&amp; &#0; &nosuch; &",
    "name:port:ne",
    "deep/" + "scope/" * 1700 + "MatMul",
    "",
    "   ",
    "\x00\x1b[31mred",
    "\ud800 lone",
    "\u202ereversed",
    "🦜 parrot",
    "--",
    "->",
    "node",
    "Ünïcode/Привет/مرحبا",
)


def hostile() -> Figure:
    groups = (
        Group('d "0" <x>', '<b>CPU</b> "0"\\', '3 < 4 & 5 > "2"', "CPU", 0),
        Group("cluster}", "GPU {1}|\n", "", "GPU", 1),
    )
    nodes = tuple(
        Node(name, name, name[:20], groups[place % 2].id, tooltip=name, requested=name[:9] if place % 5 == 0 else "")
        for place, name in enumerate(HOSTILE_NAMES)
    )
    edges = tuple(
        Edge(one.id, other.id, "copy" if place % 2 else "data", one.label[:30])
        for place, (one, other) in enumerate(pairwise(nodes))
    )
    return Figure('Hostile <script> & "names" \\N', "</svg><script>", groups, nodes, edges)


FIGURES = {
    "every_mark": every_mark,
    "two_gpu_model": two_gpu_model,
    "towers": towers,
    "two_tasks": two_tasks,
    "training_step": training_step,
    "eight_gpus": lambda: shards(8),
    "hostile": hostile,
}
