"""Join the rows of a table that differ in nothing but the number of their device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from viz import Table

_FEW = 3  # devices: so many in a row share one
_DEVICE = re.compile(r"(?P<kind>\S*?[A-Z_]+:)(?P<number>\d+)(?P<rest>.*)")

_Row = tuple[str, ...]


def join_alike_rows(table: Table, place: int = 0) -> Table:
    """Return a table in which devices with the same cells, three or more in the order of their numbers, share rows.

    `place` is the column that begins with a device; a device may have several rows beside each other.

    >>> from viz import Column
    >>> rows = tuple((f"GPU:{i}", "4") for i in range(3))
    >>> join_alike_rows(Table((Column("device"), Column("ops")), (("CPU:0", "4"), *rows))).rows
    (('CPU:0', '4'), ('GPU:0 … GPU:2, each', '4'))
    """
    joined: list[_Row] = []
    for family in _list_families(table.rows, place):
        if len(family) < _FEW:
            joined += [row for block in family for row in block]
            continue
        for first, last in zip(family[0], family[-1], strict=True):
            found, end = _match_device(first, place), _match_device(last, place)
            name = f"{found['kind']}{found['number']} … {end['kind']}{end['number']}{found['rest']}, each"
            joined.append((*first[:place], name, *first[place + 1 :]))
    return replace(table, rows=tuple(joined))


def _list_families(rows: Iterable[_Row], place: int) -> Sequence[Sequence[Sequence[_Row]]]:
    """Return the rows by device, and devices that are alike and follow each other together."""
    families: list[list[list[_Row]]] = []
    for device, found in groupby(rows, key=lambda row: _name_device(row, place)):
        block = list(found)
        if families and device and _follows(families[-1][-1], block, place):
            families[-1].append(block)
        else:
            families.append([block])
    return families


def _name_device(row: _Row, place: int) -> tuple[str, int] | None:
    found = _DEVICE.fullmatch(row[place])
    return (found["kind"], int(found["number"])) if found else None


def _match_device(row: _Row, place: int) -> re.Match[str]:
    found = _DEVICE.fullmatch(row[place])
    assert found is not None, "only rows of devices are joined"
    return found


def _follows(before: Sequence[_Row], block: Sequence[_Row], place: int) -> bool:
    """Return whether the rows of a device are those of the device of the next lower number."""
    one, other = _name_device(before[0], place), _name_device(block[0], place)
    if one is None or other is None or (one[0], one[1] + 1) != other:
        return False
    return _strip_devices(before, place) == _strip_devices(block, place)


def _strip_devices(rows: Sequence[_Row], place: int) -> list[_Row]:
    return [(*row[:place], _match_device(row, place)["rest"], *row[place + 1 :]) for row in rows]
