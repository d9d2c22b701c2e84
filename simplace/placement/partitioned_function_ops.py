"""The calls that are left in a placed graph: TensorFlow places each function when the kernel of its call first runs.

Mirrors `PartitionedCallOp` of tensorflow/core/kernels/partitioned_function_ops.cc: arguments and results are on the
device of the call, resources where their handles say, and what requests no device goes to the device of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.graph.node_def import FuncRef, FunctionDef, GraphDef
from simplace.graph.op_kinds import MUST_COMPILE, is_partitioned_call
from simplace.lowering.reachable_functions import select_reached
from simplace.placement.captured_function import list_beside, optimizes_called
from simplace.placement.function_optimizer import inlines_call
from simplace.placement.implementation_selector import LEAST_NODES, select_implementation
from simplace.placement.placement import Placement
from simplace.program.program import Caller, Program


def find_called(placement: Placement) -> list[Program]:
    """Return the functions of the calls in a placed graph as programs, by node id; not what XLA compiles."""
    graph, program = placement.graph, placement.program
    if placement.refusal is not None or program.kind == "compiled":
        return []
    found = []
    for node in sorted(placement.decisions):
        called = graph.attrs[node].get("f") if is_partitioned_call(graph.ops[node]) else None
        function = program.graph.library.get(called.name) if isinstance(called, FuncRef) else None
        if function is not None and graph.attrs[node].get(MUST_COMPILE) is not True:
            found.append(_make_program(placement, node, _select(placement, node, function)))
    return found


def _select(placement: Placement, node: int, function: FunctionDef) -> FunctionDef:
    """Return what a call calls after Grappler has optimized the graph, where it does."""
    program = placement.program
    if not program.has_grappler or program.pruned_to is not None or len(placement.graph.op_ids) < LEAST_NODES:
        return function
    kind = placement.devices.by_name[placement.device(node)].type
    return select_implementation(function, kind, program.graph.library)


def _make_program(placement: Placement, node: int, function: FunctionDef) -> Program:
    graph, program = placement.graph, placement.program
    beside = list_beside(placement)
    caller = Caller(
        program.name,
        graph.names[node],
        graph.ops[node],
        "function called",
        placement.notes(node).at,
        rewrites=0 if program.caller is None else program.caller.rewrites,
        sunk_before=program.caller is None or program.caller.sunk_before,
        opened=() if program.caller is None else program.caller.opened,
        beside=beside,
        may_be_optimized=optimizes_called(program, beside),
        switched=() if program.caller is None else program.caller.switched,
        is_made=program.caller is not None and program.caller.is_made,
        is_inlined=inlines_call(placement, node, function),
    )
    return Program(
        shown_name(function.name),
        "call",
        GraphDef((), select_reached(function, program.graph.library), program.graph.producer),
        function.name,
        tuple(_list_arg_devices(placement, node, function)),
        placement.device(node),
        placement.soft_placement,
        program.notes,
        inlining=program.inlining,
        has_grappler=program.has_grappler,
        inlines_later=program.inlines_later,
        caller=caller,
        makers=program.makers,
    )


def _list_arg_devices(placement: Placement, node: int, function: FunctionDef) -> Iterator[str]:
    graph = placement.graph
    sources = [graph.edge_src[edge] for edge in graph.data_in_edges(node)]
    # A backward function that stands in for another takes what its own forward one keeps, last: any number of tensors.
    for source, arg in zip(chain(sources, repeat(node)), function.inputs, strict=False):
        yield placement.device(source if arg.dtype == DataType.DT_RESOURCE else node)
