"""Find the strategies that copy a model to several GPUs, where one GPU may do, or another sum of its gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from simplace.suggestions.changes import OneDeviceStrategy, OtherReduction
from simplace.suggestions.edits import Replacement, add_argument, replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

_MIRRORED, _CENTRAL = "MirroredStrategy", "experimental.CentralStorageStrategy"
_OPTION = "cross_device_ops"  # of MirroredStrategy, its second argument
# Without the option a strategy sums up by NCCL as well (`MirroredExtended._make_collective_ops`).
_NCCL, _COPYING = "NcclAllReduce", ("HierarchicalCopyAllReduce", "ReductionToOneDevice")


def find_strategy_changes(evidence: Evidence) -> Iterator[OneDeviceStrategy]:
    """Find the calls that make such a strategy in files of the program, but for one that a change has put there."""
    if len(evidence.gpus) < 2:
        return
    for source in evidence.files:
        for call in source.calls if source.name not in evidence.texts else ():
            module = next((found for kind in (_MIRRORED, _CENTRAL) if (found := _find_module(source, call, kind))), "")
            if module:
                device = evidence.gpus[0]
                edit = replace_node(source, call, f'{module}OneDeviceStrategy("{device}")')
                yield OneDeviceStrategy(edits=(edit,), at=f"{source.name}:{call.lineno}", device=device)


def find_reductions(evidence: Evidence) -> Iterator[OtherReduction]:
    """Find the other ways to sum up what replicas of a `MirroredStrategy` sum up in a step."""
    if any(one.kind == "all-reduce" for one in evidence.schedule.estimated.graph.traffic.collectives):
        yield from list_reductions(evidence.files)


def list_reductions(files: Iterable[SourceFile]) -> Iterator[OtherReduction]:
    """List the other ways to sum up for each call in some files that makes a `MirroredStrategy`."""
    for source in files:
        for call in source.calls:
            if module := _find_module(source, call, _MIRRORED):
                yield from _replace_reduction(source, call, module)


def _replace_reduction(source: SourceFile, call: ast.Call, module: str) -> Iterator[OtherReduction]:
    """Yield the calls with each other way to sum up; none where they say how in a way that is not known."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == _OPTION), None)
    if given is None and len(call.args) > 1:
        given = call.args[1]
    if given is None and any(keyword.arg is None for keyword in call.keywords):
        return
    text = "" if given is None else source.segment(given)
    before = next((name for name in (_NCCL, *_COPYING) if name in text), "")
    if text and not before and text != "None":
        return
    for after in (_NCCL, *_COPYING):
        if after != (before or _NCCL) and (edit := _write_reduction(source, call, given, f"{module}{after}()")):
            yield OtherReduction(edits=(edit,), at=f"{source.name}:{call.lineno}", before=before, after=after)


def _write_reduction(source: SourceFile, call: ast.Call, given: ast.expr | None, text: str) -> Replacement | None:
    return add_argument(source, call, f"{_OPTION}={text}") if given is None else replace_node(source, given, text)


def _find_module(source: SourceFile, call: ast.Call, kind: str) -> str:
    """Return what stands before the name of a kind of strategy in a call, such as "tf.distribute."; "" for another."""
    name = source.segment(call.func)
    return name.removesuffix(kind) if name.endswith(f".{kind}") else ""
