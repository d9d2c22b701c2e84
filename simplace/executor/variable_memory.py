"""The memory of resource variables while a step runs: shared with what reads them, copied before some updates.

Mirrors what kernels do with a `Var`: tensorflow/core/kernels/resource_variable_ops.cc, training_op_helpers.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Buffer:
    """Record of a tensor in memory; `uses` counts who still needs it."""

    device: str
    size: int
    node: int
    slot: int
    uses: int = 1


@dataclass(slots=True, eq=False)
class VariableMemory:
    """The buffer of a variable; None is memory that others account for, such as a constant's.

    Since it was accessed by rows, each read of it `is_copied`.
    """

    buffer: Buffer | None
    is_copied: bool = False

    def read(self, allocate: Callable[[], Buffer | None]) -> Buffer | None:
        """Return the buffer of what is read, with one more use or in one of its own."""
        if self.is_copied:
            return allocate()
        if self.buffer is not None:
            self.buffer.uses += 1
        return self.buffer

    def assign(self, value: object, allocate: Callable[[], Buffer | None]) -> Buffer | None:
        """Take the buffer of the value, or copy it; return the one that is not needed any more."""
        old = self.buffer
        if self.is_copied:
            self.buffer = allocate()
        else:
            self.buffer = value if isinstance(value, Buffer) else None
            if self.buffer is not None:
                self.buffer.uses += 1
        return old

    def update(self, allocate: Callable[[], Buffer | None]) -> Buffer | None:
        """Make the buffer one's own before it is written; return the one that is left to its readers, if any."""
        if not self.is_copied and self.buffer is not None and self.buffer.uses == 1:
            return None
        old, self.buffer = self.buffer, allocate()
        return old

    def access_rows(self, allocate: Callable[[], Buffer | None]) -> Buffer | None:
        """Make each later read a copy; return the buffer that is left to its readers, if any.

        Mirrors EnsureSparseVariableAccess of kernels/training_op_helpers.h.
        """
        old = None if self.is_copied else self.update(allocate)
        self.is_copied = True
        return old
