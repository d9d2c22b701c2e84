"""Find the device scopes that could name another device, and the statements that could get one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from simplace.graph.op_kinds import DATAFLOW_ONLY, is_arg
from simplace.suggest.changes import Change, NewScope, OneGpu, ScopeDevice
from simplace.suggest.edits import replace_node, wrap_statement
from simplace.suggest.evidence import Evidence, resolve_line
from simplace.suggest.source_file import SourceFile

_CPU = "/CPU:0"
_STATEMENTS = 12  # the heaviest are tried: what the others take is little


def find_scope_changes(evidence: Evidence) -> Iterator[Change]:
    """Find other devices for each `tf.device` of the program, and one GPU for all of them."""
    to_one = []
    for source in evidence.files:
        for line, nodes in _scopes_of(evidence, source):
            call = source.scope_at(line)
            if call is None:
                continue
            before = _requested(evidence, nodes)
            if any(device != evidence.gpus[0] and "GPU" in device for device in before) or len(before) > 1:
                to_one.append((source, call, nodes))
            for device in _others(evidence, nodes):
                edit = replace_node(source, call.args[0], f'"{device}"')
                at = f"{source.name}:{line}"
                told = source.segment(call.args[0])
                yield ScopeDevice(edits=(edit,), at=at, pins=evidence.pins(nodes, device), before=told, after=device)
    if len(to_one) > 1:
        device = evidence.gpus[0]
        edits = tuple(replace_node(source, call.args[0], f'"{device}"') for source, call, _ in to_one)
        pins = evidence.pins([node for _, _, nodes in to_one for node in nodes], device)
        at = f"{to_one[0][0].name}:{to_one[0][1].lineno}"
        yield OneGpu(edits=edits, at=at, pins=pins, device=device, scopes=len(to_one))


def find_new_scopes(evidence: Evidence) -> Iterator[NewScope]:
    """Find the statements without a device scope that take longest, and the other devices that they could get."""
    for source, statement, nodes in find_statements(evidence)[:_STATEMENTS]:
        for device in _others(evidence, nodes):
            yield put_under(evidence, source, statement, nodes, device)


def find_statements(evidence: Evidence) -> list[tuple[SourceFile, ast.stmt, list[int]]]:
    """List the statements whose ops ask for no device, with those ops, the longest first."""
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


def put_under(
    evidence: Evidence, source: SourceFile, statement: ast.stmt, nodes: Iterable[int], device: str
) -> NewScope:
    """Return the change that puts a statement under a device."""
    edit = wrap_statement(source, statement, f'with {tensorflow_name(source)}.device("{device}"):')
    at = f"{source.name}:{statement.lineno}"
    return NewScope(edits=(edit,), at=at, pins=evidence.pins(nodes, device), device=device)


def find_variable_devices(evidence: Evidence) -> Iterator[Change]:
    """Find the variables that are on another device than what reads them, and the scopes that would put them there."""
    graph, resources = evidence.placed.placement.graph, evidence.placed.placement.program.resources
    found: dict[ScopeDevice | NewScope, list[str]] = {}
    for node in evidence.placed.placement.decisions:
        variable = resources.get(graph.attrs[node].get("index", -1)) if is_arg(graph.ops[node]) else None
        if variable is None or not variable.is_variable or not variable.made_at:
            continue
        device = _find_reader(evidence, node)
        change = _move_variable(evidence, variable.made_at, device) if device else None
        if change is not None:
            found.setdefault(change, []).append(variable.name)
    for change, variables in found.items():
        yield replace(change, variables=tuple(dict.fromkeys(variables)))


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
    placement, used = evidence.placed.placement, set(evidence.short_devices(evidence.placed.placement.decisions))
    idle = [gpu for gpu in evidence.gpus if gpu not in used][:1]
    devices = [*(gpu for gpu in evidence.gpus if gpu in used), *idle, _CPU]
    computing = [node for node in nodes if placement.graph.ops[node] not in DATAFLOW_ONLY]
    now = set(evidence.short_devices(computing))
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
    return "" if device == placement.device(variable) else f"/{placement.devices.by_name[device].short}"


def _consumers(evidence: Evidence, node: int) -> Iterator[int]:
    graph = evidence.placed.placement.graph
    return (graph.edge_dst[edge] for edge in graph.out_edges[node] if not graph.is_control(edge))


def _move_variable(evidence: Evidence, made_at: str, device: str) -> ScopeDevice | NewScope | None:
    path, line = resolve_line(made_at)
    source = next((file for file in evidence.files if file.path == path), None)
    if source is None:
        return None
    if scopes := source.scopes_around(line):
        edit = replace_node(source, scopes[-1].args[0], f'"{device}"')
        told = source.segment(scopes[-1].args[0])
        return ScopeDevice(edits=(edit,), at=f"{source.name}:{scopes[-1].lineno}", before=told, after=device)
    statement = source.statement_at(line)
    if statement is None or not tensorflow_name(source):
        return None
    wrapped = wrap_statement(source, statement, f'with {tensorflow_name(source)}.device("{device}"):')
    return NewScope(edits=(wrapped,), at=f"{source.name}:{statement.lineno}", device=device)
