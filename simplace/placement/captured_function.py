"""The functions that the kernels of dataset ops call: each is a graph of its own, which TensorFlow places when needed.

Mirrors `CapturedFunction::Instantiate` of tensorflow/core/data/captured_function.cc: the elements of a dataset are on
the device of the op, a captured variable is where its handle says, and all results go back to the op's device.
"""

from __future__ import annotations

from collections.abc import Iterator

from simplace.devices.device_set import Device
from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.graph.node_def import FuncRef, FunctionDef, GraphDef
from simplace.kernels.dataset_ops import (
    calls_captured,
    count_rewrites,
    describe_role,
    find_captured_slots,
    takes_default,
)
from simplace.lowering.reachable_functions import select_reached
from simplace.placement.placement import Placement
from simplace.program.program import Caller, Program

_ON_HOST = frozenset({DataType.DT_INT32, DataType.DT_STRING, DataType.DT_VARIANT})  # MTypeFromDType


def find_captured(placement: Placement) -> list[Program]:
    """Return the functions of the dataset ops in a placed graph as programs, by node id."""
    if placement.refusal is not None:
        return []
    return [program for node in sorted(placement.decisions) for program in _make_programs(placement, node)]


def _make_programs(placement: Placement, node: int) -> Iterator[Program]:
    graph, program = placement.graph, placement.program
    op, attrs = graph.ops[node], graph.attrs[node]
    op_def = placement.groups.support.table.op(op)
    if op_def is None or not calls_captured(op_def):
        return
    device = placement.devices.by_name[placement.device(node)]
    for attr, kind in op_def.attr_types.items():
        called = attrs.get(attr) if kind == "func" else None
        function = program.graph.library.get(called.name) if isinstance(called, FuncRef) else None
        if function is None:
            continue
        rewrites = 0 if program.caller is None else program.caller.rewrites  # of all that a function reaches, too
        caller = Caller(
            program.name,
            graph.names[node],
            op,
            describe_role(op, attr),
            placement.notes(node).at,
            takes_default(op, attrs),
            max(rewrites, count_rewrites(op)),
            () if program.caller is None else program.caller.left_out,
        )
        slots = find_captured_slots(op_def, attr, attrs)
        yield Program(
            shown_name(function.name),
            "dataset",
            GraphDef((), select_reached(function, program.graph.library), program.graph.producer),
            function.name,
            tuple(_list_arg_devices(placement, node, function, slots, device)),
            device.name,
            placement.soft_placement,
            program.notes,
            inlining=program.inlining,
            caller=caller,
        )


def _list_arg_devices(
    placement: Placement, node: int, function: FunctionDef, slots: range, device: Device
) -> Iterator[str]:
    graph = placement.graph
    sources = {graph.edge_dst_slot[e]: graph.edge_src[e] for e in graph.in_edges[node] if not graph.is_control(e)}
    host = next((each.name for each in placement.devices if each.type == "CPU"), device.name)
    own = len(function.inputs) - len(slots)
    for i, arg in enumerate(function.inputs):
        if i < own:
            yield device.name
        elif arg.dtype == DataType.DT_RESOURCE:
            yield placement.device(sources[slots[i - own]])
        else:
            yield host if arg.dtype in _ON_HOST else device.name
