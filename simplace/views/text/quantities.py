"""Format sizes, shapes and counts."""

from __future__ import annotations

from simplace.graph.node_def import Shape


def format_bytes(count: int | None) -> str:
    """Return a number of bytes with its unit; None is an unknown size.

    >>> format_bytes(512), format_bytes(4096), format_bytes(3 * 2**20 + 2**19), format_bytes(None)
    ('512 B', '4 KiB', '3.5 MiB', '?')
    """
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"


def format_total_bytes(sizes: list[int | None]) -> str:
    """Return a sum of sizes, "≥" before it where some are unknown.

    >>> [format_total_bytes(sizes) for sizes in ([1024, 1024], [1024, None], [None], [])]
    ['2 KiB', '≥ 1 KiB', 'unknown size', '0 B']
    """
    known = [one for one in sizes if one is not None]
    if len(known) == len(sizes):
        return format_bytes(sum(known))
    return f"≥ {format_bytes(sum(known))}" if known else "unknown size"


def format_shape(dims: Shape) -> str:
    """Return a shape in brackets; an unknown dimension is a question mark.

    >>> format_shape((2, -1)), format_shape(()), format_shape(None)
    ('[2,?]', '[]', '[?]')
    """
    return "[?]" if dims is None else "[" + ",".join("?" if d < 0 else str(d) for d in dims) + "]"


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where needed.

    >>> format_count(1, "copy"), format_count(2, "copy"), format_count(3, "op")
    ('1 copy', '2 copies', '3 ops')
    """
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('x') else 's'}"


def format_duration(nanoseconds: float) -> str:
    """Return a time with its unit.

    >>> [format_duration(time) for time in (900, 1500, 2_340_000, 3e9, 0)]
    ['900 ns', '1.5 µs', '2.34 ms', '3 s', '0']
    """
    if nanoseconds == 0:
        return "0"
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= factor:
            return (
                f"{nanoseconds / factor:.3g} {unit}" if nanoseconds < 1000 * factor else f"{nanoseconds / factor:.0f} s"
            )
    return f"{nanoseconds:.0f} ns"
