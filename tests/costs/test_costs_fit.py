"""The fit finds constants again that made the times."""

import numpy as np
import pytest

from benchmarks.costs_data import Measured
from benchmarks.costs_fit import fit_constants, predict_seconds, start_constants
from simplace.costs.gpu_kernels import GpuFigures, read_figures
from simplace.costs.gpu_sheets import SHEETS


def made_up(names: tuple[str, ...], rows: int = 40) -> Measured:
    gpus = np.array([name for name in names for _ in range(rows)])
    figures = [[getattr(read_figures(SHEETS[name]), field) for name in gpus] for field in GpuFigures.__slots__]
    cols = np.tile(np.geomspace(256, 1 << 20, rows), len(names))
    sizes = {"rows": np.full(len(gpus), 1024.0), "cols": cols, "inputs": np.ones(len(gpus))}
    return Measured(
        "elementwise", gpus, sizes, np.ones(len(gpus)), GpuFigures(*map(np.array, figures)), np.ones(len(gpus))
    )


def test_bandwidth_shares_are_found_again() -> None:
    data, truth = made_up(("t4", "v100", "p4")), start_constants()
    truth["traffic"] |= {"gddr": 0.66, "hbm": 0.95, "event_s": 5e-6}
    data.seconds[:] = predict_seconds(truth, data)
    found = fit_constants({"elementwise": data})["traffic"]
    assert (found["gddr"], found["hbm"]) == (pytest.approx(0.66, rel=0.01), pytest.approx(0.95, rel=0.01))


def test_a_gpu_left_out_has_no_say() -> None:
    data, truth = made_up(("t4", "v100")), start_constants()
    data.seconds[:] = predict_seconds(truth, data)
    spoilt = data.select(data.gpus == data.gpus)
    spoilt.seconds[spoilt.gpus == "v100"] *= 3
    first, second = (fit_constants({"elementwise": one}, start_constants(), "v100") for one in (data, spoilt))
    assert first == second


def test_groups_without_a_say_are_taken_over() -> None:
    data = made_up(("t4", "v100"))
    known = start_constants()
    known["simt"]["reach"] = 0.123
    assert fit_constants({"elementwise": data}, known, "no such GPU") == known
