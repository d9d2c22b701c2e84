"""Find the gradients and updates that could be computed on the devices of the ops and variables that they are of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from simplace.explain.gradient_findings import find_gradients, find_updates
from simplace.suggestions.changes import Change, ColocatedGradients, UpdatesBesideVariables, join_changes
from simplace.suggestions.edits import replace_node, wrap_statement
from simplace.suggestions.evidence import Evidence, write_device
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import SourceFile

TAPE = "gradient_tape/"  # what the names of ops that a tape makes begin with, before the name of the op they are of
_NAMES = {"target": "ys", "sources": "xs", "output_gradients": "grad_ys", "unconnected_gradients": ""}


def find_gradient_changes(evidence: Evidence) -> Iterator[ColocatedGradients]:
    """Find the calls of a tape's `gradient` that made ops of the program on another device than what they are of."""
    for change, nodes in find_gradient_calls(evidence):
        if pins := pin_gradients(evidence, nodes, {}):
            yield replace(change, pins=pins)


def find_update_changes(evidence: Evidence) -> Iterator[Change]:
    """Find the assignments of what is computed elsewhere than the variables: all of them, alone and with gradients."""
    placement = evidence.placed.placement
    homes = find_updates(placement, find_gradients(placement))
    updates = list(_find_assignments(evidence, homes)) if homes else []
    if not updates:
        return
    yield updates[0] if len(updates) == 1 else join_changes(*updates)
    for gradients in find_gradient_changes(evidence):
        yield join_changes(gradients, *updates)


def _find_assignments(evidence: Evidence, homes: Mapping[int, str]) -> Iterator[UpdatesBesideVariables]:
    """Yield a change for each statement that does no more than assign to a variable, with ops that belong elsewhere."""
    devices, names = evidence.placed.placement.devices.by_name, evidence.placed.placement.graph.names
    for source in evidence.files:
        module = tensorflow_name(source)
        for call in source.calls if module else ():
            statement = source.statement_at(call.lineno)
            if not (_assigns(call) and isinstance(statement, ast.Expr) and statement.value is call):
                continue
            nodes = evidence.nodes_of(source, call.lineno, call.end_lineno or call.lineno)
            pins = {names[node]: write_device(devices[homes[node]]) for node in nodes if node in homes}
            if pins:
                assert isinstance(call.func, ast.Attribute)
                edit = wrap_statement(
                    source, statement, f"with {module}.device({source.segment(call.func.value)}.device):"
                )
                yield UpdatesBesideVariables(edits=(edit,), at=f"{source.name}:{call.lineno}", pins=pins)


def _assigns(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("assign", "assign_add", "assign_sub")


def find_gradient_calls(evidence: Evidence) -> Iterator[tuple[ColocatedGradients, list[int]]]:
    """List the calls of a tape's `gradient` that could be written otherwise, with the nodes that they made."""
    for source in evidence.files:
        module = tensorflow_name(source)
        for call in source.calls if module else ():
            nodes = evidence.nodes_of(source, call.lineno, call.end_lineno or call.lineno)
            text = _write_gradients(source, call, module) if nodes else ""
            if text:
                edit = replace_node(source, call, text)
                yield ColocatedGradients(edits=(edit,), at=f"{source.name}:{call.lineno}"), nodes


def pin_gradients(evidence: Evidence, nodes: list[int], pins: Mapping[str, str]) -> dict[str, str]:
    """Return the pins that put the ops of gradients on the devices of their forward ops, of which `pins` moves some.

    TensorFlow names what a tape makes for an op `scope/gradient_tape/OP/...`.
    """
    placement, found = evidence.placed.placement, {}
    ids, names = placement.graph.ids, placement.graph.names
    for node in nodes:
        forward = _find_forward(names[node], ids)
        if forward < 0:
            continue
        wanted = pins.get(names[forward]) or next(evidence.list_devices([forward]), "")
        if wanted and wanted != next(evidence.list_devices([node]), ""):
            found[names[node]] = wanted
    return found


def _find_forward(name: str, ids: Mapping[str, int]) -> int:
    """Return the op that an op of a gradient is of: the longest part of its name that is a node's; -1 for none."""
    before, tape, after = name.partition(TAPE)
    parts = after.split("/")[:-1] if tape else []
    while parts:
        found = ids.get(before + "/".join(parts))
        if found is not None:
            return found
        parts.pop()
    return -1


def _write_gradients(source: SourceFile, call: ast.Call, module: str) -> str:
    """Return the call that is to stand in place of a tape's `gradient(target, sources, ...)`, "" for another call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "gradient" or len(call.args) > 3:
        return ""
    given: dict[str, ast.expr] = dict(zip(("ys", "xs", "grad_ys"), call.args, strict=False))
    for keyword in call.keywords:
        if not _NAMES.get(keyword.arg or ""):
            return ""
        given[_NAMES[keyword.arg or ""]] = keyword.value
    if not {"ys", "xs"} <= given.keys():
        return ""
    words = [source.segment(given.pop("ys")), source.segment(given.pop("xs"))]
    words += [f"{name}={source.segment(value)}" for name, value in given.items()]
    one = "[0]" if _is_variable(source, call.args[1] if len(call.args) > 1 else None) else ""
    return f"{module}.compat.v1.gradients({', '.join(words)}, colocate_gradients_with_ops=True){one}"


def _is_variable(source: SourceFile, node: ast.expr | None) -> bool:
    """Return whether an expression is a name that the file gives to one variable: then a tape returns no list."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    name = source.segment(node)
    given = (one for one in ast.walk(source.tree) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call))
    return any(
        source.segment(target) == name and source.segment(one.value.func).endswith("Variable")
        for one in given
        if isinstance(one.value, ast.Call)
        for target in one.targets
    )
