"""A finding as a record: the base of all kinds, and of those that TensorFlow fails with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Record of where a finding is: the user's line ("" unknown), the program and the nodes concerned (() for none).

    `rule` is stable, `title` a phrase for it.
    """

    rule: ClassVar[str] = ""
    level: ClassVar[Level] = "warning"
    title: ClassVar[str] = ""
    source: str
    program: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure(Finding):
    """TensorFlow places this, and fails when it runs it: with the words `error`, as far as they are known before."""

    level: ClassVar[Level] = "error"
    error: str = field(compare=False)
