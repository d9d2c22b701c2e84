"""A placement that TensorFlow would refuse: its status, its message, what clashes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Clash:
    """Name the nodes whose constraints cannot hold together, and the joins that tie them.

    `nodes` are ids; `wants` says per node what it insists on (a device or a list of device types);
    `path` are the node ids from the first to the last along the edges that joined them.
    """

    nodes: tuple[int, ...] = ()
    wants: tuple[str, ...] = ()
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Hold TensorFlow's status code, the message it would give, and the node at which it gave up (-1: none)."""

    code: str
    message: str
    node: int = -1
    clash: Clash = field(default_factory=Clash)


class Refused(Exception):  # noqa: N818  (a result of placing that ends the run, not a fault of the program)
    """Carry a refusal up to the placer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def invalid(message: str, node: int = -1, clash: Clash | None = None) -> Refused:
    """Make an INVALID_ARGUMENT refusal."""
    return Refused(Refusal("INVALID_ARGUMENT", message, node, clash or Clash()))


def internal(message: str, node: int = -1) -> Refused:
    """Make an INTERNAL refusal."""
    return Refused(Refusal("INTERNAL", message, node))
