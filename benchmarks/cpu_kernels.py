"""Time kernels on this computer's CPU, and hold the roofline against them: as assumed, and calibrated.

Run: python -m benchmarks.cpu_kernels [--steps N] [--best]. Kernels run alone, on one thread, without oneDNN, as
`simplace measure` runs them; each time is the median over the steps, or with `--best` the least, which a busy machine
disturbs less. The calibration is made in the same run. Errors are means of |predicted / measured - 1|; the bias has
the sign. MatMul, AddV2, Exp and Sum are what the calibration itself times, at other sizes for the most part; all other
ops it has not seen.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from simplace.costs.chosen_cpu import use_calibration
from simplace.costs.estimate import estimate_costs
from simplace.costs.roofline import make_roofline
from simplace.measure.measurement import Measured, MeasureOptions, measure_target
from simplace.measure.step_comparison import graph_that_ran
from simplace.views.text.step_agreement import describe_cpu
from viz import Column, Table, to_text

KIB = 1 << 10
SIZES = {"1 KiB": KIB, "16 KiB": 16 * KIB, "256 KiB": 256 * KIB, "4 MiB": 4096 * KIB, "64 MiB": 65536 * KIB}
SIDES = (64, 96, 128, 192, 256, 384, 512, 1024)
OBLONG = ((32, 1024, 1024), (1024, 64, 1024), (8, 256, 512))  # rows, of the sum, columns
ROWS = ((32, 10), (128, 1000), (1024, 1000), (4096, 128))
IMAGES = ((1, 224, 3, 64, 7, 2), (8, 56, 64, 64, 3, 1), (8, 28, 128, 128, 3, 1), (8, 28, 128, 256, 1, 1))
ELEMENTWISE = ("AddV2", "Mul", "Neg", "Relu", "Tanh", "Exp")


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15, help="steps to trace (default: %(default)s)")
    parser.add_argument("--best", action="store_true", help="take the least of the times of a kernel, not the median")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in build_graphs().items():
            file = Path(folder, f"{name}.pb")
            file.write_bytes(graph)
            wanted = MeasureOptions(steps=options.steps, warm_up=5, calibrates=not found, timeout=900.0)
            found.append(measure_target(file, wanted, Measured))
    report(found, min if options.best else median)


def build_graphs() -> dict[str, bytes]:
    """Return graphs of kernels on constants; a node's name begins with its class.

    Each has tensors of one size, as a model has: else large ones would take the small ones' data out of the caches.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    builders = {label.replace(" ", "_"): partial(build_elementwise, size) for label, size in SIZES.items()}
    builders |= {"products": build_products, "rows": build_rows, "images": build_images}
    made = {}
    for name, build in builders.items():
        with tf.Graph().as_default() as graph:
            build(tf)
        made[name] = bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
    return made


def build_elementwise(size: int, tf: Any) -> None:
    """Build elementwise ops and reductions on tensors of so many bytes."""
    ops, x = tf.raw_ops, tf.constant(0.5, tf.float32, [size // 4])
    for kind in ELEMENTWISE:
        inputs = {"x": x, "y": x} if kind in ("AddV2", "Mul") else {"features" if kind == "Relu" else "x": x}
        getattr(ops, kind)(**inputs, name=f"{kind}/{size >> 10}_KiB")
    ops.Cast(x=x, DstT=tf.float64, name=f"Cast/{size >> 10}_KiB")
    matrix = tf.constant(0.5, tf.float32, [size // 256, 64])
    for kind in ("Sum", "Max", "Mean"):
        for axis in (0, 1):
            getattr(ops, kind)(input=matrix, axis=axis, name=f"reductions/{kind}_{axis}_{size >> 10}_KiB")


def build_products(tf: Any) -> None:
    """Build products of square and of oblong matrices."""
    shapes = [("float32", side, side, side) for side in SIDES] + [("float64", side, side, side) for side in (128, 512)]
    for dtype, rows, inner, columns in [*shapes, *(("float32", *shape) for shape in OBLONG)]:
        left, right = (tf.constant(0.5, dtype, shape) for shape in ((rows, inner), (inner, columns)))
        tf.raw_ops.MatMul(a=left, b=right, name=f"MatMul/{dtype}_{rows}_{inner}_{columns}")


def build_rows(tf: Any) -> None:
    """Build what layers do with rows of features."""
    ops = tf.raw_ops
    for rows, columns in ROWS:
        x, name = tf.constant(0.5, tf.float32, [rows, columns]), f"{rows}_{columns}"
        ops.Softmax(logits=x, name=f"Softmax/{name}")
        ops.BiasAdd(value=x, bias=tf.constant(0.5, tf.float32, [columns]), name=f"BiasAdd/{name}")
        ops.Transpose(x=x, perm=tf.constant([1, 0]), name=f"Transpose/{name}")


def build_images(tf: Any) -> None:
    """Build convolutions of images."""
    for batch, side, channels, filters, window, stride in IMAGES:
        tf.raw_ops.Conv2D(
            input=tf.constant(0.5, tf.float32, [batch, side, side, channels]),
            filter=tf.constant(0.5, tf.float32, [window, window, channels, filters]),
            strides=[1, stride, stride, 1], padding="SAME", name=f"Conv2D/{batch}_{side}_{channels}_{window}",
        )  # fmt: skip


def report(found: Sequence[Measured], choose: Callable[[list[float]], float]) -> None:
    """Print what the CPU reaches, each kernel, and the errors by class."""
    cpu = found[0].cpu
    if cpu is None:
        raise SystemExit("nothing was calibrated")
    models = (make_roofline(), make_roofline(cpu=use_calibration(cpu)))
    rows = []
    for measured in found:
        graph, steps = graph_that_ran(measured), [step.kernel_seconds for step in measured.settings[0].steps]
        times = {name: choose([step[name] for step in steps]) for name in steps[0]}
        costs = [estimate_costs(graph, model).kernels for model in models]
        for i, node in enumerate(graph.nodes):
            if "/" in node.name and node.name in times and costs[0][i].host_s:
                rows.append((node.name, times[node.name], costs[0][i].host_s, costs[1][i].host_s))
    print(describe_cpu(cpu))
    heads = ("kernel", "measured", "roofline", "calibrated", "calibrated / measured")
    cells = [(n, *(f"{t * 1e6:,.1f} µs" for t in (was, *both)), f"{both[1] / was:.2f}") for n, was, *both in rows]
    print(to_text(Table(tuple(Column(head, "right" if head != "kernel" else "left") for head in heads), tuple(cells))))
    print("\n| class | kernels | roofline | calibrated | median | bias |\n|---|---|---|---|---|---|")
    classes = sorted({name.split("/")[0] for name, *_ in rows})
    for kind in (*classes, "all"):
        own = [row for row in rows if kind in ("all", row[0].split("/")[0])]
        plain, better = ([abs(row[at] / row[1] - 1) for row in own] for at in (2, 3))
        bias = fmean(row[3] / row[1] - 1 for row in own)
        print(
            f"| {kind} | {len(own)} | {fmean(plain):.0%} | {fmean(better):.0%} | {median(better):.0%} | {bias:+.0%} |"
        )


if __name__ == "__main__":
    main()
