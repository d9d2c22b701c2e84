"""Number values in the order of their first appearance, so that a page contains each of them once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Number values, equal ones alike.

    >>> names = Interner(["none"])
    >>> [names(text) for text in ("a", "b", "a", "none")], names.values
    ([1, 2, 1, 0], ['none', 'a', 'b'])
    """

    def __init__(self, first: list[T] | None = None) -> None:
        self.values: list[T] = list(first or ())
        self._numbers = {value: i for i, value in enumerate(self.values)}

    def __call__(self, value: T) -> int:
        """Return the number of a value."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number
