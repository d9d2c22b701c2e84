"""Find the numbers of a program that are its batch, and others to try: larger ones, or one that fits in memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.analysis.step_memory import RELIABLE
from simplace.suggestions.changes import OtherBatch
from simplace.suggestions.edits import replace_node
from simplace.suggestions.estimated_step import count_step_examples
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

_FACTORS = (4, 16)  # times the present one, or parts of it
_NAME = "batch"


def find_batches(evidence: Evidence) -> Iterator[OtherBatch]:
    """Find the numbers that are named as a batch and are the one that the step has, or a multiple for its replicas."""
    batch = evidence.memory.batches.batch or count_step_examples(evidence.schedule)
    replicas = max(1, len(evidence.gpus))
    wanted = {batch * count for count in range(1, replicas + 1)} if batch > 1 else set()
    for source in evidence.files:
        for node in _batch_numbers(source):
            number = node.value
            if isinstance(number, int) and number in wanted:
                for other in _choose_numbers(evidence, number):
                    edit = replace_node(source, node, str(other))
                    yield OtherBatch(edits=(edit,), at=f"{source.name}:{node.lineno}", before=number, after=other)


def _choose_numbers(evidence: Evidence, number: int) -> list[int]:
    if evidence.memory.fits:
        return [number * factor for factor in _FACTORS]
    largest = evidence.memory.largest_batch
    if largest is None:  # nothing tells what grows with the batch
        return [number // factor for factor in _FACTORS if number >= factor]
    found = round_batch(number, int(RELIABLE * number * largest / evidence.memory.batch))
    return [found] if found else []


def round_batch(number: int, most: int) -> int:
    """Return a batch of at most `most`: some eighths of the present one, or of a half of it, a quarter and so on.

    >>> round_batch(256, 255), round_batch(256, 20), round_batch(48, 5), round_batch(32, 0)
    (224, 20, 5, 0)
    """
    while number > 8 and most < number // 2:
        number //= 2
    part = max(number // 8, 1)
    return most // part * part


def _batch_numbers(source: SourceFile) -> Iterator[ast.Constant]:
    """List the numbers in `BATCH = 32`, `N, BATCH = 8, 32`, `batch_size=32` (argument or default) and `.batch(32)`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _named_numbers(target, node.value)
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


def _named_numbers(target: ast.expr, value: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(target, ast.Name) and _NAME in target.id.lower():
        yield from _numbers(value)
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _named_numbers(one, part)


def _numbers(node: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node
