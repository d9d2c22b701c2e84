"""Compare a placement with what TensorFlow logged, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simplace.devices.device_name import DeviceName
from simplace.placement.placement import Placement
from simplace.program.observation import LoggedNode, ObservedRefusal


@dataclass(frozen=True, slots=True)
class Difference:
    """Record of one node that the two place differently; "" stands for a node that one of them does not have."""

    node: str
    op: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """Count the nodes that both place alike, out of all that either places.

    `refusals` holds the two status codes where TensorFlow or simplace refuses ("" for "placed it").
    """

    same: int
    total: int
    differences: tuple[Difference, ...]
    refusals: tuple[str, str] = ("", "")

    @property
    def holds(self) -> bool:
        """Return whether there is no difference at all."""
        return not self.differences and self.refusals[0] == self.refusals[1]

    def __str__(self) -> str:
        return f"{self.same}/{self.total} nodes"


def compare_placement(
    placement: Placement, log: Iterable[LoggedNode], refused: ObservedRefusal | None = None
) -> Agreement:
    """Compare with a log of the same graph; a node that is logged twice counts by its last line.

    Where TensorFlow refuses, the status codes and the nodes that it logged before are compared.
    """
    theirs = {entry.name: entry for entry in log}
    ours = {node.name: node for node in placement.nodes}
    codes = (placement.refusal.code if placement.refusal else "", refused.code if refused else "")
    if refused is not None:
        ours = {name: node for name, node in ours.items() if name in theirs}
    differences = []
    for name in dict.fromkeys((*ours, *theirs)):
        mine, logged = ours.get(name), theirs.get(name)
        device = mine.device if mine else ""
        other = logged.device if logged else ""
        if _canonicalize_device(device) != _canonicalize_device(other):
            op = mine.op if mine else logged.op if logged else ""
            differences.append(Difference(name, op, device, other))
    total = len(ours.keys() | theirs.keys())
    return Agreement(total - len(differences), total, tuple(differences), codes)


def compare_what_is_left(
    placement: Placement, log: Iterable[LoggedNode], refused: ObservedRefusal | None = None
) -> Agreement:
    """Compare with a graph that passes after placement have changed: only the nodes that both have."""
    names = {node.name for node in placement.nodes}
    kept = [entry for entry in log if entry.name in names]
    found = compare_placement(placement, kept, refused)
    same = [difference for difference in found.differences if difference.theirs]
    return Agreement(len(kept) - len(same), len(kept), tuple(same), found.refusals)


def own_lines(placement: Placement, log: Sequence[LoggedNode]) -> list[LoggedNode]:
    """Pick the lines of one graph out of the log of a whole program, where eager ops and other graphs are logged too.

    TensorFlow logs a graph in one go and in the order of its decisions, so the last run of lines with our names in our
    order is the graph's. Where there is no such run, every line with a name of ours is taken.
    """
    names = [placement.graph.names[node] for node in placement.order]
    logged = [entry.name for entry in log]
    for start in range(len(logged) - len(names), -1, -1):
        if names and logged[start] == names[0] and logged[start : start + len(names)] == names:
            return list(log[start : start + len(names)])
    known = set(placement.graph.names[2:])
    return [entry for entry in log if entry.name in known]


def _canonicalize_device(name: str) -> str:
    spec = DeviceName.parse(name) if name else None
    return name if spec is None else str(spec)
