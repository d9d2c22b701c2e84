"""Read a CPU that the user describes: "16 cores, 2.9 GHz, 512 bit, 2 fma, 200 GB/s"."""

from __future__ import annotations

import re
from typing import NamedTuple

from simplace.errors import SimplaceError, join_choices

EXAMPLE = "16 cores, 2.9 GHz, 512 bit, 2 fma, 200 GB/s"
_PART = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(cores?|ghz|bits?|fma|gb/s(?: a core)?)")
_WIDTHS = (64, 128, 256, 512, 1024, 2048)
_MOST = {"cores": 4096, "ghz": 20, "fma": 8, "gb/s": 100_000, "gb/s a core": 100_000}


class DescribedCpu(NamedTuple):
    """Record of what a user says of a CPU: `clock` in Hz, bandwidths in bytes/s, that of a core 0 where not said."""

    cores: int
    clock: float
    bits: int
    fma: int
    bandwidth: float
    core_bandwidth: float


def parse_cpu_spec(text: str) -> DescribedCpu:
    """Read a description, whose parts may come in any order; "12 GB/s a core" may be added.

    >>> parse_cpu_spec("16 cores, 2.9 GHz, 512 bit, 2 fma, 200 GB/s").bandwidth
    200000000000.0

    Raises `SimplaceError` for a part that is missing, unknown, written twice, or beyond what there is.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        match = _PART.fullmatch(" ".join(part.lower().split()))
        if match is None:
            raise SimplaceError(f"cannot read {part.strip()!r} of the CPU {text!r}; write it as in {EXAMPLE!r}")
        unit = {"core": "cores", "bits": "bit"}.get(match[2], match[2])
        if unit in found:
            raise SimplaceError(f"the CPU {text!r} has {unit} twice; write it as in {EXAMPLE!r}")
        found[unit] = _check_number(text, unit, float(match[1]))
    missing = [unit for unit in ("cores", "ghz", "bit", "fma", "gb/s") if unit not in found]
    if missing:
        raise SimplaceError(f"the CPU {text!r} lacks {join_choices(missing)}; write it as in {EXAMPLE!r}")
    return DescribedCpu(
        int(found["cores"]), found["ghz"] * 1e9, int(found["bit"]), int(found["fma"]), found["gb/s"] * 1e9,
        found.get("gb/s a core", 0.0) * 1e9,
    )  # fmt: skip


def _check_number(text: str, unit: str, value: float) -> float:
    if unit == "bit":
        if value not in _WIDTHS:
            raise SimplaceError(f"a vector of {value:g} bit in the CPU {text!r}; there are 64 to 2048, powers of two")
        return value
    if not 0 < value <= _MOST[unit]:
        raise SimplaceError(f"{value:g} {unit} in the CPU {text!r}; it must be above 0, and at most {_MOST[unit]:,}")
    if unit in ("cores", "fma") and value != int(value):
        raise SimplaceError(f"{value:g} {unit} in the CPU {text!r}; it must be a whole number")
    return value
