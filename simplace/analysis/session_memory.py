"""Which fraction of a GPU's memory the sessions of a program take.

Mirrors `SingleVirtualDeviceMemoryLimit` of tensorflow/core/common_runtime/gpu/gpu_device.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from simplace.executor.step_options import StepOptions
from simplace.program.observation import PythonFact


@dataclass(frozen=True, slots=True)
class MemoryFraction:
    """Record of the per_process_gpu_memory_fraction that a session sets, and of the user's line."""

    value: float
    at: str

    @property
    def is_usual(self) -> bool:
        """Return whether it is a part of the GPU's memory: more than all of it is unified memory."""
        return 0 < self.value <= 1


def find_memory_fraction(facts: Iterable[PythonFact]) -> MemoryFraction | None:
    """Return the fraction that holds for the process, None where it is not set."""
    told = (fact for fact in facts if fact.kind == "memory fraction")
    return next((MemoryFraction(float(fact.values["fraction"]), fact.at) for fact in told), None)


def use_memory_fraction(options: StepOptions, facts: Iterable[PythonFact]) -> StepOptions:
    """Return options with the fraction that holds for the process, where none is chosen."""
    if options.gpu_memory_fraction is not None:
        return options
    found = find_memory_fraction(facts)
    return replace(options, gpu_memory_fraction=found.value if found and found.is_usual else 0.0)
