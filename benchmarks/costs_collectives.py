"""Fit the constants of collectives to measurements, and tabulate how far off they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.costs_data import MeasuredCollective
from benchmarks.costs_fit import Parameter, minimise_robustly
from simplace.costs.collectives import Fabric, find_fabric, time_collective
from simplace.costs.gpu_sheet import GB, GpuSheet
from simplace.costs.gpu_sheets import find_sheet

P = Parameter
MB = 10**6  # a size of 1 MiB is above it
PARAMETERS: Mapping[str, Parameter] = {
    "switch": P(0.8, 0.4, 1), "switch_pair": P(0.36, 0, 1), "mesh": P(0.9, 0.4, 1),
    "pcie": P(0.77, 0.2, 1), "pcie_shared": P(0.2, 0, 1), "host": P(0.38, 0.1, 1), "host_shared": P(0.02, 0, 1, 1.0),
    "network": P(0.8, 0.1, 1), "network_host": P(0.6, 0.1, 1), "network_hop_s": P(5e-6, 0, 1e-4),
    "nvlink_quick_s": P(8e-6, 1e-6, 2e-5), "nvlink_quick_hop_s": P(1e-6, 0, 5e-6), "nvlink_quick": P(0.4, 0.05, 1),
    "nvlink_tree_s": P(1e-6, 0, 1e-5),
    "nvlink_full_s": P(2.5e-5, 5e-6, 1e-4), "nvlink_full_hop_s": P(1e-6, 0, 1e-5), "nvlink_fill_s": P(3e-5, 0, 2e-4),
    "nvlink_fill_bytes": P(2e7, 1e6, 5e8), "fill_power": P(0.3, 0, 1), "own_part": P(1, 0, 2),
    "pcie_quick_s": P(3e-5, 1e-6, 1e-4), "pcie_quick_hop_s": P(5e-6, 0, 5e-5), "pcie_quick": P(0.7, 0.05, 1),
    "pcie_tree_s": P(1e-6, 0, 1e-5),
    "pcie_full_s": P(3e-5, 1e-6, 2e-4), "pcie_full_hop_s": P(5e-6, 0, 5e-5), "pcie_fill_s": P(1e-5, 0, 5e-4),
    "pcie_fill_bytes": P(2e7, 1e6, 5e8),
}  # fmt: skip
# What the sources say of their machines: a server of 8 A100 with NVSwitch, a DGX-1 with V100, and servers with two PCIe
# roots, of which those of M40, TITAN X and P100 copied between GPUs at half the rate of the others, as through memory.
_MACHINES = {
    "A100": Fabric("switch", 300 * GB), "V100": Fabric("mesh", 150 * GB),
    "GeForce GTX 1080 Ti": Fabric("pcie", 15.75 * GB), "TITAN X (Pascal)": Fabric("pcie", 15.75 * GB),
}  # fmt: skip
_IN_ONE_MACHINE = 8
_FDR = 6.8 * GB  # InfiniBand FDR, 4 lanes: 54.5 Gb/s


def find_machine(row: MeasuredCollective) -> tuple[Fabric, float] | None:
    """Return the fabric that a row was measured on and the bandwidth of its GPUs' memory; None for an unknown GPU."""
    sheet: GpuSheet | None = find_sheet(row.gpu)
    named = _MACHINES.get(row.gpu)
    if named is None and sheet is None:
        return None
    fabric = named or find_fabric(sheet) if sheet is not None else named
    assert fabric is not None
    if row.gpus > _IN_ONE_MACHINE:
        fabric = Fabric(fabric.kind, fabric.bandwidth, _FDR)
    return fabric, sheet.bandwidth if sheet is not None else 1500 * GB


def predict_collectives(rows: Sequence[MeasuredCollective], constants: Mapping[str, float]) -> np.ndarray:
    """Return the modelled seconds of rows, a group of equal machines at a time."""
    found = np.full(len(rows), np.nan)
    for (op, gpus, machine), where in _group_rows(rows).items():
        sizes = np.array([float(rows[i].bytes) for i in where])
        found[where] = time_collective(op, sizes, gpus, machine[0], constants, machine[1])
    return found


def fit_collectives(rows: Sequence[MeasuredCollective]) -> dict[str, float]:
    """Fit the constants; each curve (machine, operation, number of GPUs) counts alike."""
    rows = [row for row in rows if find_machine(row) is not None and not row.algorithm]
    seconds = np.array([row.seconds for row in rows])
    curves = defaultdict(list)
    for i, row in enumerate(rows):
        curves[row.gpu, row.op, row.gpus, row.source, np.floor(np.log2(row.bytes))].append(i)
    weights = np.zeros(len(rows))
    for where in curves.values():
        weights[where] = 1 / len(where)
    weights /= weights.sum()
    names, fitted = list(PARAMETERS), list(PARAMETERS.values())
    groups = _group_rows(rows)

    def residuals(at: np.ndarray) -> np.ndarray:
        tried = dict(zip(names, at.tolist(), strict=True))
        found = np.empty(len(rows))
        for (op, gpus, machine), where in groups.items():
            found[where] = time_collective(op, sizes[where], gpus, machine[0], tried, machine[1])
        return np.log(found / seconds)

    sizes = np.array([float(row.bytes) for row in rows])
    start = np.array([one.start for one in fitted])
    found = minimise_robustly(residuals, start, fitted, weights, steps=40)
    return dict(zip(names, found.tolist(), strict=True))


def measure_errors(rows: Sequence[MeasuredCollective], constants: Mapping[str, float]) -> np.ndarray:
    """Return how far each row is off, as a share of what was measured."""
    seconds = np.array([row.seconds for row in rows])
    return np.abs(predict_collectives(rows, constants) / seconds - 1)


def predict_left_out(rows: Sequence[MeasuredCollective]) -> np.ndarray:
    """Return the seconds of rows by constants that were fitted without them.

    Machines with PCIe are left out one at a time. With NVLink one table alone has small sizes and all operations, so
    sizes are left out there, one power of two at a time.
    """
    parts = defaultdict(list)
    for i, row in enumerate(rows):
        machine = find_machine(row)
        if machine is not None:
            is_pcie = machine[0].kind in ("pcie", "host")
            parts[row.gpu if is_pcie else int(np.log2(row.bytes))].append(i)
    found = np.full(len(rows), np.nan)
    for where in parts.values():
        own = set(where)
        fitted = fit_collectives([row for i, row in enumerate(rows) if i not in own])
        found[where] = predict_collectives([rows[i] for i in where], fitted)
    return found


def measure_mean_errors(rows: Sequence[MeasuredCollective]) -> dict[str, float]:
    """Return the left-out errors of "collective" (in one machine) and "collective_network".

    The mean over the machines and operations, each alike.
    """
    rows = [row for row in rows if find_machine(row) is not None and not row.algorithm]
    errors = np.abs(predict_left_out(rows) / np.array([row.seconds for row in rows]) - 1)
    groups: dict[str, dict[tuple[str, str, str], list[float]]] = {"collective": {}, "collective_network": {}}
    for row, error in zip(rows, errors.tolist(), strict=True):
        place = "collective" if row.gpus <= _IN_ONE_MACHINE else "collective_network"
        groups[place].setdefault((row.gpu, row.op, row.source), []).append(error)
    return {place: float(np.mean([np.mean(one) for one in found.values()])) for place, found in groups.items() if found}


def tabulate_collectives(rows: Sequence[MeasuredCollective], constants: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Return rows of a table: machine, operation, mean errors above and below 1 MB, and how many rows there are.

    The errors are of the constants, and of fits without the rows in question. Rows of other libraries than NCCL are
    apart.
    """
    rows = [row for row in rows if find_machine(row) is not None]
    errors = measure_errors(rows, constants)
    left_out = np.abs(predict_left_out(rows) / np.array([row.seconds for row in rows]) - 1)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        place = "" if row.gpus <= _IN_ONE_MACHINE else ", several machines"
        name = f"not NCCL: {row.algorithm}" if row.algorithm else f"{row.gpu}{place} ({row.source})"
        groups[name, row.op].append(i)
    table = [
        (*key, *_split_errors(rows, errors, where), *_split_errors(rows, left_out, where), f"{len(where):,}")
        for key, where in sorted(groups.items(), key=lambda one: (one[0][0].startswith("not"), one[0]))
    ]
    by_nccl = [i for i, row in enumerate(rows) if not row.algorithm]
    totals = {
        "all by NCCL, in one machine": [i for i in by_nccl if rows[i].gpus <= _IN_ONE_MACHINE],
        "all by NCCL, several machines": [i for i in by_nccl if rows[i].gpus > _IN_ONE_MACHINE],
    }
    return [*table, *(
        (name, "", *_split_errors(rows, errors, where), *_split_errors(rows, left_out, where), f"{len(where):,}")
        for name, where in totals.items()
    )]  # fmt: skip


def _split_errors(rows: Sequence[MeasuredCollective], errors: np.ndarray, where: Iterable[int]) -> tuple[str, str]:
    known = [i for i in where if not np.isnan(errors[i])]
    large = [errors[i] for i in known if rows[i].bytes > MB]
    small = [errors[i] for i in known if rows[i].bytes <= MB]
    above, below = (f"{np.mean(part):.1%}" if part else "-" for part in (large, small))
    return above, below


def _group_rows(rows: Sequence[MeasuredCollective]) -> dict[tuple[str, int, tuple[Fabric, float]], np.ndarray]:
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        machine = find_machine(row)
        if machine is not None:
            groups[row.op, row.gpus, machine].append(i)
    return {key: np.array(where) for key, where in groups.items()}
