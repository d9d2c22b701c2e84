"""How often the body of a loop runs, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_TRIPS = 10  # where neither the user nor the graph tells

How = Literal["given", "read", "assumed"]


@dataclass(frozen=True, slots=True)
class Loop:
    """Record of how often the body of a loop runs, and how that is known."""

    name: str
    trips: int
    how: How
