"""A finding as a record: the base of all kinds, what it costs a step, and those that TensorFlow fails with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class StepCost:
    """Record of what a finding costs a step: copies, their known bytes, and seconds by the cost model.

    `unknown` of the copies are of unknown size, and count for nothing but their latency. Without copies, `seconds` is
    time that a device does not compute. `error` is how far off they are in the mean, as a share; `sources` tells where
    they come from ("measured", "calibrated", "modelled", "guessed"), most of them first.
    """

    copies: int = 0
    size: int = 0
    seconds: float = 0.0
    error: float = 0.0
    sources: tuple[str, ...] = ()
    unknown: int = 0


NO_COST = StepCost()


@dataclass(frozen=True, slots=True)
class Finding:
    """Record of where a finding is: the user's line ("" unknown), the program and the nodes concerned (() for none).

    `rule` is stable, `title` a phrase for it. A kind that `is_harmless` by itself matters only where it costs
    something. `caught_at` is the line of the program's `except` that takes the error of a finding, so that the program
    goes on, "" for one that is not known; None where nothing takes it.
    """

    rule: ClassVar[str] = ""
    level: ClassVar[Level] = "warning"
    title: ClassVar[str] = ""
    is_harmless: ClassVar[bool] = False
    source: str
    program: str
    nodes: tuple[str, ...]
    cost: StepCost = field(default=NO_COST, compare=False, kw_only=True)
    caught_at: str | None = field(default=None, kw_only=True)

    @property
    def severity(self) -> Level:
        """Return the level of this finding: an error that the program catches is a note."""
        return self.level if self.caught_at is None else "note"


@dataclass(frozen=True, slots=True)
class Failure(Finding):
    """TensorFlow places this, and fails when it runs it: with the words `error`, as far as they are known before.

    What `is_foretold` alone is computed in the run, so that the program does not see the error there, unless it
    `was_raised`.
    """

    level: ClassVar[Level] = "error"
    is_foretold: ClassVar[bool] = False
    error: str = field(compare=False)
    was_raised: bool = field(default=False, kw_only=True)

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the status codes that the error may have, () for what is no error of a call, as waiting forever."""
        return ()


def name_page(rule: str, family: str = "doctor") -> str:
    """Return the name of a rule's page, as messages print it and `simplace explain --rule` takes it.

    >>> name_page("late-log-flag")
    'doctor/late-log-flag'
    """
    return f"{family}/{rule}"


def state_caught(caught_at: str | None) -> str:
    """Return in words that an `except` of the program takes an error, at which line; "" where nothing takes it.

    >>> state_caught("model.py:9"), state_caught(""), state_caught(None)
    ('caught at model.py:9', 'caught', '')
    """
    return "" if caught_at is None else f"caught at {caught_at}" if caught_at else "caught"


def cite_page(text: str, finding: Finding) -> str:
    """Return the text of a finding with the page to see.

    >>> cite_page("GPU:1 waits", type("Late", (Finding,), {"rule": "gpu-waits"})("", "", ()))
    'GPU:1 waits, see doctor/gpu-waits'
    """
    return f"{text.removesuffix('.')}, see {name_page(finding.rule)}"
