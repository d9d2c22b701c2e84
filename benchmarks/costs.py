"""Record of the cost model of GPU kernels, collectives and whole steps against a folder of public measurements.

Run: python benchmarks/costs.py FOLDER [--write]. Prints, by class of operators and GPU, the mean absolute error of the
plain roofline and of the model fitted to the other GPUs, and the same of whole steps; with --write, fits to all of
them, rewrites the constants' file (simplace/costs/data/gpu_constants.json), and puts the tables into docs/costs.md.
Five minutes of one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for a run by the file's name

from benchmarks.costs_collectives import fit_collectives, measure_mean_errors, tabulate_collectives  # noqa: E402
from benchmarks.costs_data import Measured, MeasuredCollective, list_unknown, read_collectives, read_operators  # noqa: E402
from benchmarks.costs_fit import Constants, fit_constants, predict_seconds  # noqa: E402
from benchmarks.costs_speed import tabulate_speed  # noqa: E402
from benchmarks.costs_steps import judge_steps, read_steps, tabulate_steps  # noqa: E402
from simplace.costs.gpu_constants import FILE, GpuConstants, format_constants, read_constants  # noqa: E402
from simplace.costs.gpu_convolutions import Convolution  # noqa: E402

DOCS = ROOT / "docs" / "costs.md"
SOURCES = (
    "github.com/sitar-lab/NeuSight at 6945927d (MIT): bmm, linear, elementwise, softmax, layer_norm",
    "github.com/ai-dynamo/aiconfigurator at 095f58a5 (Apache-2.0): gemm_bf16, collectives",
    "github.com/baidu-research/DeepBench at da81ba78 (Apache-2.0): gemm, conv, rnn, all-reduce",
    "github.com/VIA-Research/vTrain at f8dda847 (MIT): all-reduce",
    "benchmarks/measured: TensorFlow 2.21, cuDNN 9.14 on an H200: step_s_cudnn9, the errors of tensorflow and latency",
)
# Mean errors on one H200: of TensorFlow's own kernels, whose rates are from there, and of kernels bound by latency.
ON_H200 = {"tensorflow": 0.232, "latency": 0.10}
# Mean errors of NeuSight (ASPLOS 2025) on GPUs and sizes that it had not seen, and of its roofline.
PUBLISHED = {
    "bmm": ("13.8%", "44.2%"), "linear": ("13.9%", "27.8%"), "elementwise": ("19.3%", "26.1%"),
    "softmax": ("13.9%", "32.4%"), "layer_norm": ("56.7%", "58.1%"),
}  # fmt: skip
_ROOFLINE_START_S = 2e-6


@dataclass(frozen=True, slots=True)
class Judged:
    """Record of the errors of a class on one GPU: of the roofline, of the fit to others, of the constants on file."""

    operator: str
    gpu: str
    roofline: np.ndarray
    left_out: np.ndarray
    committed: np.ndarray
    bias: float


def main() -> None:
    """Print the tables, and write what --write asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with neusight-ops/ops.csv, aiconfigurator/*.csv and others")
    parser.add_argument("--write", action="store_true", help="fit to all rows; rewrite the constants and docs/costs.md")
    options = parser.parse_args()
    data, collectives = read_operators(options.folder), read_collectives(options.folder)
    if not data and not collectives:
        parser.error(f"{options.folder} has none of the files of measurements that docs/costs.md names")
    committed = _fit_all(data, collectives) if options.write else read_constants()
    fits = fit_without_each(data)
    judged = list(judge_operators(data, fits, {name: dict(group) for name, group in committed.groups.items()}))
    if options.write:
        errors = {one: _join_errors(judged, one) for one in dict.fromkeys(each.operator for each in judged)}
        errors |= ON_H200
        if collectives:
            errors |= measure_mean_errors(collectives)
        FILE.write_text(format_constants(GpuConstants(committed.groups, errors, SOURCES)), encoding="utf-8")
    unknown = sorted(list_unknown(options.folder))
    if unknown:
        print(f"left out, since no data sheet is on file: {', '.join(unknown)}\n")
    tables = [*_format_tables(judged), *_format_collectives(collectives, committed)]
    without = {gpu: _complete_constants(fitted, committed) for gpu, fitted in fits.items()}
    tables += tabulate_steps(judge_steps(read_steps(options.folder), without, committed))
    print("\n".join([*tables, *tabulate_speed()]))
    if options.write:
        _write_docs(tables)


def fit_without_each(data: Mapping[str, Measured]) -> dict[str, Constants]:
    """Fit to all GPUs but one, for each, by the one left out."""
    to_all = fit_constants(data)
    gpus = sorted({gpu for one in data.values() for gpu in one.gpus.tolist()})
    return {gpu: fit_constants(data, to_all, gpu) for gpu in gpus}


def judge_operators(
    data: Mapping[str, Measured], fits: Mapping[str, Constants], committed: Constants
) -> Iterator[Judged]:
    """Yield the errors on each GPU of the constants that were fitted without it."""
    for gpu, fitted in fits.items():
        for name, one in data.items():
            own = one.select(one.gpus == gpu)
            if not len(own.seconds):
                continue
            predicted = predict_seconds(fitted, own)
            yield Judged(
                name, gpu, np.abs(_draw_roofline(own) / own.seconds - 1), np.abs(predicted / own.seconds - 1),
                np.abs(predict_seconds(committed, own) / own.seconds - 1),
                float(np.median(predicted / own.seconds) - 1),
            )  # fmt: skip


def _fit_all(data: Mapping[str, Measured], collectives: Sequence[MeasuredCollective]) -> GpuConstants:
    groups: Constants = (
        {**{name: dict(group) for name, group in read_constants().groups.items()}} if FILE.exists() else {}
    )
    groups.update(fit_constants(data))
    if collectives:
        groups["collectives"] = fit_collectives(collectives)
    # Through the file's text, so that what is judged is what is written.
    rounded = {name: {key: float(f"{value:.4g}") for key, value in group.items()} for name, group in groups.items()}
    return GpuConstants(rounded, {}, SOURCES)


def _complete_constants(fitted: Constants, committed: GpuConstants) -> GpuConstants:
    """Return constants with those of collectives, of which there is one machine of each kind, as they are on file."""
    return GpuConstants({**committed.groups, **fitted}, committed.errors, committed.sources)


def _draw_roofline(data: Measured) -> np.ndarray:
    """Return the time of the slower of arithmetic and traffic at the data sheet's peaks, and a start."""
    s = data.sizes
    width = 2 if data.operator in ("gemm_bf16", "gemm_fp16") or "_fp16_" in data.operator else 4
    if data.operator in ("elementwise", "softmax", "layer_norm"):
        bytes_, flops = 4 * s["rows"] * s["cols"] * (1 + s["inputs"]), 0.0
    elif data.operator.startswith("conv"):
        shape = Convolution(**{name: s[name] for name in Convolution._fields})
        bytes_ = width * (shape.image + shape.weights + shape.made)
        flops = 2 * shape.made * shape.in_channels * shape.taps
    elif data.operator.startswith("rnn"):
        weights, columns = s["gates"] * s["hidden"] ** 2, s["batch"] * s["steps"]
        bytes_, flops = width * (weights + (s["gates"] + 1) * s["hidden"] * columns), 2 * weights * columns
    else:
        b, m, n, k = (s[name] for name in "bmnk")
        bytes_, flops = width * b * (m * k + k * n + m * n), 2 * b * m * n * k
    found: np.ndarray = np.maximum(bytes_ / data.figures.bandwidth, flops / data.peaks) + _ROOFLINE_START_S
    return found


def _join_errors(judged: Sequence[Judged], operator: str) -> float:
    return float(np.concatenate([one.left_out for one in judged if one.operator == operator]).mean())


def _format_tables(judged: Sequence[Judged]) -> Iterator[str]:
    yield "Kernels, by class and GPU. The model was fitted to all other GPUs of the table.\n"
    yield "| class | GPU | rows | roofline | model, GPU left out | bias | model as shipped |"
    yield "|---|---|---|---|---|---|---|"
    for one in sorted(judged, key=lambda each: (each.operator, each.gpu)):
        means = (f"{errors.mean():.1%}" for errors in (one.roofline, one.left_out, one.committed))
        first, second, third = means
        yield f"| {one.operator} | {one.gpu} | {len(one.left_out):,} | {first} | {second} | {one.bias:+.0%} | {third} |"
    yield "\nBy class, over all rows, beside what NeuSight's authors publish for GPUs that it had not seen.\n"
    yield "| class | rows | roofline | model, GPU left out | median | as shipped | NeuSight | its roofline |"
    yield "|---|---|---|---|---|---|---|---|"
    for operator in dict.fromkeys(one.operator for one in judged):
        yield _format_total(operator, [one for one in judged if one.operator == operator])
    yield "\nBy the GPU left out, by collection, and over all rows: the bar was 12 %.\n"
    yield "| rows of | rows | roofline | model, GPU left out | median | as shipped |"
    yield "|---|---|---|---|---|---|"
    for name, chosen in _group_rows(judged).items():
        cells = _format_total(name, chosen).split(" | ")
        yield f"{' | '.join(cells[:-2])} |"


def _group_rows(judged: Sequence[Judged]) -> Mapping[str, list[Judged]]:
    """Return the errors by left-out GPU, then by collection, then all of them."""
    groups: dict[str, list[Judged]] = {}
    for one in sorted(judged, key=lambda each: each.gpu):
        groups.setdefault(one.gpu, []).append(one)
    for one in judged:
        is_half = "fp16" in one.operator
        collection = "NeuSight" if one.operator in PUBLISHED else "DeepBench, FP16" if is_half else "DeepBench, FP32"
        groups.setdefault("AIConfigurator, BF16" if one.operator == "gemm_bf16" else collection, []).append(one)
    return {**groups, "all": list(judged)}


def _format_total(name: str, chosen: Sequence[Judged]) -> str:
    roofline, left_out, committed = (
        np.concatenate([getattr(one, key) for one in chosen]) for key in ("roofline", "left_out", "committed")
    )
    published, its_roofline = PUBLISHED.get(name, ("-", "-"))
    cells = (name, f"{len(left_out):,}", f"{roofline.mean():.1%}", f"{left_out.mean():.1%}",
             f"{np.median(left_out):.1%}", f"{committed.mean():.1%}", published, its_roofline)  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _format_collectives(rows: Sequence[MeasuredCollective], committed: GpuConstants) -> Iterator[str]:
    if not rows:
        return
    yield "\nCollectives: mean errors of the fit to all rows, and of fits without a machine (PCIe), a size (NVLink).\n"
    yield "| machine (source) | operation | above 1 MB | up to 1 MB | left out, above | left out, up to 1 MB | rows |"
    yield "|---|---|---|---|---|---|---|"
    for cells in tabulate_collectives(rows, committed.groups["collectives"]):
        yield f"| {' | '.join(cells)} |"


def _write_docs(tables: Sequence[str]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- tables -->\n")
    _, _, after = rest.partition("<!-- end of tables -->")
    lines = "\n".join(tables)
    DOCS.write_text(f"{before}<!-- tables -->\n{lines}\n<!-- end of tables -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
