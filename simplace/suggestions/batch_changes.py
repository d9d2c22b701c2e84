"""Find the numbers of a program that are its batch, and larger ones to try."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.analysis.batch_memory import BatchMemory
from simplace.suggestions.changes import OtherBatch
from simplace.suggestions.edits import replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

_FACTORS = (4, 16)
_NAME = "batch"


def find_batches(evidence: Evidence) -> Iterator[OtherBatch]:
    """Find the numbers that are named as a batch and are the one that the step has, or a multiple for its replicas."""
    batch = BatchMemory.of(evidence.schedule).batch
    replicas = max(1, len(evidence.gpus))
    wanted = {batch * count for count in range(1, replicas + 1)} if batch > 1 else set()
    for source in evidence.files:
        for node in _batch_numbers(source):
            number = node.value
            if isinstance(number, int) and number in wanted:
                for factor in _FACTORS:
                    edit = replace_node(source, node, str(number * factor))
                    at = f"{source.name}:{node.lineno}"
                    yield OtherBatch(edits=(edit,), at=at, before=number, after=number * factor)


def _batch_numbers(source: SourceFile) -> Iterator[ast.Constant]:
    """List the numbers in `BATCH = 32`, `batch_size=32` (argument or default) and `.batch(32)`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            if any(isinstance(one, ast.Name) and _NAME in one.id.lower() for one in node.targets):
                yield from _numbers(node.value)
        elif isinstance(node, ast.keyword):
            if _NAME in (node.arg or "").lower():
                yield from _numbers(node.value)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "batch":
                yield from (number for argument in node.args[:1] for number in _numbers(argument))
        elif isinstance(node, ast.arguments):
            named = [*node.posonlyargs, *node.args][len(node.posonlyargs) + len(node.args) - len(node.defaults) :]
            for argument, default in zip(named, node.defaults, strict=True):
                if _NAME in argument.arg.lower():
                    yield from _numbers(default)


def _numbers(node: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node
