"""What an event of a schedule waited for, in words."""

from __future__ import annotations

from simplace.executor.trace import Why

WAITED_FOR: dict[Why, str] = {
    "thread": "for a thread", "launch": "for another thread's launch", "stream": "for a GPU's stream",
    "link": "for a copy's stream or link", "member": "for the other members of a collective",
}  # fmt: skip
