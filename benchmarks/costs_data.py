"""Read a folder of public measurements of GPU kernels and collectives, as arrays for the cost model's formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from simplace.costs.gpu_kernels import GpuFigures, read_figures
from simplace.costs.gpu_sheet import GpuSheet
from simplace.costs.gpu_sheets import find_sheet

Row = Mapping[str, str]
_OF_TWO_TENSORS = ("add", "mul", "div", "pow")
_GATES = {"vanilla": 1, "lstm": 4, "gru": 3}
_OLD = ("Tesla M40", "GeForce GTX TITAN X")  # Maxwell and its libraries: TensorFlow 2.16 has no kernels for them


class Column(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers, one a row, whose floor division takes a fifth of the time that numpy's own takes."""

    def __floordiv__(self, other: Any) -> Any:
        return np.floor(self / other)

    def __rfloordiv__(self, other: Any) -> Any:
        return np.floor(other / self)


def make_column(values: Iterable[float]) -> Column:
    """Return values as a column."""
    return np.array(list(values), float).view(Column)


@dataclass(frozen=True)
class Measured:
    """Record of measured kernels of one class: the driver's name of each row's GPU, sizes by name, and seconds."""

    operator: str
    gpus: np.ndarray
    sizes: Mapping[str, np.ndarray]
    seconds: np.ndarray
    figures: GpuFigures
    peaks: np.ndarray

    def select(self, rows: np.ndarray) -> Measured:
        """Return some of the rows, by a mask."""
        figures = GpuFigures(*(getattr(self.figures, field.name)[rows] for field in fields(GpuFigures)))
        sizes = {name: values[rows] for name, values in self.sizes.items()}
        return Measured(self.operator, self.gpus[rows], sizes, self.seconds[rows], figures, self.peaks[rows])


@dataclass(frozen=True, slots=True)
class MeasuredCollective:
    """Record of a measured collective: `algorithm` is what ran it where that was not NCCL."""

    gpu: str
    op: str
    gpus: int
    bytes: int
    seconds: float
    source: str
    algorithm: str = ""


def read_operators(folder: Path) -> dict[str, Measured]:
    """Return all kernels by class: those of NeuSight by its names, products of AIConfigurator and of DeepBench."""
    rows = list(_read_rows(folder / "neusight-ops/ops.csv"))
    found = {}
    for operator in ("bmm", "linear", "elementwise", "softmax", "layer_norm"):
        chosen = [row for row in rows if row["op"] == operator]
        if chosen:
            found[operator] = _gather_rows(operator, chosen, False)
    tensor = list(_read_rows(folder / "aiconfigurator/gemm_bf16.csv"))
    if tensor:
        found["gemm_bf16"] = _gather_rows("gemm_bf16", tensor, True)
    older = list(_read_rows(folder / "deepbench/gemm.csv"))
    half = [row for row in older if row["math"].startswith("tensor cores")]
    if half:
        found["gemm_fp16"] = _gather_rows("gemm_fp16", half, True)
    plain = [row for row in older if row["math"] == "float32" and row["dtype"] == "float32" and row["gpu"] not in _OLD]
    if plain:
        found["gemm_fp32"] = _gather_rows("gemm_fp32", plain, False)
    found.update(_read_convolutions(folder))
    found.update(_read_recurrences(folder))
    return found


def _read_convolutions(folder: Path) -> dict[str, Measured]:
    """Return DeepBench's convolutions by pass, those on tensor cores apart."""
    rows = list(_read_rows(folder / "deepbench/conv.csv"))
    found = {}
    for kind, measured in (("forward", "forward"), ("input", "backward_input"), ("filter", "backward_filter")):
        own = [row for row in rows if row["pass"] == measured and row["gpu"] not in _OLD]
        plain = [row for row in own if row["dtype"] == "float32"]
        half = [row for row in own if row["math"].startswith("tensor cores")]
        for name, chosen in (("conv", plain), ("conv_fp16", half)):
            if chosen:
                found[f"{name}_{kind}"] = _gather_rows(f"{name}_{kind}", chosen, name != "conv")
    return found


def _read_recurrences(folder: Path) -> dict[str, Measured]:
    """Return DeepBench's recurrent layers by pass, those on tensor cores apart."""
    rows = [row for row in _read_rows(folder / "deepbench/rnn.csv") if row["gpu"] not in _OLD]
    found = {}
    for kind, measured in (("forward", "forward"), ("input", "backward_input"), ("weights", "backward_weights")):
        for name in ("rnn", "rnn_fp16"):
            math = "float32" if name == "rnn" else "tensor cores, float32 sums"
            chosen = [row for row in rows if row["pass"] == measured and row["math"] == math]
            if chosen:
                found[f"{name}_{kind}"] = _gather_rows(f"{name}_{kind}", chosen, name != "rnn")
    return found


def _measure_layers(rows: list[Row]) -> dict[str, np.ndarray]:
    """Return the fields of `Recurrence`, for rows that have a cell."""
    if "cell" not in rows[0]:
        return {}
    found = {key: np.array([float(row[key]) for row in rows]) for key in ("hidden", "batch", "steps")}
    return {"gates": np.array([float(_GATES[row["cell"]]) for row in rows]), **found}


def _measure_images(rows: list[Row]) -> dict[str, np.ndarray]:
    """Return the fields of `Convolution`, for rows that have an image."""
    if "kernel_h" not in rows[0]:
        return {}
    found = {key: np.array([float(row[key]) for row in rows]) for key in (
        "batch", "in_channels", "height", "width", "out_channels", "kernel_h", "kernel_w")}  # fmt: skip
    strides = {end: np.array([float(row[f"stride_{end}"]) for row in rows]) for end in "hw"}
    pads = {end: np.array([float(row[f"pad_{end}"]) for row in rows]) for end in "hw"}
    for end, side in (("h", "height"), ("w", "width")):
        found[f"out_{end}"] = (found[side] + 2 * pads[end] - found[f"kernel_{end}"]) // strides[end] + 1
    found["stride"] = strides["h"] * strides["w"]
    return found


def read_collectives(folder: Path) -> list[MeasuredCollective]:
    """Return all measured collectives; the source is the name of the folder."""
    found = []
    for name in ("aiconfigurator/collectives.csv", "vtrain/all_reduce.csv", "deepbench/allreduce.csv"):
        for row in _read_rows(folder / name):
            values = row["gpu"], row["op"], int(row["gpus"]), int(row["bytes"]), float(row["seconds"])
            algorithm = "" if row.get("algorithm", "NCCL").startswith("NCCL") else row["algorithm"]
            found.append(MeasuredCollective(*values, name.split("/")[0], algorithm))
    return found


def list_unknown(folder: Path) -> set[str]:
    """Return the GPUs of the kernels in a folder that the library has no data sheet of."""
    deepbench = (f"deepbench/{name}.csv" for name in ("gemm", "conv", "rnn"))
    files = ("neusight-ops/ops.csv", "aiconfigurator/gemm_bf16.csv", *deepbench)
    return {row["gpu"] for name in files for row in _read_rows(folder / name) if find_sheet(row["gpu"]) is None}


def _read_rows(path: Path) -> Iterator[Row]:
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _gather_rows(operator: str, rows: list[Row], on_tensor_cores: bool) -> Measured:
    sheets: dict[str, GpuSheet] = {}
    for name in {row["gpu"] for row in rows}:
        sheet = find_sheet(name)
        if sheet is not None:
            sheets[name] = sheet
    rows = [row for row in rows if row["gpu"] in sheets]
    figures = {name: read_figures(sheet) for name, sheet in sheets.items()}
    columns = (make_column(getattr(figures[row["gpu"]], field.name) for row in rows) for field in fields(GpuFigures))
    sizes = {
        key: np.array([float(row[key] or 1) for row in rows])
        for key in ("b", "m", "n", "k", "rows", "cols")
        if key in rows[0]
    }
    sizes.setdefault("b", np.ones(len(rows)))
    sizes["inputs"] = np.array([2.0 if row.get("name") in _OF_TWO_TENSORS else 1.0 for row in rows])
    sizes["along_k"] = np.full(len(rows), float(operator == "linear"))  # inputs and weights both lie along k
    sizes |= _measure_images(rows) | _measure_layers(rows)
    sizes = {key: make_column(values) for key, values in sizes.items()}
    peaks = make_column(sheets[row["gpu"]].flops(row["dtype"], on_tensor_cores) for row in rows)
    seconds = np.array([float(row["seconds"]) for row in rows])
    return Measured(operator, np.array([row["gpu"] for row in rows]), sizes, seconds, GpuFigures(*columns), peaks)
