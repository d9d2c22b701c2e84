"""What one call of simplace found out: placements, their copies, and how far TensorFlow agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from simplace.comparison import Agreement
from simplace.cut_check import CopyAgreement
from simplace.devices import DeviceSet
from simplace.errors import NodeNotFoundError, ProgramError, choices
from simplace.explain import Explanation, explain, find
from simplace.graph.interchange import to_networkx
from simplace.oracle.observation import PythonFact
from simplace.partition.partition import copies
from simplace.partition.transfers import Copy
from simplace.placement.placement import PlacedNode, Placement


@dataclass(frozen=True)
class Placed:
    """Pair a placement with TensorFlow's own, where TensorFlow was asked (`agreement` is None otherwise).

    `copy_agreement` is None where TensorFlow was not asked for its partition graphs, or made none.
    """

    placement: Placement
    agreement: Agreement | None = None
    copy_agreement: CopyAgreement | None = None

    @property
    def name(self) -> str:
        """Return the program's name, such as that of the Python function."""
        return self.placement.program.name

    @cached_property
    def copies(self) -> list[Copy]:
        """List the copies between devices."""
        return copies(self.placement)


@dataclass(frozen=True)
class Result:
    """Hold the placements of all programs of a target, in the order of their first call.

    `tensorflow` is the version whose rules were replayed, `kernels` names the kernel table, `remarks` are sentences
    about the run, `target` is what the user named. `failure` says how the program ended before its end, if it did:
    the programs are then those seen until there. `unchecked` says why TensorFlow was not asked, "" where it was.
    `python` holds what only the running program showed.
    """

    target: str
    tensorflow: str
    kernels: str
    devices: DeviceSet
    programs: tuple[Placed, ...]
    remarks: tuple[str, ...] = ()
    devices_note: str = ""
    failure: ProgramError | None = None
    unchecked: str = ""
    python: tuple[PythonFact, ...] = ()

    @property
    def nodes(self) -> list[PlacedNode]:
        """List the placed nodes of all programs."""
        return [node for placed in self.programs for node in placed.placement.nodes]

    @property
    def copies(self) -> list[Copy]:
        """List the copies between devices of all programs."""
        return [copy for placed in self.programs for copy in placed.copies]

    @property
    def agrees(self) -> bool:
        """Say whether TensorFlow was asked about every program and agrees with all of it."""
        asked = [placed.agreement for placed in self.programs]
        copies = [placed.copy_agreement for placed in self.programs if placed.copy_agreement is not None]
        same = all(agreement is not None and agreement.holds for agreement in asked)
        return self.failure is None and same and all(agreement.holds for agreement in copies)

    def __iter__(self) -> Iterator[Placed]:
        return iter(self.programs)

    def with_devices_note(self, note: str) -> Result:
        """Return the same result with the sentence that says where its devices come from."""
        return replace(self, devices_note=note)

    def only(self, name: str) -> Result:
        """Return the same result with the program called `name` alone."""
        return replace(self, programs=(self.program(name),))

    def program(self, name: str) -> Placed:
        """Return the first program called `name`; raise `NodeNotFoundError` listing the names otherwise."""
        for placed in self.programs:
            if name in (placed.name, placed.placement.program.function):
                return placed
        names = choices({placed.name for placed in self.programs})
        raise NodeNotFoundError(f"no program is called {name!r} in {self.target}; there are: {names}")

    def holding(self, node: str) -> Placed:
        """Return the first program with a node of that name."""
        error: NodeNotFoundError | None = None
        for placed in self.programs:
            try:
                find(placed.placement, node)
            except NodeNotFoundError as missing:
                error = error or missing
            else:
                return placed
        raise error or NodeNotFoundError(f"{self.target} has no program, so there is no node {node!r} to explain")

    def explain(self, node: str) -> Explanation:
        """Explain the device of a node of the first program that has it."""
        return explain(self.holding(node).placement, node)

    def to_networkx(self, program: str | None = None) -> Any:
        """Return one program (the first by default) as a networkx.MultiDiGraph with devices and reasons."""
        return to_networkx((self.program(program) if program else self.programs[0]).placement)
