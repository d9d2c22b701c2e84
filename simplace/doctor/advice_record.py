"""The text of a finding, as a record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """Record of the text of a finding: what happened, why TensorFlow does so, and what to write instead.

    `error` is what TensorFlow itself says when the program fails, "" where it does not.
    """

    what: str
    why: str
    instead: str
    error: str = ""
