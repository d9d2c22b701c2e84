"""The order in which TensorFlow walks through a library of functions: that of the hash map which holds them by name.

Mirrors tsl/lib/gtl/flatrep.h and `Hash64` of tsl/platform/hash.cc. Names alone decide it: no address goes into it.
"""

from __future__ import annotations

from collections.abc import Iterable

_WIDTH = 8  # names in a bucket
_FULL = 0.8
_SEED, _FACTOR, _SHIFT, _ALL = 0xDECAFCAFFE, 0xC6A4A7935BD1E995, 47, (1 << 64) - 1


def order_functions(names: Iterable[str]) -> list[str]:
    """Return the names of functions that a graph reaches, as TensorFlow walks through a library that has them alone.

    It puts them in alphabetical order first (`ReachableFunctionLibraryDefinition` of framework/function.cc).

    >>> order_functions(["one", "two", "three"])
    ['three', 'one', 'two']
    """
    return walk_map(sorted(names, key=str.encode))


def walk_map(names: Iterable[str]) -> list[str]:
    """Return names in the order of a map to which they were added one by one.

    >>> walk_map(["one", "two", "three", "two"])
    ['three', 'one', 'two']
    """
    table = _make_table(1)
    for count, name in enumerate(dict.fromkeys(names)):
        if count >= int(len(table) * _FULL):
            known = [each for each in table if each is not None]
            table = _make_table(count + 1)
            for each in known:
                _add(table, each)
        _add(table, name)
    return [each for each in table if each is not None]


def _make_table(count: int) -> list[str | None]:
    size = _WIDTH
    while count >= _FULL * size:
        size *= 2
    return [None] * size


def _add(table: list[str | None], name: str) -> None:
    """Put a name where its hash says, or behind that: one place further, two more, three more and so on."""
    mask, step = len(table) - 1, 1
    place = (_hash(name.encode()) >> 8) & mask
    while table[place] is not None:
        place, step = (place + step) & mask, step + 1
    table[place] = name


def _hash(data: bytes) -> int:
    mixed = _SEED ^ (len(data) * _FACTOR & _ALL)
    whole = len(data) - len(data) % 8
    for i in range(0, whole, 8):
        part = int.from_bytes(data[i : i + 8], "little") * _FACTOR & _ALL
        part = (part ^ (part >> _SHIFT)) * _FACTOR & _ALL
        mixed = (mixed ^ part) * _FACTOR & _ALL
    if data[whole:]:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _ALL
    mixed = (mixed ^ (mixed >> _SHIFT)) * _FACTOR & _ALL
    return mixed ^ (mixed >> _SHIFT)
