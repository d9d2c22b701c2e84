"""Find the strategies that copy a model to several GPUs, where one GPU may do."""

from __future__ import annotations

from collections.abc import Iterator

from simplace.suggestions.changes import OneDeviceStrategy
from simplace.suggestions.edits import replace_node
from simplace.suggestions.evidence import Evidence

_MIRRORED = ("MirroredStrategy", "experimental.CentralStorageStrategy")


def find_strategy_changes(evidence: Evidence) -> Iterator[OneDeviceStrategy]:
    """Find the calls that make such a strategy in files of the program, but for one that a change has put there."""
    if len(evidence.gpus) < 2:
        return
    for source in evidence.files:
        for call in source.calls if source.name not in evidence.texts else ():
            name = source.segment(call.func)
            kind = next((kind for kind in _MIRRORED if name == kind or name.endswith(f".{kind}")), "")
            if kind:
                device = evidence.gpus[0]
                edit = replace_node(source, call, f'{name.removesuffix(kind)}OneDeviceStrategy("{device}")')
                yield OneDeviceStrategy(edits=(edit,), at=f"{source.name}:{call.lineno}", device=device)
