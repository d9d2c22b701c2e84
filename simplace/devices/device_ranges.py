"""Device names in short, three or more in a row as the first and the last of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(?P<kind>.*:)(?P<number>\d+)")
_FEW = 3


def fold_names(names: Iterable[str]) -> list[str]:
    """Fold each run of device names whose numbers follow each other on one task, in their order.

    >>> fold_names(["GPU:0", "GPU:2", "GPU:3", "GPU:4", "ps/0/GPU:5"])
    ['GPU:0', 'GPU:2 … GPU:4', 'ps/0/GPU:5']
    >>> fold_names(["GPU:1", "GPU:0"])
    ['GPU:1', 'GPU:0']
    """
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [part for run in runs for part in ([f"{run[0]} … {run[-1]}"] if len(run) >= _FEW else run)]


def _follows(before: str, after: str) -> bool:
    first, second = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    if first is None or second is None:
        return False
    return first["kind"] == second["kind"] and int(second["number"]) == int(first["number"]) + 1
