"""Check the values of a machine file: each error is one line that names the file.

All functions raise `DeviceSpecError` for a value that cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplace.errors import DeviceSpecError, join_choices

_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_MOST_MEMORY = 1 << 50  # bytes


def check_list(path: Path, name: str, value: Any) -> list[Any]:
    """Return a value that must be a list."""
    if isinstance(value, list):
        return value
    raise DeviceSpecError(f"{path}: {name} = {value!r} must be a list")


def check_tables(path: Path, value: Any, what: str = "kind of GPU as a table [[gpu]]") -> list[dict[str, Any]]:
    """Return a value that must be a list of tables; `what` they are is told to write so."""
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    raise DeviceSpecError(f"{path}: write each {what}")


def refuse_unknown_keys(path: Path, where: str, values: Mapping[str, Any], known: set[str]) -> None:
    """Raise an error for the first key that is not among those that are known."""
    unknown = sorted(set(values) - known)
    if unknown:
        raise DeviceSpecError(f"{path}: {where} has {unknown[0]!r}, which is unknown; known are {join_choices(known)}")


def check_number(path: Path, name: str, value: Any, *, least: int, most: int = 64) -> int:
    """Return a value that must be a whole number between two."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise DeviceSpecError(f"{path}: {name} = {value!r} must be a whole number from {least} to {most}")


def parse_bytes(path: Path, value: Any) -> int:
    """Return an amount of memory in bytes, such as that of "16 GiB"."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_MEMORY:
        return value
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    amount = float(found[1]) * _UNITS.get(found[2].lower(), 0) if found is not None else 0.0
    if not 1 <= amount <= _MOST_MEMORY:
        raise DeviceSpecError(f'{path}: {value!r} is not an amount of memory; write one like "16 GiB" or 1073741824')
    return int(amount)
