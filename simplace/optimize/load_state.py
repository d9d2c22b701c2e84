"""The loads of all devices under moves of groups, kept up to date."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.problem import CPU


class LoadState:
    """A placement of groups with its loads; the columns are public, so that a search can read them at once.

    A move changes the loads of two devices only: that of every other device depends on which outputs it reads and
    which of its own are read elsewhere, wherever that is.
    """

    def __init__(self, grouped: GroupedProblem, device_of: Sequence[int]) -> None:
        self.grouped = grouped
        self.width = len(grouped.problem.devices)
        self.device_of = list(device_of)
        self.made: list[list[int]] = [[] for _ in grouped.members]  # nets by producer
        self.read: list[list[int]] = [[] for _ in grouped.members]  # nets by reader
        self.cost = [net.cost for net in grouped.nets]
        self.producer = [net.producer for net in grouped.nets]
        self.readers = [len(net.readers) for net in grouped.nets]
        for at, net in enumerate(grouped.nets):
            if net.cost:
                self.made[net.producer].append(at)
                for reader in net.readers:
                    self.read[reader].append(at)
        self.set_all(device_of)

    def move_many(self, moves: Sequence[tuple[int, int]]) -> list[tuple[int, int, tuple[float, float]]]:
        """Move groups to their new devices; return what `take_back` needs."""
        taken = []
        for group, to in moves:
            added = self.try_move(group, to)
            taken.append((group, self.device_of[group], added))
            self.move(group, to, added)
        return taken

    def take_back(self, taken: Sequence[tuple[int, int, tuple[float, float]]]) -> None:
        """Take back moves; the loads are as before but for rounding."""
        for group, old, (less, more) in reversed(taken):
            self.move(group, old, (-more, -less))

    def set_all(self, device_of: Sequence[int]) -> None:
        """Take over another placement."""
        self.device_of[:] = device_of
        self.loads = [0.0] * self.width
        self.held = [0.0] * self.width
        self.count = [0] * (self.width * len(self.cost))  # readers of a net, by net and device
        for group, device in enumerate(device_of):
            self.loads[device] += self.grouped.time[group][device]
            self.held[device] += self.grouped.bytes[group]
        for at, net in enumerate(self.grouped.nets):
            home = device_of[net.producer]
            for reader in net.readers:
                self.count[at * self.width + device_of[reader]] += 1
            away = {device_of[reader] for reader in net.readers} - {home}
            for device in away | {home} if away else ():
                self.loads[device] += net.cost if device != CPU else 0.0

    def try_move(self, group: int, to: int) -> tuple[float, float]:
        """Return what a move adds to the load of the device that the group leaves, and to that of the new one."""
        width, count, cost = self.width, self.count, self.cost
        device_of = self.device_of
        old = device_of[group]
        time = self.grouped.time[group]
        left, joined = -time[old], time[to]
        less, more = 0.0, 0.0
        for net in self.made[group]:
            on_old, on_new, all_of = count[net * width + old], count[net * width + to], self.readers[net]
            if not on_old:
                less -= cost[net]
            elif on_old == all_of:
                less += cost[net]
            if not on_new:
                more += cost[net]
            elif on_new == all_of:
                more -= cost[net]
        for net in self.read[group]:
            home, base = device_of[self.producer[net]], net * width
            if home == old:
                if not count[base + to]:
                    more += cost[net]
                if count[base + old] == self.readers[net]:
                    less += cost[net]
            elif home == to:
                if count[base + old] == 1:
                    less -= cost[net]
                if count[base + to] == self.readers[net] - 1:
                    more -= cost[net]
            else:
                if count[base + old] == 1:
                    less -= cost[net]
                if not count[base + to]:
                    more += cost[net]
        return left + (less if old else 0.0), joined + (more if to else 0.0)

    def move(self, group: int, to: int, added: tuple[float, float]) -> None:
        """Move a group; `added` is what `try_move` says."""
        old, width = self.device_of[group], self.width
        self.loads[old] += added[0]
        self.loads[to] += added[1]
        self.held[old] -= self.grouped.bytes[group]
        self.held[to] += self.grouped.bytes[group]
        for net in self.read[group]:
            self.count[net * width + old] -= 1
            self.count[net * width + to] += 1
        self.device_of[group] = to
