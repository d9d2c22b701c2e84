"""How often the body of a loop runs, which branch is taken, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DEFAULT_TRIPS = 10  # where neither the user nor the graph tells

How = Literal["given", "observed", "read", "called", "bounded", "bounded as called", "assumed"]


@dataclass(frozen=True, slots=True)
class Loop:
    """Record of how often the body of a loop runs, and how that is known.

    `by_entry` has it for each time that the loop is entered, where that was observed; `trips` is their mean then.
    """

    name: str
    trips: int
    how: How
    by_entry: tuple[int, ...] = ()

    def trips_at(self, entry: int) -> int:
        """Return how often the body runs after the loop is entered for the nth time, from 0.

        >>> Loop("while", 2, "observed", (3, 1)).trips_at(1), Loop("while", 7, "read").trips_at(1)
        (1, 7)
        """
        return self.by_entry[min(entry, len(self.by_entry) - 1)] if self.by_entry else self.trips


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Record of what the loops and branches of a graph did in a step that ran.

    `trips` has by name of a loop how often its body ran, for each time that the loop was entered. `branches` has by
    name of a predicate's node the output taken, for each time that it was decided.
    """

    trips: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    branches: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
