"""The figures of a CPU that `simplace measure` found, and their entry in a cost file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log2
from typing import Any

from simplace.costs.cost_model import interpolate_points
from simplace.errors import SimplaceError

Rates = tuple[tuple[float, float], ...]  # (an amount, how much of it a second), by the first
ENTRY = "cpu"  # of a cost file
_MOST_CORES, _LONGEST_NAME = 4096, 200


@dataclass(frozen=True, slots=True)
class CalibratedCpu:
    """Record of what a CPU was measured to reach in TensorFlow's kernels.

    `model` is what the system calls it ("" where it does not say), `cores` how many threads run at once, `clock` the
    cycles a second that TensorFlow counts (0: unknown). Of one core, `products` has by data type (FLOPs of a product of
    matrices, FLOP/s), `vector` the FLOP/s of elementwise arithmetic in float32, `reads` (bytes that an op
    reads in all, bytes/s) and `writes` the same of what it makes; the last is more than the caches hold. `bandwidth` is
    what all cores read and write of that together, in an elementwise op. `least_s` is the time of the smallest kernel,
    in seconds.
    """

    model: str
    cores: int
    clock: float
    products: Mapping[str, Rates]
    vector: float
    reads: Rates
    writes: Rates
    bandwidth: float
    least_s: float

    @property
    def core_bandwidth(self) -> float:
        """Return the bytes/s of one core in the sum of two tensors that no cache holds: two are read, one is made."""
        return 3 / (2 / self.reads[-1][1] + 1 / self.writes[-1][1])

    @property
    def peak(self) -> Mapping[str, float]:
        """Return the FLOP/s of one core by data type, the best of its products."""
        return {dtype: max(rate for _, rate in rates) for dtype, rates in self.products.items()}


def read_rate(rates: Rates, at: float) -> float:
    """Interpolate between rates by the logarithm of an amount, constant beyond the ends.

    >>> read_rate(((1e4, 30e9), (1e8, 10e9)), 1e6) / 1e9, read_rate(((1e4, 30e9), (1e8, 10e9)), 1e9) / 1e9
    (20.0, 10.0)
    """
    return interpolate_points([(log2(amount), rate) for amount, rate in rates], log2(max(1.0, at)))


def write_cpu(cpu: CalibratedCpu) -> dict[str, object]:
    """Return the entry of a cost file."""
    return asdict(cpu)


def parse_cpu(file: str, values: object) -> CalibratedCpu:
    """Read the entry of a cost file; raise `SimplaceError` for what `write_cpu` would not write."""
    known = set(CalibratedCpu.__dataclass_fields__)
    if not isinstance(values, dict) or set(values) != known:
        raise SimplaceError(f'{file}: "{ENTRY}" has the fields {", ".join(sorted(known))}')
    model, cores, products = values["model"], values["cores"], values["products"]
    if not isinstance(model, str) or not model.isprintable() or len(model) > _LONGEST_NAME:
        raise SimplaceError(f'{file}: model of "{ENTRY}" is {model!r:.60}; it must be a text of one line')
    if not isinstance(cores, int) or isinstance(cores, bool) or not 0 < cores <= _MOST_CORES:
        raise SimplaceError(
            f'{file}: cores of "{ENTRY}" is {cores!r:.60}; it must be a whole number from 1 to {_MOST_CORES:,}'
        )
    if not isinstance(products, dict) or "float32" not in products:
        raise SimplaceError(f'{file}: products of "{ENTRY}" maps data types, float32 among them, to rates')
    return CalibratedCpu(
        model,
        cores,
        _parse_number(file, "clock", values["clock"], 0.0),
        {str(dtype): _parse_rates(file, "products", rates) for dtype, rates in products.items()},
        _parse_number(file, "vector", values["vector"]),
        _parse_rates(file, "reads", values["reads"]),
        _parse_rates(file, "writes", values["writes"]),
        _parse_number(file, "bandwidth", values["bandwidth"]),
        _parse_number(file, "least_s", values["least_s"], 0.0),
    )


def _parse_rates(file: str, name: str, values: Any) -> Rates:
    """Read rates, whose first numbers grow."""
    is_table = isinstance(values, list | tuple) and bool(values)
    if not is_table or not all(isinstance(row, list | tuple) and len(row) == 2 for row in values):
        raise SimplaceError(f'{file}: {name} of "{ENTRY}" is a list of pairs: an amount, and how much of it a second')
    found = tuple((_parse_number(file, name, one, 1.0), _parse_number(file, name, rate)) for one, rate in values)
    if any(after[0] <= before[0] for before, after in pairwise(found)):
        raise SimplaceError(f'{file}: the amounts in {name} of "{ENTRY}" must grow')
    return found


def _parse_number(file: str, name: str, value: object, least: float = 1.0) -> float:
    """Read a number from `least` on; a rate is at least 1 a second."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= float(value) < 1e18:  # type: ignore[arg-type]
        raise SimplaceError(f'{file}: {name} of "{ENTRY}" has {value!r:.60}; it must be a number, {least:g} or more')
    return float(value)  # type: ignore[arg-type]
