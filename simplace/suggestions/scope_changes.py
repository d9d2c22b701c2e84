"""Find the device scopes that could name another device, and the statements that could get one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from simplace.graph.op_kinds import DATAFLOW_ONLY
from simplace.suggestions.changes import Change, NewScope, OneGpu, ScopeDevice, join_changes
from simplace.suggestions.edits import replace_node, wrap_statement
from simplace.suggestions.evidence import Evidence, resolve_line, write_device
from simplace.suggestions.source_file import SourceFile

_STATEMENTS = 12  # the heaviest are tried: what the others take is little


def find_scope_changes(evidence: Evidence) -> Iterator[Change]:
    """Find other devices for each `tf.device` of the program, and one GPU for all of them."""
    of_gpus = []
    for source in evidence.files:
        for line, nodes in _scopes_of(evidence, source):
            call = source.scope_at(line)
            if call is None:
                continue
            if any("GPU" in device for device in _requested(evidence, nodes)):
                of_gpus.append((source, call, nodes))
            for device in _others(evidence, nodes):
                change = replace(_name_device(source, call, device), pins=evidence.pins(nodes, device))
                yield change
                yield from _with_variables(evidence, change, nodes, device)
    if len(of_gpus) > 1 and evidence.gpus:
        device = evidence.gpus[0]
        scopes = [_name_device(source, call, device) for source, call, _ in of_gpus]
        edits = tuple(edit for scope in scopes for edit in scope.edits)
        moved = [node for _, _, nodes in of_gpus for node in nodes]
        pins = evidence.pins(moved, device)
        one = OneGpu(edits=edits, at=scopes[0].at, pins=pins, device=device, scopes=len(scopes))
        yield one
        yield from _with_variables(evidence, one, moved, device)


def find_new_scopes(evidence: Evidence) -> Iterator[Change]:
    """Find the statements without a device scope that take longest, and the other devices that they could get."""
    for source, statement, nodes in find_statements(evidence)[:_STATEMENTS]:
        for device in _others(evidence, nodes):
            change = replace(put_under(source, statement, device), pins=evidence.pins(nodes, device))
            yield change
            yield from _with_variables(evidence, change, nodes, device)


def find_statements(evidence: Evidence) -> list[tuple[SourceFile, ast.stmt, list[int]]]:
    """List the statements whose ops request no device, with those ops, the longest first."""
    found: dict[tuple[str, int], tuple[SourceFile, ast.stmt, list[int]]] = {}
    placement = evidence.placed.placement
    for source in evidence.files:
        if not tensorflow_name(source):
            continue
        for path, line in evidence.of_line:
            statement = source.statement_at(line) if path == source.path else None
            if statement is None or (source.name, statement.lineno) in found:
                continue
            own = evidence.nodes_of(source, statement.lineno, statement.end_lineno or line)
            nodes = [node for node in own if not placement.notes(node).device_at]
            if any(placement.graph.ops[node] not in DATAFLOW_ONLY for node in nodes):
                found[source.name, statement.lineno] = source, statement, nodes
    return sorted(found.values(), key=lambda one: (-evidence.time_of(one[2]), one[0].name, one[1].lineno))


def put_under(source: SourceFile, statement: ast.stmt, device: str) -> NewScope:
    """Return the change that puts a statement under a device."""
    edit = wrap_statement(source, statement, f'with {tensorflow_name(source)}.device("{device}"):')
    return NewScope(edits=(edit,), at=f"{source.name}:{statement.lineno}", device=device)


def find_variable_devices(evidence: Evidence) -> Iterator[Change]:
    """Find the variables that are on another device than what reads them, and the scopes that would put them there."""
    wanted = defaultdict[str, list[int]](list)
    for node in evidence.variables:
        if device := _find_reader(evidence, node):
            wanted[device].append(node)
    for device, nodes in wanted.items():
        yield from move_variables(evidence, nodes, device)


def _with_variables(evidence: Evidence, change: Change, nodes: Sequence[int], device: str) -> Iterator[Change]:
    """Join to a change of where ops run that of the variables which they read from another device."""
    elsewhere = [node for node in find_read(evidence, nodes) if list(evidence.list_devices([node])) != [device]]
    moves = list(move_variables(evidence, elsewhere, device))
    if moves:
        yield join_changes(change, *moves)


def find_read(evidence: Evidence, nodes: Iterable[int]) -> list[int]:
    """Find the variables, by the nodes that hold them, that some nodes read."""
    graph, found = evidence.placed.placement.graph, set[int]()
    for node in nodes:
        for read in (graph.edge_src[edge] for edge in graph.data_in_edges(node)):
            found |= {read, *(graph.edge_src[edge] for edge in graph.data_in_edges(read))} & evidence.variables.keys()
    return sorted(found)


def move_variables(evidence: Evidence, nodes: Iterable[int], device: str) -> Iterator[ScopeDevice | NewScope]:
    """Find the changes that put variables, given by the nodes that hold them, on a device: one for each scope."""
    names = evidence.placed.placement.graph.names
    found: dict[ScopeDevice | NewScope, list[int]] = {}
    for node in nodes:
        change = _move_variable(evidence, evidence.variables[node].made_at, device)
        if change is not None:
            found.setdefault(change, []).append(node)
    for change, moved in found.items():
        variables = tuple(dict.fromkeys(_strip_number(evidence.variables[node].name) for node in moved))
        yield replace(change, variables=variables, pins={names[node]: device for node in moved})


def tensorflow_name(source: SourceFile) -> str:
    """Return what a file calls the TensorFlow that has `device`, "" if it imports none."""
    return source.find_module("tensorflow") or source.find_module("tensorflow.compat.v1")


def _scopes_of(evidence: Evidence, source: SourceFile) -> Iterator[tuple[int, Sequence[int]]]:
    return ((line, nodes) for (path, line), nodes in sorted(evidence.of_scope.items()) if path == source.path)


def _requested(evidence: Evidence, nodes: Iterable[int]) -> set[str]:
    requested = evidence.placed.placement.graph.requested
    return {requested[node] for node in nodes}


def _others(evidence: Evidence, nodes: Sequence[int]) -> list[str]:
    """Name the devices that nodes could move to: the GPUs that are used, the first that is not, the CPU."""
    placement, used = evidence.placed.placement, set(evidence.list_devices(evidence.placed.placement.decisions))
    idle = [gpu for gpu in evidence.gpus if gpu not in used][:1]
    devices = [*(gpu for gpu in evidence.gpus if gpu in used), *idle, evidence.cpu]
    computing = [node for node in nodes if placement.graph.ops[node] not in DATAFLOW_ONLY]
    now = set(evidence.list_devices(computing))
    return [device for device in devices if now != {device}]


def _find_reader(evidence: Evidence, variable: int) -> str:
    """Name the device that what reads a variable spends most time on, "" if it is the variable's own."""
    placement, times = evidence.placed.placement, defaultdict[str, int](int)
    for read in _consumers(evidence, variable):
        for user in _consumers(evidence, read):
            if placement.graph.ops[user] not in DATAFLOW_ONLY and placement.device(user):
                times[placement.device(user)] += evidence.times.get(user, 0) + 1
    if not times:
        return ""
    device = max(times, key=lambda name: (times[name], name))
    return "" if device == placement.device(variable) else write_device(placement.devices.by_name[device])


def _consumers(evidence: Evidence, node: int) -> Iterator[int]:
    graph = evidence.placed.placement.graph
    return (graph.edge_dst[edge] for edge in graph.out_edges[node] if not graph.is_control(edge))


def _move_variable(evidence: Evidence, made_at: str, device: str) -> ScopeDevice | NewScope | None:
    path, line = resolve_line(made_at)
    source = next((file for file in evidence.files if file.path == path), None)
    if source is None:
        return None
    if scopes := source.scopes_around(line):
        return _name_device(source, scopes[-1], device)
    statement = source.statement_at(line)
    if statement is None or not tensorflow_name(source):
        return None
    return put_under(source, statement, device)


def _name_device(source: SourceFile, call: ast.Call, device: str) -> ScopeDevice:
    """Return the change that lets a `tf.device` name another device."""
    edit = replace_node(source, call.args[0], f'"{device}"')
    return ScopeDevice(
        edits=(edit,), at=f"{source.name}:{call.lineno}", before=source.segment(call.args[0]), after=device
    )


def _strip_number(handle: str) -> str:
    """Return a variable's name without the number that TensorFlow's handle has.

    >>> _strip_number("dense/kernel/3"), _strip_number("w")
    ('dense/kernel', 'w')
    """
    name, _, number = handle.rpartition("/")
    return name if name and number.isdecimal() else handle
