"""Collect the lines of the user's files that nodes name, with those around them."""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from pathlib import Path

_AROUND = 1  # lines before and after
_LONGEST = 200  # letters of a line
_LARGEST = 1 << 20  # letters of a file that are read


def collect_excerpts(places: Iterable[str]) -> dict[str, dict[int, str]]:
    """Return for each file the lines by number that places ("file:line") name, and the lines around them.

    A file that is not there, cannot be read or is not Python has none.
    """
    wanted: dict[str, set[int]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        if file.endswith(".py") and line.isdecimal():
            wanted.setdefault(file, set()).update(range(int(line) - _AROUND, int(line) + _AROUND + 1))
    found = {file: _read_lines(Path(file), numbers) for file, numbers in sorted(wanted.items())}
    return {file: lines for file, lines in found.items() if lines}


def _read_lines(file: Path, numbers: set[int]) -> dict[int, str]:
    if not os.path.isfile(file):  # of a name that no file can have, Path.is_file raises an error
        return {}
    try:
        with file.open(encoding="utf-8", errors="replace") as content:
            lines = content.read(_LARGEST).splitlines()
    except OSError:  # one may list it, not read it: the page does without its lines
        return {}
    return {i: lines[i - 1][:_LONGEST] for i in sorted(numbers) if 0 < i <= len(lines)}
