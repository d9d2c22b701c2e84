"""The result of one call: placements, their copies, and how far TensorFlow agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from simplace.devices.device_set import DeviceSet
from simplace.errors import NodeNotFoundError, ProgramError, SimplaceError, join_choices
from simplace.partition.collective_members import Collective
from simplace.partition.copies import Communication, find_communication
from simplace.partition.traffic import Traffic
from simplace.partition.transfers import Copy, CopyColumns
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster, find_clusters
from simplace.program.program import EAGER_OPS

if TYPE_CHECKING:
    from simplace.compare.compare_placements import Agreement
    from simplace.compare.compare_transfers import CopyAgreement
    from simplace.compare.coverage import Coverage
    from simplace.explain.explanation import Explanation
    from simplace.placement.eager.eager_placement import PlacedEager
    from simplace.program.observation import Ending, PythonFact, Unreached
    from simplace.program.placed_graph import PlacedNode

_INITIALIZER = "initialize_variables"  # how tf.function names the function that lifts initializers out of another


@dataclass(frozen=True)
class Placed:
    """Record of a placement and its comparison with TensorFlow's (`agreement` is None where there is none).

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
    def clusters(self) -> tuple[Cluster, ...]:
        """Return what XLA compiles of the program: ops that TensorFlow does not place one by one."""
        return find_clusters(self.placement)

    @property
    def is_uncalled(self) -> bool:
        """Return whether TensorFlow came to place the function at no time, as that of a dataset that nothing reads."""
        return self.agreement is None and self.placement.program.kind in ("compiled", "dataset", "call")

    @property
    def ops(self) -> int:
        """Return how many ops do the program's work: the placed nodes, and those that XLA compiles."""
        return len(self.placement.decisions) + sum(len(cluster.ops) for cluster in self.clusters)

    @cached_property
    def copies(self) -> list[Copy]:
        """List the copies between devices."""
        return list(self.copy_columns)

    @cached_property
    def crossing(self) -> list[Copy]:
        """List the copies that carry a tensor to another device: those that people count."""
        return [self.copy_columns[i] for i in self.copy_columns.between_devices()]

    @cached_property
    def copy_columns(self) -> CopyColumns:
        """Return the copies between devices in columns, which are quicker to sum up than records."""
        return self.communication.copies

    @cached_property
    def communication(self) -> Communication:
        """Return what a step sends: copies, control signals, collectives."""
        return find_communication(self.placement.placed)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """List the collectives: what several devices exchange at once."""
        return self.communication.collectives

    @property
    def traffic(self) -> Traffic:
        """Return how much a step sends, in the counts that all outputs show."""
        return self.communication.traffic


@dataclass(frozen=True)
class Result:
    """Record of the placements of all programs of a target, in the order of their first call.

    `tensorflow` is the version whose rules were replayed, `kernels` names the kernel table, `remarks` are sentences
    about the run, `target` is what the user named. `failure` is how the program terminated early, if it did:
    the programs are then those seen until there. `unchecked` is why TensorFlow was not asked, "" where it was.
    `python` holds what only the running program showed. `coverage` counts what TensorFlow logged by whether it belongs
    to a program here, None where nothing was logged or the run was narrowed to one function. `eager` holds the ops that
    ran outside of functions, None where none did or nothing was run, `eager_agreement` how far TensorFlow agrees.
    `unreached` are the functions of the program that no call reached, `ending` is how it ended early, "" where it ran
    to its own end.
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
    eager: PlacedEager | None = None
    eager_agreement: Agreement | None = None
    coverage: Coverage | None = None
    unreached: tuple[Unreached, ...] = ()
    ending: Ending = ""

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
        """Return whether TensorFlow was asked about every program and agrees with all of it.

        A function that nothing called during the run is no disagreement.
        """
        asked = [placed.agreement for placed in self.programs if not placed.is_uncalled]
        copies = [placed.copy_agreement for placed in self.programs if placed.copy_agreement is not None]
        same = all(agreement is not None and agreement.holds for agreement in asked)
        eager = self.eager_agreement is None or self.eager_agreement.holds
        return self.failure is None and same and eager and all(agreement.holds for agreement in copies)

    def __iter__(self) -> Iterator[Placed]:
        return iter(self.programs)

    def only(self, name: str) -> Self:
        """Return the same result with the program called `name` alone; "eager ops" is what ran outside of functions."""
        if name == EAGER_OPS and self.eager is not None:
            return replace(self, programs=(), unreached=())
        return replace(self, programs=(self.program(name),), eager=None, eager_agreement=None, unreached=())

    def program(self, name: str) -> Placed:
        """Return the first program called `name`; raise `NodeNotFoundError` listing the names otherwise."""
        for placed in self.programs:
            if name in (placed.name, placed.placement.program.function):
                return placed
        names = join_choices(
            {*(placed.name for placed in self.programs), *([EAGER_OPS] if self.eager is not None else [])}
        )
        raise NodeNotFoundError(f"no program is called {name!r} in {self.target}; there are: {names}")

    def largest(self) -> Placed:
        """Return the program that does the work; raise `SimplaceError` where there is none.

        It is the one with the most ops, the first of several; one that only initializes variables if there is no other.
        """
        if not self.programs:
            what = "all of it ran outside of functions, op by op" if self.eager is not None else "nothing was placed"
            raise SimplaceError(f"{self.target}: {what}, so there is no graph to draw or run")
        return max(self.programs, key=lambda placed: (placed.name != _INITIALIZER, placed.ops))

    def holding(self, node: str) -> Placed:
        """Return the first program with a node of that name."""
        from simplace.explain.explanation import check_found

        error: NodeNotFoundError | None = None
        for placed in self.programs:
            try:
                check_found(placed.placement, node, placed.clusters)
            except NodeNotFoundError as missing:
                error = error or missing
            else:
                return placed
        raise error or NodeNotFoundError(f"{self.target} has no program, so there is no node {node!r} to explain")

    def explain(self, node: str) -> Explanation:
        """Explain the device of a node of the first program that has it, or of eager ops by line, op or name."""
        from simplace.explain.eager import explain_eager, find_eager
        from simplace.explain.explanation import explain_node

        try:
            placed = self.holding(node)
        except NodeNotFoundError:
            if self.eager is None or (self.programs and not find_eager(self.eager, node)):
                raise
            return explain_eager(self.eager, node)
        return explain_node(placed.placement, node, placed.clusters)

    def to_networkx(self, program: str | None = None) -> Any:
        """Return one program (the first by default) as a networkx.MultiDiGraph with devices and reasons."""
        from simplace.graph.interchange import to_networkx

        placement = (self.program(program) if program else self.programs[0]).placement
        return to_networkx(placement.graph, placement.device)
