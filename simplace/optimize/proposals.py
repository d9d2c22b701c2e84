"""Random proposals of what to move: a group, a connected cluster of groups, or two groups that change places."""

from __future__ import annotations

from random import Random

from simplace.optimize.grouped import GroupedProblem

Proposal = list[tuple[int, int]]  # groups with their new devices

FEW_READERS = 4  # of one net: they count as neighbours of each other


class Proposals:
    """Source of proposals for a placement that the caller changes."""

    def __init__(self, grouped: GroupedProblem, device_of: list[int], rng: Random) -> None:
        self.grouped = grouped
        self.device_of = device_of
        self.rng = rng
        self.neighbours = list_neighbours(grouped)

    def pick_target(self, group: int) -> int:
        """Return a device for a group: mostly that of a neighbour; its own if there is no other."""
        random = self.rng.random
        neighbours, allowed = self.neighbours[group], self.grouped.allowed[group]
        if neighbours and random() < 0.7:
            device = self.device_of[neighbours[int(random() * len(neighbours))]]
            if device != self.device_of[group] and device in allowed:
                return device
        return allowed[int(random() * len(allowed))]

    def grow_cluster(self, group: int, to: int, size: int) -> Proposal:
        """Return the move of a group with up to `size - 1` connected ones of its device."""
        random, here = self.rng.random, self.device_of[group]
        chosen, seen, front = [(group, to)], {group}, [group]
        while front and len(chosen) < size:
            at = front.pop(int(random() * len(front)))
            for other in self.neighbours[at]:
                if other not in seen and self.device_of[other] == here and to in self.grouped.allowed[other]:
                    seen.add(other)
                    front.append(other)
                    chosen.append((other, to))
                    if len(chosen) == size:
                        break
        return chosen

    def pick_swap(self, group: int, to: int) -> Proposal:
        """Return the exchange of a group with one of the device that it goes to."""
        random, here = self.rng.random, self.device_of[group]
        for _ in range(8):
            other = int(random() * len(self.device_of))
            if self.device_of[other] == to and here in self.grouped.allowed[other]:
                return [(group, to), (other, here)]
        return [(group, to)]


def list_neighbours(grouped: GroupedProblem) -> list[list[int]]:
    """Return the groups that each group exchanges outputs with, or shares an output of few readers with."""
    found: list[set[int]] = [set() for _ in grouped.members]
    for net in grouped.nets:
        for reader in net.readers:
            found[net.producer].add(reader)
            found[reader].add(net.producer)
        if len(net.readers) <= FEW_READERS:
            for reader in net.readers:
                found[reader].update(net.readers)
    return [sorted(others - {group}) for group, others in enumerate(found)]
