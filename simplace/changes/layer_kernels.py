"""Layers that run as one cuDNN op on one machine and as a loop on another: Keras chooses by the devices it sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simplace.graph.op_kinds import is_loop_cond
from simplace.placement.placement import Placement

_CUDNN = "CudnnRNN"  # what the names of the ops begin with that are a whole recurrent layer
_NUMBER = re.compile(r"/_\d+$")
_LOOP_DEPTH = 2  # parts of a name below the layer's: the loop, and the node in it


@dataclass(frozen=True, slots=True)
class LayerKernel:
    """Record of a layer, by its name scope, that is the op `op` on one side and a loop on the other.

    `at` is the user's line, `is_loop_after` tells which side has the loop.
    """

    layer: str
    at: str
    op: str
    is_loop_after: bool


def compare_layer_kernels(before: Placement, after: Placement) -> tuple[LayerKernel, ...]:
    """List the layers that are one op on one side and a loop on the other, in the order of the side with the op."""
    return (*_list_changed(before, after, is_loop_after=True), *_list_changed(after, before, is_loop_after=False))


def _list_changed(fused: Placement, looped: Placement, *, is_loop_after: bool) -> Iterator[LayerKernel]:
    loops = {_cut_name(name, _LOOP_DEPTH) for name in _list_loops(looped)} - {""}
    for node in fused.graph.op_ids:
        scope = _cut_name(fused.graph.names[node], 1)
        if fused.graph.ops[node].startswith(_CUDNN) and scope in loops:
            notes = fused.notes(node)
            layer = _cut_name(notes.known_as, 1) or scope
            yield LayerKernel(layer, notes.at, fused.graph.ops[node], is_loop_after)


def _list_loops(placement: Placement) -> Iterable[str]:
    graph = placement.graph
    return (graph.names[node] for node in graph.op_ids if is_loop_cond(graph.ops[node]))


def _cut_name(name: str, parts: int) -> str:
    """Return a name without its last parts, and without the number that lowering adds.

    >>> _cut_name("gru_1/while/LoopCond/_17", 2), _cut_name("LoopCond", 2)
    ('gru_1', '')
    """
    return "/".join(_NUMBER.sub("", name).split("/")[:-parts])
