"""Find the input pipelines that a step waits for, and what would prepare their elements sooner."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.suggestions.changes import ParallelMap, PrefetchToDevice
from simplace.suggestions.edits import Replacement
from simplace.suggestions.estimated_step import count_step_examples
from simplace.suggestions.evidence import Evidence, resolve_line
from simplace.suggestions.input_pipeline import find_slowest_map
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import SourceFile

_CALLS = "num_parallel_calls"
_ITERATOR = "AnonymousIterator"


def find_parallel_maps(evidence: Evidence) -> Iterator[ParallelMap]:
    """Find the `map` whose function is called on one thread and takes longer than the step."""
    schedule = evidence.schedule
    slowest = find_slowest_map(evidence.result, schedule, count_step_examples(schedule), schedule.execution.options)
    if slowest is None or slowest.is_parallel or slowest.nanoseconds <= schedule.trace.makespan:
        return
    path, line = resolve_line(slowest.at) if slowest.at else (None, 0)
    for source in evidence.files:
        calls = [call for call in source.calls if path == source.path and _is_map(call, line)]
        if calls and tensorflow_name(source):
            given: list[ast.expr | ast.keyword] = [*calls[0].args, *calls[0].keywords]
            last = max(given, key=lambda each: (each.end_lineno or 0, each.end_col_offset or 0))
            text = f", {_CALLS}={tensorflow_name(source)}.data.AUTOTUNE"
            yield ParallelMap(
                edits=(_insert_after(source, last, text),), at=f"{source.name}:{line}", function=slowest.name
            )


def find_prefetches(evidence: Evidence) -> Iterator[PrefetchToDevice]:
    """Find the loops over a dataset whose elements a step copies from the host to the first GPU."""
    time = evidence.element_time
    if not time or not evidence.gpus or evidence.result.eager is None:
        return
    device = evidence.gpus[0]
    iterators = {op.op.at for op in evidence.result.eager.ops if op.op.op.startswith(_ITERATOR) and op.op.at}
    for source in evidence.files:
        lines = {line for path, line in map(resolve_line, iterators) if path == source.path}
        for dataset in _list_datasets(source, lines):
            text = f'.apply({tensorflow_name(source)}.data.experimental.prefetch_to_device("{device}"))'
            edit = _insert_after(source, dataset, text)
            yield PrefetchToDevice(
                edits=(edit,), at=f"{source.name}:{dataset.lineno}", device=device, copied=time + evidence.copied
            )


def _list_datasets(source: SourceFile, lines: set[int]) -> Iterator[ast.expr]:
    """List the expressions that `for` statements on some lines go through, and the arguments of `iter` there."""
    for node in ast.walk(source.tree):
        found = None
        if isinstance(node, (ast.For, ast.comprehension)):
            found = node.iter
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "iter" and node.args:
            found = node.args[0]
        while isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.args:  # enumerate(dataset)
            found = found.args[0]
        if isinstance(found, (ast.Name, ast.Attribute, ast.Call)) and found.lineno in lines and tensorflow_name(source):
            yield found


def _is_map(call: ast.Call, line: int) -> bool:
    """Return whether a call is a `map` with a function alone, whose name or arguments are on a line."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "map" or len(call.args) > 1:
        return False
    named = {keyword.arg for keyword in call.keywords}
    is_there = (call.func.value.end_lineno or 0) <= line <= (call.end_lineno or 0)
    return is_there and not named & {_CALLS, None} and bool(call.args or named)


def _insert_after(source: SourceFile, node: ast.expr | ast.keyword, text: str) -> Replacement:
    line = node.end_lineno or node.lineno
    place = (line, source.column(line, node.end_col_offset or 0))
    return Replacement(source.name, place, place, text)
