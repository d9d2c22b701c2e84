"""Answer a question about a record once: the answer lives as long as the record, as a cached property does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

R = TypeVar("R")
A = TypeVar("A")


def answer_once(question: Callable[[R], A]) -> Callable[[R], A]:
    """Decorate a function of one record whose answer is kept with it: for a module above that of the record."""
    key = f"{question.__module__}.{question.__qualname__}"

    @wraps(question)
    def answer(record: R) -> A:
        kept: dict[str, Any] = vars(record)
        if key not in kept:
            kept[key] = question(record)
        found: A = kept[key]
        return found

    return answer
