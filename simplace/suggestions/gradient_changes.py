"""Find the gradients that could be computed on the devices of the ops that they are of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from simplace.suggestions.changes import ColocatedGradients
from simplace.suggestions.edits import replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import SourceFile

TAPE = "gradient_tape/"  # what the names of ops that a tape makes begin with, before the name of the op they are of
_NAMES = {"target": "ys", "sources": "xs", "output_gradients": "grad_ys", "unconnected_gradients": ""}


def find_gradient_changes(evidence: Evidence) -> Iterator[ColocatedGradients]:
    """Find the calls of a tape's `gradient` that made ops of the program on another device than what they are of."""
    for change, nodes in find_gradient_calls(evidence):
        if pins := pin_gradients(evidence, nodes, {}):
            yield replace(change, pins=pins)


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
