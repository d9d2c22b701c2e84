"""All six stages of a run on one screen: import, lower, place, then partition, estimate costs, execute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from simplace.devices.device_set import Device, DeviceSet
from simplace.graph.builder import GraphBuilder
from simplace.graph.collector import paused_collector
from simplace.graph.graph import freeze_graph
from simplace.kernels.registry import KernelTable
from simplace.lowering.op_signatures import Signatures
from simplace.lowering.prepare_graph import prepare_graph
from simplace.lowering.rewrite_utils import Rewriting, rewrite_functions
from simplace.placement.called_bodies import Bodies
from simplace.placement.default_device import call_device
from simplace.placement.placement import Placement
from simplace.placement.placer import place_graph, refused_placement
from simplace.program.program import Program
from simplace.program.status import Refused

if TYPE_CHECKING:
    from simplace.costs.cost_model import CostModel
    from simplace.costs.estimate import EstimatedGraph
    from simplace.executor.execution import Execution
    from simplace.executor.step_options import StepOptions
    from simplace.graph.input_columns import InputColumns
    from simplace.importers.target import Target
    from simplace.partition.graph_partition import PartitionedGraph
    from simplace.partition.rewritten_graph import Rewritten
    from simplace.placement.eager.eager_placement import EagerPlacement
    from simplace.program.eager_op import EagerOp
    from simplace.program.placed_graph import PlacedGraph

# Placing a graph must not wait for imports of readers, simulators and eager ops: these import what they need.

AfterStage = Callable[[str, object], None]  # called with the name of a stage that ended, and the record that it made


def import_programs(target: Target, tensorflow: str | None) -> list[Program]:
    """Read the programs of a model file; `tensorflow` is the version that would place them."""
    from simplace.importers.read_file import read_file

    with paused_collector():
        programs = read_file(target, tensorflow)
        _ended("import", programs)
        return programs


def place_program(
    program: Program,
    devices: DeviceSet,
    table: KernelTable,
    *,
    soft_placement: bool | None = None,
    inputs: InputColumns | None = None,
) -> Placement:
    """Place a program on a set of devices with the kernels of a table: lower its graph, then place it.

    `soft_placement` overrides what the program set. `inputs` is what the inputs of the graph's nodes name, where that
    has been looked up. A placement that TensorFlow would refuse comes back as such.
    """
    program = program.with_soft_placement(program.soft_placement if soft_placement is None else soft_placement)
    if program.runs_unplaced:
        program = replace(program, arg_devices=(program.scope,) * len(program.arg_devices))
    soft, default, instantiated = program.soft_placement, None, program
    if program.caller is not None and (program.caller.rewrites or program.caller.sunk_before):
        how = Rewriting.of_caller(program.caller)
        rewritten = rewrite_functions(program.graph, how, table)
        library = rewritten.graph.library if rewritten.added else {}
        program = program.with_rewritten(rewritten.made_of, rewritten.origins, library)
        instantiated = replace(program, graph=rewritten.graph)
    with paused_collector():
        try:
            default = _default_device(program, devices)
            graph = prepare_graph(instantiated, table, devices, default.name if default else None, inputs)
            _ended("lower", graph)
        except Refused as refused:
            empty = freeze_graph(GraphBuilder(Signatures(table, {})))
            return refused_placement(program, empty, devices, table, default, refused.refusal)
        bodies = Bodies(instantiated, table)
        placement = place_graph(program, graph, devices, table, default=default, soft_placement=soft, bodies=bodies)
        _ended("place", placement)
        return placement


def place_again(placement: Placement, program: Program) -> Placement:
    """Place a changed program as the original was: on the same devices, with the same kernels and soft placement."""
    table, soft = placement.groups.support.table, placement.soft_placement
    return place_program(program, placement.devices, table, soft_placement=soft)


class EagerPlacer:
    """Place eager ops on a set of devices with the kernels of a table; ops that are alike share what they can."""

    def __init__(self, devices: DeviceSet, table: KernelTable) -> None:
        self.devices = devices
        self._table = table
        self._bodies: dict[tuple[object, ...], Placement] = {}

    def place(self, op: EagerOp) -> EagerPlacement:
        """Choose the device of an op, then place the function that TensorFlow makes of it."""
        from simplace.placement.eager.eager_placement import EagerPlacement
        from simplace.placement.eager.execute import choose_device, input_copies, input_devices
        from simplace.placement.eager.wrapped_op import calls_function

        devices, table = self.devices, self._table
        try:
            choice = choose_device(op, devices, table)
        except Refused as refused:
            return EagerPlacement(op, None, refusal=refused.refusal)
        wanted = input_devices(op, choice.device, devices, table)
        copies = input_copies(op, wanted)
        if calls_function(op):
            return EagerPlacement(op, choice, copies)
        body = self._body(op, choice.device, wanted)
        return EagerPlacement(op, choice, copies, body, body.refusal)

    def _body(self, op: EagerOp, device: str, wanted: tuple[str, ...]) -> Placement:
        from simplace.placement.eager.execute import keeps_ints_on_device
        from simplace.placement.eager.wrapped_op import wrap_op

        key = (op.op, tuple(op.attrs.items()), device, wanted)
        if key not in self._bodies:
            definition = self._table.op(op.op)
            assert definition is not None, f"{self._table.name} knows no op {op.op}"
            on_device = keeps_ints_on_device(op, device, self.devices, self._table)
            program = wrap_op(op, definition, device, wanted, keeps_ints_on_device=on_device)
            self._bodies[key] = place_program(program, self.devices, self._table)
        return self._bodies[key]


def rewrite_by_grappler(placement: Placement, options: StepOptions) -> Rewritten:
    """Ask TensorFlow's Grappler to optimize a step's graph, and return it as TensorFlow partitions it then.

    The GPUs are such as `options` name. A session that places what a run needs (place_pruned_graph: "Can't optimize a
    pruned graph") has it as it is, and so has a program that turned Grappler off, or that XLA compiles whole, and a
    dataset's function that is not placed. Raises `ProgramError` where TensorFlow is not there.
    """
    from simplace.costs.grappler_devices import describe_devices
    from simplace.lowering.graph_constructor import construct_finished
    from simplace.oracle.grappler_question import optimize_graph_def
    from simplace.partition.grappler_rewrite import optimize_with_grappler, rewriter_of
    from simplace.partition.rewrite_graph import rewrite_placed_graph
    from simplace.partition.run_graph import prune_to_run

    placed = placement.placed
    program = placement.program
    is_left = program.pruned_to is not None or program.kind == "compiled" or program.runs_unplaced
    if is_left or not program.has_grappler:
        return rewrite_placed_graph(placed)
    pruned = placed if options.run is None else prune_to_run(placed, options.run)
    signatures = Signatures(placement.groups.support.table, program.graph.library)
    devices = describe_devices(placement.devices, options.gpu, options.cores)
    function = signatures.library.get(program.function or "")
    effects = options.run.targets if options.run else () if function is None else function.control_ret.values()
    optimized = optimize_with_grappler(
        pruned,
        effects,
        partial(optimize_graph_def, devices=devices, rewriter=rewriter_of(program)),
        lambda nodes: construct_finished(nodes, signatures),
        is_run=options.run is not None,
    )
    rewritten = rewrite_placed_graph(optimized.placed)
    ids, names = placed.graph.ids, pruned.graph.names
    to_placed = [ids.get(names[i], -1) if i >= 0 else -1 for i in optimized.origin]
    origin = tuple(to_placed[node] if node >= 0 else -1 for node in rewritten.origin)
    return replace(rewritten, origin=origin)


def simulate_step(placed: PlacedGraph, options: StepOptions, rewritten: Rewritten | None = None) -> Execution:
    """Simulate one step of a placed graph: partition it, estimate costs, run the model of the executor.

    `rewritten` is the graph as TensorFlow partitions it, pruned to the run of `options`, where one has that already.
    """
    from simplace.costs.chosen_model import find_outcomes
    from simplace.executor.control_flow import control_flow
    from simplace.executor.execution import execute_graph
    from simplace.partition.dead_nodes import remove_dead_nodes
    from simplace.partition.graph_optimizer import optimize_subgraphs
    from simplace.partition.graph_partition import partition_graph
    from simplace.partition.run_graph import partition_run

    if options.run is not None and rewritten is None:
        graph = partition_run(placed, options.run)
    else:
        graph = partition_graph(placed, rewritten)
    if (run := options.run or placed.program.pruned_to) is not None:
        graph = replace(graph, targets=frozenset(run.targets))
    _ended("partition", graph)
    model = _choose_model(placed, graph, options)
    graph = optimize_subgraphs(graph, options.unfolded) if options.optimizes else remove_dead_nodes(graph)
    estimated = _estimate_costs(graph, model, options)
    _ended("estimate costs", estimated)
    flow = control_flow(
        graph,
        trips=options.trips,
        branches=options.branches,
        compiled=estimated.loops,
        observed=find_outcomes(model),
    )
    execution = execute_graph(estimated, flow, options)
    _ended("execute", execution)
    return execution


def _default_device(program: Program, devices: DeviceSet) -> Device | None:
    takes_none = not program.is_called or (program.caller is not None and not program.caller.takes_default)
    return None if takes_none else call_device(program.scope, devices, program.soft_placement)


def _choose_model(placed: PlacedGraph, graph: PartitionedGraph, options: StepOptions) -> CostModel:
    from simplace.costs.chosen_model import check_belongs, chosen_model, drop_costs

    model = chosen_model(options.costs, options.gpu, options.memory_fraction, options.cpu)
    names = [node.name for node in graph.nodes]
    if not options.grappler:
        check_belongs(model, names)
        return model
    from simplace.partition.grappler_rewrite import list_changed

    check_belongs(model, [*names, *placed.graph.names])  # TensorFlow runs them without Grappler where it measures them
    return drop_costs(model, list_changed(placed.graph, graph.placed.graph))


def _estimate_costs(graph: PartitionedGraph, model: CostModel, options: StepOptions) -> EstimatedGraph:
    from simplace.costs.estimate import estimate_costs

    return estimate_costs(graph, model, batch=options.batch, trips=options.trips)


def _do_nothing(stage: str, record: object) -> None:
    """Do nothing after a stage."""


_ended: AfterStage = _do_nothing


@contextmanager
def watched_by(after: AfterStage) -> Iterator[None]:
    """Call a function after each stage inside this context, such as one that verifies the record, or takes the time."""
    global _ended
    before, _ended = _ended, after
    try:
        yield
    finally:
        _ended = before
