"""Spell sizes and shapes for people."""

from __future__ import annotations

from simplace.graph.node_def import Shape


def format_bytes(count: int | None) -> str:
    """Spell a number of bytes; None is an unknown size.

    >>> size(512), size(4096), size(3 * 2**20 + 2**19), size(None)
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
    """Spell a sum of sizes, with a plus where some are unknown.

    >>> total([1024, 1024]), total([1024, None]), total([None]), total([])
    ('2 KiB', '1 KiB +?', '?', '0 B')
    """
    known = [one for one in sizes if one is not None]
    if len(known) == len(sizes):
        return format_bytes(sum(known))
    return f"{format_bytes(sum(known))} +?" if known else "?"


def format_shape(dims: Shape) -> str:
    """Spell a shape; an unknown dimension is a question mark.

    >>> shape((2, -1)), shape(()), shape(None)
    ('[2,?]', '[]', '[?]')
    """
    return "[?]" if dims is None else "[" + ",".join("?" if d < 0 else str(d) for d in dims) + "]"


def format_count(count: int, noun: str) -> str:
    """Spell a count with its noun.

    >>> plural(1, "copy"), plural(2, "copy"), plural(3, "op")
    ('1 copy', '2 copies', '3 ops')
    """
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('x') else 's'}"
