"""The result of one call: placements, their copies, and how far TensorFlow agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from simplace.devices.device_set import DeviceSet
from simplace.errors import AmbiguousNodeError, NodeNotFoundError, ProgramError, SimplaceError, join_choices
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import (
    ASSIGNMENTS,
    DATAFLOW_ONLY,
    IDENTITIES,
    PLACEHOLDERS,
    READS,
    TAKING_ELEMENTS,
    VARIABLES,
    is_arg,
)
from simplace.partition.collective_members import Collective
from simplace.partition.copies import Communication, find_communication
from simplace.partition.rewrite_graph import rewrite_placed_graph
from simplace.partition.rewritten_graph import Rewritten
from simplace.partition.run_copies import RunCopies, copies_of_runs, merge_copies
from simplace.partition.run_graph import choose_run
from simplace.partition.traffic import Traffic
from simplace.partition.transfers import Copy, CopyColumns, between_devices
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster, find_clusters
from simplace.program.needed_nodes import find_needed
from simplace.program.program import EAGER_OPS, FIRST_CALL

if TYPE_CHECKING:
    from simplace.compare.compare_placements import Agreement
    from simplace.compare.compare_transfers import CopyAgreement
    from simplace.compare.coverage import Coverage
    from simplace.explain.explanation import Explanation
    from simplace.placement.eager.eager_placement import PlacedEager
    from simplace.program.allocation_log import AllocationLog
    from simplace.program.observation import Ending, PythonFact, Unreached
    from simplace.program.placed_graph import PlacedNode

_ASKING = frozenset({"IsVariableInitialized", "VarIsInitializedOp"})
_DATA = PLACEHOLDERS | {"PlaceholderWithDefault"}
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

    @property
    def title(self) -> str:
        """Return the name that a user knows the program by, unlike that of any other program of the result."""
        return self.placement.program.title

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """Return what XLA compiles of the program: ops that TensorFlow does not place one by one."""
        return find_clusters(self.placement)

    @property
    def is_uncalled(self) -> bool:
        """Return whether there is no placement of a function to compare with, as of a dataset that nothing reads.

        A function that runs unplaced is among them.
        """
        return self.agreement is None and self.placement.program.kind in ("compiled", "dataset", "call")

    @property
    def unreplayed(self) -> str:
        """Return the optimizer of Grappler that TensorFlow has rewritten the function by, if it is not replayed."""
        caller = self.placement.program.caller
        return "" if caller is None else caller.unreplayed

    @property
    def is_inlined(self) -> bool:
        """Return whether Grappler puts the function in the place of its call, so that nothing instantiates it."""
        caller = self.placement.program.caller
        return self.is_uncalled and caller is not None and caller.is_inlined

    @property
    def ops(self) -> int:
        """Return how many ops the program has: the placed nodes, and those that XLA compiles."""
        return len(self.placement.decisions) + sum(len(cluster.ops) for cluster in self.clusters)

    @cached_property
    def work(self) -> int:
        """Return how many ops compute: without those that hand tensors on, with those that XLA compiles.

        Of a session, those of its largest run: its graph also holds what earlier sessions ran, or nobody did.
        """
        ops, placed = self.placement.graph.ops, self.placement.placed
        step, nodes = choose_run(placed), self.placement.decisions.keys()
        run = nodes if step is None else nodes & find_needed(placed.graph, step.run)
        return sum(ops[node] not in DATAFLOW_ONLY for node in run) + self._compiled_work

    @property
    def is_mostly_compiled(self) -> bool:
        """Return whether XLA compiles half of the ops that compute, or more."""
        return 0 < self.work <= 2 * self._compiled_work

    @cached_property
    def _compiled_work(self) -> int:
        return sum(op.op not in DATAFLOW_ONLY for cluster in self.clusters for op in cluster.ops)

    @cached_property
    def is_initializer(self) -> bool:
        """Return whether the program does nothing but give variables their first values.

        It assigns, and it reads no variable, no argument but variables, and no element of a dataset or a queue.
        """
        if self.name == _INITIALIZER:
            return True
        graph = self.placement.graph
        kinds = {graph.ops[node] for node in graph.op_ids}
        if kinds.isdisjoint(ASSIGNMENTS) or self.clusters or not kinds.isdisjoint(READS | _DATA):
            return False
        if any(self._computes_with_variable(node) for node in graph.op_ids):
            return False
        given = (node for node in graph.op_ids if is_arg(graph.ops[node]))
        takes_data = any(graph.out_types[node][0] != DataType.DT_RESOURCE for node in given)
        return not takes_data and not any(op.startswith(TAKING_ELEMENTS) for op in kinds)

    def _computes_with_variable(self, node: int) -> bool:
        """Return whether a node takes the value of a variable that hands out references, and does not assign to it."""
        graph = self.placement.graph
        if graph.ops[node] in ASSIGNMENTS or graph.ops[node] in IDENTITIES or graph.ops[node] in _ASKING:
            return False
        for source, _ in graph.list_sources(node):
            origins = (source, *graph.walk_first_inputs(source)) if graph.ops[source] in IDENTITIES else (source,)
            origin = next((one for one in origins if graph.ops[one] not in IDENTITIES), source)
            if graph.ops[origin] in VARIABLES:
                return True
        return False

    @property
    def is_first_call(self) -> bool:
        """Return whether a function may initialize variables of its own before it works."""
        return self.placement.program.name == FIRST_CALL

    @cached_property
    def runs(self) -> list[RunCopies]:
        """List the runs of a session that happened, each with the copies that it makes; [] for any other program."""
        program = self.placement.program
        return copies_of_runs(self.placement.placed, program.runs) if program.pruned_to is None else []

    @cached_property
    def copies(self) -> list[Copy]:
        """List the copies between devices, of a session those that some run made."""
        return list(self.copy_columns)

    @cached_property
    def crossing(self) -> list[Copy]:
        """List the copies that carry a tensor to another device: those that people count."""
        return [self.copy_columns[i] for i in self.copy_columns.between_devices]

    @cached_property
    def step_copies(self) -> list[Copy]:
        """List the copies of a step that carry a tensor to another device: of a session, those of its largest run.

        A copy of what that run feeds has producer -1, one that is only fetched has no consumers.
        """
        return self.crossing if self.run is None else between_devices(self.run.copies)

    @cached_property
    def copy_columns(self) -> CopyColumns:
        """Return the copies between devices in columns, which are quicker to sum up than records."""
        return self.communication.copies

    @cached_property
    def communication(self) -> Communication:
        """Return what a step sends: copies, control signals, collectives."""
        found = self._whole_communication
        return found.with_copies(merge_copies(self.runs)) if self.runs else found

    @cached_property
    def rewritten(self) -> Rewritten | None:
        """Return the graph as TensorFlow partitions it, None where it is refused."""
        return rewrite_placed_graph(self.placement.placed) if self.placement.placed.is_whole else None

    @cached_property
    def _whole_communication(self) -> Communication:
        """Return what the graph sends as a whole, whatever runs of it there were."""
        return find_communication(self.placement.placed, self.rewritten)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """List the collectives: what several devices exchange at once."""
        return self.communication.collectives

    @cached_property
    def run(self) -> RunCopies | None:
        """Return the run of a session that counts as a step: the one that needs the most nodes."""
        chosen = choose_run(self.placement.placed) if self.runs else None
        return next((one for one in self.runs if one.run == chosen), None)

    @cached_property
    def traffic(self) -> Traffic:
        """Return how much a step sends, in the counts that all outputs show; of a session, its largest run."""
        if self.run is None:
            return self.communication.traffic
        return self._whole_communication.with_copies(self.run.copies).traffic


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
    to its own end. `allocations` is what TensorFlow did in host memory, None where nobody asked.
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
    allocations: AllocationLog | None = None

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
        """Return the program with the title `name`, or else the first with that name or role.

        Raises `NodeNotFoundError` listing the titles otherwise.
        """
        for placed in self.programs:
            if placed.title == name:
                return placed
        for placed in self.programs:
            if name in (placed.name, placed.placement.program.function, placed.placement.program.known_as):
                return placed
        names = join_choices(
            {*(placed.title for placed in self.programs), *([EAGER_OPS] if self.eager is not None else [])}
        )
        raise NodeNotFoundError(f"no program is called {name!r} in {self.target}; there are: {names}")

    @cached_property
    def used_devices(self) -> frozenset[str]:
        """Return the devices that a program which TensorFlow accepts, or an eager op, runs on, by full names."""
        accepted = (one.placement for one in self.programs if one.placement.refusal is None)
        eager = frozenset() if self.eager is None else self.eager.used_devices
        return eager.union(filter(None, (name for each in accepted for name in set(each.node_devices))))

    @property
    def works_eagerly(self) -> bool:
        """Return whether all work is done outside of functions of the user's but what initializes variables."""
        return self.eager is not None and all(
            placed.is_initializer or placed.placement.program.is_internal for placed in self.programs
        )

    def largest(self) -> Placed:
        """Return the program that does the work; raise why there is none, a `SimplaceError`, where there is none.

        It is the one with the most ops that compute, the first of several; a function of a dataset that is no body of a
        loop, or else one that only initializes variables, or that TensorFlow made for the user's ops, if there is no
        other. A function's first call is not, where others follow.
        """
        if not self.programs and self.failure is not None:
            raise self.failure
        if not self.programs:
            what = "all of it ran outside of functions, op by op" if self.eager is not None else "nothing was placed"
            raise SimplaceError(f"{self.target}: {what}, so there is no graph to draw or run")
        return self.by_work()[0]

    def by_work(self) -> list[Placed]:
        """List the programs by the work that they do for the user, most of it first."""

        def rank(placed: Placed) -> tuple[bool, bool, int, int]:
            program = placed.placement.program
            is_step = not placed.is_initializer and not self.is_followed(placed) and not program.is_internal
            return (is_step, program.kind != "dataset" or program.is_loop_body, placed.work, placed.ops)

        return sorted(self.programs, key=rank, reverse=True)

    def is_followed(self, placed: Placed) -> bool:
        """Return whether a program is a function's first call, and later ones, which are alike, are programs, too."""
        return placed.is_first_call and placed.placement.program.owner in self._called

    @cached_property
    def _called(self) -> frozenset[int]:
        return frozenset(one.placement.program.owner for one in self.programs if not one.is_first_call)

    def holding(self, node: str) -> Placed:
        """Return the first program with a node of that name, or else with one node whose name ends in it."""
        from simplace.explain.explanation import check_found, describe_missing_node

        ambiguous: AmbiguousNodeError | None = None
        for placed in sorted(self.programs, key=lambda placed: node not in placed.placement.graph.ids):
            try:
                check_found(placed.placement, node, placed.clusters)
            except AmbiguousNodeError as error:
                ambiguous = ambiguous or error
            except NodeNotFoundError:
                continue
            else:
                return placed
        if ambiguous or not self.programs:
            nothing = f"{self.target} has no program, so there is no node {node!r} to explain"
            raise ambiguous or NodeNotFoundError(nothing)
        raise describe_missing_node([placed.placement for placed in self.programs], node)

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
