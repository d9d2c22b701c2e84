"""The functions that the kernels of dataset ops call: each is a graph of its own, which TensorFlow places when needed.

Mirrors `CapturedFunction::Instantiate` of tensorflow/core/data/captured_function.cc: the elements of a dataset are on
the device of the iterator over it, or of the op that walks through it, a captured variable is where its handle says,
and all results go back to the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.graph.node_def import FuncRef, FunctionDef, GraphDef
from simplace.graph.op_kinds import is_retval
from simplace.kernels.dataset_ops import (
    INITIALIZES,
    calls_captured,
    count_rewrites,
    describe_role,
    find_captured_slots,
    makes_dataset,
    takes_default,
)
from simplace.lowering.fusion_utils import OF_DATASETS
from simplace.lowering.reachable_functions import reach_all, select_reached
from simplace.placement.placement import Placement
from simplace.program.program import Caller, Program

_ON_HOST = frozenset({DataType.DT_INT32, DataType.DT_STRING})  # MTypeFromDType, beside resources; a variant is not


def find_captured(placement: Placement) -> list[Program]:
    """Return the functions of the dataset ops in a placed graph as programs, by node id."""
    if placement.refusal is not None:
        return []
    beside = list_beside(placement)
    return [program for node in sorted(placement.decisions) for program in _make_programs(placement, node, beside)]


def list_beside(placement: Placement) -> tuple[str, ...]:
    """Return all functions that TensorFlow optimizes together with one that a node of a placed graph calls."""
    program = placement.program
    if program.caller is not None:
        return program.caller.beside
    return reach_all((placement.graph.attrs[node] for node in placement.decisions), program.graph.library)


def optimizes_called(program: Program, beside: Iterable[str]) -> bool:
    """Return whether Grappler optimizes what the functions of datasets call as it does other functions.

    It leaves out those that datasets call, and for its first walk through a library what these call
    (`PropagateTFDataAttrs` of grappler/optimizers/meta_optimizer.cc). Once it has optimized a function, it walks again.
    """
    if program.caller is not None:
        return program.caller.may_be_optimized
    library = program.graph.library
    datasets = [library[name] for name in beside if library[name].attrs.get(OF_DATASETS)]
    left_out = set(chain.from_iterable(select_reached(function, library) for function in datasets))
    return not left_out.issuperset(beside)


def _make_programs(placement: Placement, node: int, beside: tuple[str, ...]) -> Iterator[Program]:
    graph, program = placement.graph, placement.program
    op, attrs = graph.ops[node], graph.attrs[node]
    op_def = placement.groups.support.table.op(op)
    if op_def is None or not calls_captured(op_def):
        return
    walkers = _list_walking_devices(placement, node)
    for attr, kind in op_def.attr_types.items():
        called = attrs.get(attr) if kind == "func" else None
        found = _find_function(program, called.name) if isinstance(called, FuncRef) else None
        if found is None:
            continue
        function, library, is_made = found
        rewrites = 0 if program.caller is None else program.caller.rewrites  # of all that a function reaches, too
        is_made = is_made or (program.caller is not None and program.caller.is_made)
        slots = find_captured_slots(op_def, attr, attrs)
        caller = Caller(
            program.name,
            graph.names[node],
            op,
            describe_role(op, attr),
            placement.notes(node).at,
            takes_default(op, attrs),
            0 if is_made else max(rewrites, count_rewrites(op)),
            () if program.caller is None else program.caller.switched,
            upstream=_find_upstream(placement, node),
            captured=len(slots),
            attr=attr,
            is_made=is_made,
            sunk_before=program.caller is None or program.caller.sunk_before,
            opened=() if program.caller is None else program.caller.opened,
            beside=beside,
            may_be_optimized=optimizes_called(program, beside),
        )
        for device in walkers:
            yield Program(
                shown_name(function.name),
                "dataset",
                GraphDef((), select_reached(function, library), program.graph.producer),
                function.name,
                tuple(_list_arg_devices(placement, node, function, slots, device)),
                device,
                placement.soft_placement,
                program.notes,
                inlining=program.inlining,
                has_grappler=program.has_grappler,
                inlines_later=program.inlines_later,
                caller=caller,
                makers=program.makers,
            )


def _list_walking_devices(placement: Placement, node: int) -> list[str]:
    """List the devices on which something takes elements of the dataset of an op.

    It is the op's own device if nothing does, or if the op makes none but walks through one. What walks through a
    dataset in another one's function has no kernel but on a CPU.
    """
    graph, op_of = placement.graph, placement.groups.support.table.op
    found: dict[str, None] = {}
    ways = [(node, False)] if makes_dataset(op_of(graph.ops[node])) else []
    seen = set(ways)
    while ways:
        last, is_inside = ways.pop()
        for edge in graph.out_edges[last]:
            after = graph.edge_dst[edge]
            way = after, is_inside or _is_walked_inside(placement, after, graph.edge_dst_slot[edge])
            if graph.is_control(edge) or way in seen:
                continue
            seen.add(way)
            is_handed_on = "Dataset" not in graph.ops[after] and DataType.DT_VARIANT in graph.out_types[after]
            if is_handed_on or makes_dataset(op_of(graph.ops[after])):
                ways.append(way)
                continue
            if is_retval(graph.ops[after]):
                device = placement.program.scope if placement.program.kind == "dataset" else ""
            else:
                device = _find_walking_device(placement, after)
            if device:
                is_on_cpu = placement.devices.by_name[device].type == "CPU"
                found[placement.devices.find_host(device) if way[1] and not is_on_cpu else device] = None
    return list(found) or [placement.device(node)]


def _is_walked_inside(placement: Placement, node: int, slot: int) -> bool:
    """Return whether the functions of a dataset's op capture an input, and do not return a dataset."""
    graph = placement.graph
    op_def, attrs = placement.groups.support.table.op(graph.ops[node]), graph.attrs[node]
    if op_def is None or slot < 0 or not calls_captured(op_def):
        return False
    called = {attr: attrs[attr] for attr, kind in op_def.attr_types.items() if kind == "func" and attr in attrs}
    if not any(slot in find_captured_slots(op_def, attr, attrs) for attr in called):
        return False
    functions = (_find_function(placement.program, each.name) for each in called.values() if isinstance(each, FuncRef))
    results = (result.dtype for found in functions if found is not None for result in found[0].outputs)
    return DataType.DT_VARIANT not in results


def _find_walking_device(placement: Placement, node: int) -> str:
    """Return the device of the iterator that an op initializes, or else its own."""
    graph = placement.graph
    if graph.ops[node] in INITIALIZES:
        iterator = next(edge for edge in graph.data_in_edges(node) if graph.edge_dst_slot[edge] == 1)
        return placement.device(graph.edge_src[iterator])
    return placement.device(node)


def _find_function(program: Program, name: str) -> tuple[FunctionDef, Mapping[str, FunctionDef], bool] | None:
    """Return a function, the library that it is in, and whether rewriting the program has made it."""
    for library in (program.graph.library, program.rewritten):
        if name in library:
            return library[name], library, library is program.rewritten
    return None


def _find_upstream(placement: Placement, node: int) -> str:
    """Return the function of the dataset that a dataset's op takes first, "" where it calls none or several."""
    graph = placement.graph
    made = next((graph.edge_src[edge] for edge in graph.data_in_edges(node) if graph.edge_dst_slot[edge] == 0), None)
    called = [] if made is None else [each.name for each in graph.attrs[made].values() if isinstance(each, FuncRef)]
    return called[0] if len(called) == 1 else ""


def _list_arg_devices(
    placement: Placement, node: int, function: FunctionDef, slots: range, device: str
) -> Iterator[str]:
    graph = placement.graph
    sources = {graph.edge_dst_slot[e]: graph.edge_src[e] for e in graph.in_edges[node] if not graph.is_control(e)}
    host = placement.devices.find_host(device)
    own = len(function.inputs) - len(slots)
    for i, arg in enumerate(function.inputs):
        if i < own:
            yield device
        elif arg.dtype == DataType.DT_RESOURCE:
            yield placement.device(sources[slots[i - own]])
        else:
            yield host if arg.dtype in _ON_HOST else device
