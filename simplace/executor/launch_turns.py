"""Give the threads that launch on a card their turns: one launches at a time, the others wait in the order of asking.

The CUDA driver has a lock for each context: threads that launch on one GPU at once wait in cuLaunchKernel for each
other (tensorflow/tensorflow#53759 measured it, #8466 shows such a wait). Which of them goes on is up to the system.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from simplace.executor.propagator_state import Activation
from simplace.executor.thread_pool import Worker


class Asking(NamedTuple):
    """Record of a worker that is about to launch."""

    worker: Worker
    activation: Activation


class LaunchTurns:
    """Keep who launches on each card, by the name of its first GPU, and who waits."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Asking]] = {}  # of a card on which somebody launches

    def take(self, card: str, asking: Asking) -> bool:
        """Take the turn if nobody has it; else wait for it."""
        if card in self._waiting:
            self._waiting[card].append(asking)
            return False
        self._waiting[card] = deque()
        return True

    def hand_on(self, card: str) -> Asking | None:
        """End a turn; return who has the next one, None if nobody waits."""
        if self._waiting[card]:
            return self._waiting[card].popleft()
        del self._waiting[card]
        return None
