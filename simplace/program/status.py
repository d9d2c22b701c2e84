"""A placement that TensorFlow would refuse: its status, its message, where it gave up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Record of TensorFlow's status code, the message it would give, and the node at which it gave up (-1: none).

    `ends` are the nodes in conflict: one, or the two ends of a colocation edge, () where no node is at fault.
    """

    code: str
    message: str
    node: int = -1
    ends: tuple[int, ...] = ()


class Refused(Exception):  # noqa: N818  (a result of placing that ends the run, not a fault of the program)
    """Carry a refusal up to the placer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def invalid_argument(message: str, node: int = -1, ends: tuple[int, ...] = ()) -> Refused:
    """Make an INVALID_ARGUMENT refusal."""
    return Refused(Refusal("INVALID_ARGUMENT", message, node, ends))


def internal_error(message: str, node: int = -1) -> Refused:
    """Make an INTERNAL refusal."""
    return Refused(Refusal("INTERNAL", message, node))
