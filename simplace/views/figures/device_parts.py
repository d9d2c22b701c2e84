"""Join the parts of a step on one device until they are few, without a cycle that is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import compress, pairwise
from operator import not_

from simplace.views.figures.acyclic_groups import Ends, link_groups, sort_groups, split_cycles
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.step_parts import KINDS, StepPart

_MOST, MOST_BOXES = 8, 10  # boxes of a device: wanted, and where its layers have few of them
_SPLIT = 1  # boxes more that a device may have for those in a cycle to be split; beyond they are drawn as one box
_LAYERS = 3  # boxes of layers that a device has at least, where there is room
# What is joined where a device has more than a number of boxes, and how many of them are left where there is room:
# variables of the optimizer with those of metrics, layers with each other; then all that computes, then everything.
_JOINED: tuple[tuple[frozenset[str], int, int], ...] = (
    (frozenset({"result"}), 1, _MOST),
    (frozenset({"state"}), 1, _MOST),
    (frozenset({"update"}), 1, _MOST),
    (frozenset({"layer", "ops"}), _LAYERS, _MOST),
    (frozenset({"layer", "ops", "loss", "gradients", "update", "initializers", "result"}), 1, MOST_BOXES),
    (frozenset({"variables", "state"}), 1, MOST_BOXES),
    (frozenset({*KINDS, "state"}), 1, MOST_BOXES),
)


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """Record of the parts of a step on one device, as groups of nodes, and of the `edges` between them, by number.

    The order of the groups respects the edges. `kinds` counts the nodes of each group by the part that they are of.
    """

    groups: Sequence[Sequence[int]]
    edges: Sequence[Ends]
    kinds: Sequence[Counter[StepPart]]

    def join(self, room: int) -> list[list[int]]:
        """Return the nodes in at most `room` groups, each in a box of its own.

        A device has eight, or some more where it has three boxes of layers. Layers that follow each other share a box.
        """
        made = [[number] for number in range(len(self.groups))]
        for kinds, least, most in _JOINED:
            if len(made) <= min(room, most):
                continue
            is_chosen = [self._find_kind(joined) in kinds for joined in made]
            chosen = list(compress(made, is_chosen))
            others = list(compress(made, map(not_, is_chosen)))
            wanted = max(min(room, most) - len(others), min(least, room - len(others)), 1)
            few = join_neighbours(chosen, list(map(self._count, chosen)), wanted)
            made = sort_groups(split_cycles([*few, *others], self.edges, 0), self.edges)
        return [[node for number in joined for node in self.groups[number]] for joined in made]

    def _count(self, joined: Sequence[int]) -> int:
        return sum(len(self.groups[number]) for number in joined)

    def _find_kind(self, joined: Sequence[int]) -> str:
        """Return the kind of most nodes; variables that are not the model's are its "state"."""
        counts: Counter[StepPart] = Counter()
        for number in joined:
            counts.update(self.kinds[number])
        kind, name = counts.most_common(1)[0][0]
        return "state" if kind == "variables" and name else kind


def list_device_parts(graph: DrawnGraph, parts: Mapping[int, StepPart]) -> list[DeviceParts]:
    """Return the parts of a step on each device, those in a cycle split or joined."""
    by_device: dict[str, dict[StepPart, list[int]]] = {}
    for node, part in parts.items():
        by_device.setdefault(graph.placement.device(node), {}).setdefault(part, []).append(node)
    local: dict[str, list[Ends]] = {device: [] for device in by_device}
    for ends in graph.local_edges:
        local[graph.placement.device(ends[0])].append(ends)
    found = []
    for device, own in by_device.items():
        groups = sort_groups(split_cycles(list(own.values()), local[device], _SPLIT), local[device])
        kinds = [Counter(parts[node] for node in group) for group in groups]
        found.append(DeviceParts(groups, sorted(link_groups(groups, local[device])), kinds))
    return found


def join_neighbours(groups: Sequence[Sequence[int]], sizes: Sequence[int], wanted: int) -> list[list[int]]:
    """Join neighbours until `wanted` groups are left: the smallest first by `sizes`, of equals the first two.

    >>> join_neighbours([[1], [2], [3], [6], [7]], [1, 1, 3, 1, 1], 3)
    [[1, 2], [3], [6, 7]]
    >>> join_neighbours([[1], [2]], [1, 1], 3)
    [[1], [2]]
    """
    some, size_of = dict(enumerate(map(list, groups))), dict(enumerate(sizes))
    after, before = {i: i + 1 for i in some}, {i: i - 1 for i in some}
    pairs = [(one + other, i) for i, (one, other) in enumerate(pairwise(sizes))]
    heapify(pairs)
    while len(some) > wanted:
        size, at = heappop(pairs)
        end = after.get(at, -1)
        if end not in some or size_of[at] + size_of[end] != size:
            continue  # one of the two was joined with another since
        some[at] += some.pop(end)
        size_of[at] = size
        after[at], last = after.pop(end), before.pop(end)
        assert last == at, "groups are joined with their neighbours"
        before[after[at]] = at
        for first, second in ((before[at], at), (at, after[at])):
            if first in some and second in some:
                heappush(pairs, (size_of[first] + size_of[second], first))
    return list(some.values())
