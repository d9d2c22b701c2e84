"""Two outputs of one program compared: times, addresses, devices and last digits left out of account."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

_ADDRESS = re.compile(r" name: ?$|0x[0-9a-f]+|\bid=\d+|_\d+\b")
_DEVICE = re.compile(r"/(job:[\w:/]*)?(device:)?[CG]PU:\d+|\b[CG]PU:\d+|\bGPU\b|\bCPU\b", re.IGNORECASE)
_TIME = re.compile(
    r"(?<=time: )\d+(\.\d+)?(e-?\d+)?$"
    r"|\d+(\.\d+)?(e-?\d+)? ?(s|ms|us|µs|m|min|sec|secs|seconds|minutes)(/(step|epoch|batch))?\b"
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_PROGRESS = re.compile(r"(\d+)/(\d+) - ")  # of Keras, which writes as often as time allows
_LISTED = re.compile(r"(Physical|Logical)Device\(")
_PLACED = re.compile(r"[\w/]+: \(\w+\): ?$")  # TensorFlow's log, which simplace keeps for its comparison
_BAR = re.compile(r"[━─=>.]{5,}")
_TOLERANCE = 2e-3  # relative: sums in another order, and what a training step makes of it


def differing_lines(first: str, second: str) -> list[tuple[str, str]]:
    """List the lines that differ, in pairs; "" where one output has no such line."""
    ours, theirs = list(_lines(first)), list(_lines(second))
    matcher = SequenceMatcher(None, list(map(_words, ours)), list(map(_words, theirs)), autojunk=False)
    pairs: list[tuple[str, str]] = []
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        pairs += zip_longest(ours[start:end], theirs[other_start:other_end], fillvalue="")
    return [(one, other) for one, other in pairs if not _is_alike(one, other)]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines as a terminal ends up showing them, without what names devices or times."""
    for whole in text.replace("\b", "").split("\n"):
        line = whole.rstrip("\r").rpartition("\r")[2]
        line = _DEVICE.sub("", _ADDRESS.sub("", re.sub(r"\x1b\[[0-9;]*m", "", line)))
        line = re.sub(r"\s+", " ", _BAR.sub("", _TIME.sub("", line))).strip()
        progress = _PROGRESS.match(line)
        if (
            line
            and not _LISTED.search(line)
            and not _PLACED.match(line)
            and (not progress or progress[1] == progress[2])
        ):
            yield line


def _is_alike(first: str, second: str) -> bool:
    """Return whether two lines have the same words, and numbers that differ in their last digits at most."""
    if first == second:
        return True
    if _words(first) != _words(second):
        return False
    pairs = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=_TOLERANCE, abs_tol=1e-4) for one, other in pairs)


def _words(line: str) -> str:
    """Return a line without its numbers and spaces."""
    return _NUMBER.sub("#", line).replace(" ", "")
