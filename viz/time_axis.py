"""Choose the marks of a time axis, and write times in a unit that suits it."""

from __future__ import annotations

from math import floor, log10


def ticks(end: float, wanted: int = 8) -> list[float]:
    """Choose round times from 0 to `end`, about `wanted` of them.

    >>> ticks(0.0021, 4)
    [0.0, 0.0005, 0.001, 0.0015, 0.002]
    """
    if end <= 0:
        return [0.0]
    raw = end / wanted
    size: float = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.9)
    return [round(i * step, 12) for i in range(floor(end / step * 1.000001) + 1)]


def spell(seconds: float, end: float) -> str:
    """Return a time in the unit that suits an axis which ends at `end`.

    >>> spell(0.0015, 0.002), spell(0.0, 3.0), spell(2e-5, 4e-5)
    ('1.5 ms', '0', '20 µs')
    """
    if seconds == 0:
        return "0"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if end * factor >= 1:
            return f"{seconds * factor:.10g} {unit}"
    return f"{seconds * 1e9:.10g} ns"


def spell_error(error: float) -> str:
    """Return how far off a time is in the mean, as a share of it, for after the time; "" where it is no prediction.

    >>> spell_error(0.125), spell_error(0.001), spell_error(0.0)
    (' ± 12%', ' ± 1%', '')
    """
    return f" ± {max(error, 0.01):.0%}" if error else ""
