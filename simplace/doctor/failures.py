"""All that TensorFlow places and then fails to run: of each placement, and what the running program showed."""

from __future__ import annotations

from collections.abc import Iterator

from simplace.explain.failures import find_failures
from simplace.explain.finding import Failure
from simplace.result import Result


def foretell_failures(result: Result) -> Iterator[Failure]:
    """Yield the failures of a result, those of its programs in their order."""
    for placed in result:
        yield from find_failures(placed.placement)
