"""What a run did not get to, in words: how it ended early, and which functions no call reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simplace.result import Result

if TYPE_CHECKING:
    from simplace.program.observation import Ending, Unreached, WhyUnreached

_MOST = 3  # functions named of each kind
_ENDINGS: dict[Ending, str] = {
    "raised": "the program stopped with an exception",
    "exited": "the program exited with an error",
    "crashed": "the program's process crashed",
    "timed out": "the time limit ended the run",
    "refused": "TensorFlow refused the file",
    "internal": "simplace itself failed",
    "stopped": "simplace stopped the program",
}
_REASONS: dict[WhyUnreached, tuple[str, str]] = {
    "not called": ("{} was not reached", "{} were not reached"),
    "call failed": ("the call of {} failed before it was placed", "the calls of {} failed before they were placed"),
    "only traced": ("{} was traced, but no call of it was placed", "{} were traced, but no call of them was placed"),
    "eager": ("{} was not traced, since functions run eagerly", "{} were not traced, since functions run eagerly"),
}


def tell_ending(result: Result) -> str:
    """Return what the counted nodes are limited to, "" for a program that ran to its own end."""
    return f", until {_ENDINGS[result.ending]}" if result.ending else ""


def tell_unreached(result: Result) -> str:
    """Return what no call reached, as the end of a sentence; "" where all was reached."""
    parts = []
    for why, (one, several) in _REASONS.items():
        found = [each for each in result.unreached if each.why == why]
        if found:
            parts.append((one if len(found) == 1 else several).format(_list_names(found)))
    return "".join(f"; {part}" for part in parts)


def _list_names(found: Sequence[Unreached]) -> str:
    """Join names, of many the first.

    >>> from simplace.program.observation import Unreached
    >>> _list_names([Unreached(name, "m.py:1", "not called") for name in "abcde"])
    'a (m.py:1), b (m.py:1), c (m.py:1) and 2 more'
    """
    names = [_name(each) for each in found]
    if len(names) > _MOST:
        names = [*names[:_MOST], f"{len(names) - _MOST} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _name(found: Unreached) -> str:
    return f"{found.name} ({found.source})"
