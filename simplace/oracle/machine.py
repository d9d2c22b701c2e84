"""The machine that TensorFlow is to believe in: how many CPU and GPU devices, and how they are cut up."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Machine:
    """Describe the devices of one emulated machine.

    `gpus` counts physical GPUs of `gpu_memory` bytes each. `virtual_gpus[i]` lists the memory limits, in bytes, of
    the logical devices that physical GPU i is split into; an empty entry, or a missing one, leaves it whole.
    `visible` names the physical GPUs that the program sees, in order; None shows them all.

    >>> Machine(gpus=2, virtual_gpus=((GIB, GIB),)).logical_gpus
    3
    >>> Machine(gpus=4, visible=(1, 3)).logical_gpus
    2
    """

    cpus: int = 1
    gpus: int = 1
    gpu_memory: int = 16 * GIB
    virtual_gpus: tuple[tuple[int, ...], ...] = ()
    visible: tuple[int, ...] | None = None

    @property
    def visible_gpus(self) -> tuple[int, ...]:
        """List the physical GPUs that the program sees, by number."""
        return tuple(range(self.gpus)) if self.visible is None else self.visible

    @property
    def logical_gpus(self) -> int:
        """Count the logical GPUs that the program sees before it changes anything itself."""
        return sum(max(1, len(self.split_of(gpu))) for gpu in self.visible_gpus)

    def split_of(self, gpu: int) -> tuple[int, ...]:
        """Give the memory limits that physical GPU `gpu` is split into, () where it is whole."""
        return self.virtual_gpus[gpu] if gpu < len(self.virtual_gpus) else ()
