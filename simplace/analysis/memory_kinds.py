"""What the memory of a device holds at its peak: by kind and by the user's line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from simplace.analysis.memory import Held, MemoryUse
from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.executor.trace import ARGUMENTS, PERMANENT, SCRATCH
from simplace.graph.op_kinds import ARGS, CONSTANTS
from simplace.lowering.reachable_functions import find_callee
from simplace.program.known_names import Path, get_known_name, tidy_path
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import Program

K = TypeVar("K")
_GRADIENTS = "gradient_tape"
_UNNAMED = "Variable"  # what TensorFlow calls each variable that is given no name
_MOST = 0.6  # of the outputs: a scope with more is opened


class MemoryKind(Enum):
    """The kinds of what is in memory."""

    VARIABLE = "weights"
    STATE = "optimizer, metrics"
    OF_OTHERS = "variables of other functions"
    ARGUMENT = "arguments"
    CONSTANT = "constants"
    COPY = "copies from other devices"
    OUTPUT = "outputs of ops"
    SCRATCH = "scratch memory of kernels"


MADE = (MemoryKind.OUTPUT, MemoryKind.COPY, MemoryKind.SCRATCH)  # what the ops of a step take, by turns


@dataclass(frozen=True, slots=True)
class Part:
    """Record of what a part of the memory holds: bytes, how many tensors, and the largest of them (None: not known)."""

    size: int
    count: int
    largest: Held | None


def list_by_kind(schedule: Schedule, use: MemoryUse, is_state: Callable[[Held], bool]) -> list[tuple[MemoryKind, Part]]:
    """Sum up the tensors at the peak by kind, in the order of the kinds.

    `is_state` tells of a variable whether it is an optimizer's or a metric's.
    """
    found = dict(_group(use.holders, lambda held: divide_kind(schedule, held, is_state)))
    return [(kind, found[kind]) for kind in MemoryKind if kind in found]


def divide_kind(schedule: Schedule, held: Held, is_state: Callable[[Held], bool]) -> MemoryKind:
    """Return the kind of a tensor in memory, of variables whether they are the model's."""
    kind = find_kind(schedule, held)
    return MemoryKind.STATE if kind is MemoryKind.VARIABLE and is_state(held) else kind


def list_by_line(schedule: Schedule, use: MemoryUse) -> list[tuple[str, Part]]:
    """Sum up the outputs of ops at the peak by the user's line ("" for none), the largest sum first."""
    graph = schedule.estimated.graph
    outputs = [held for held in use.holders if find_kind(schedule, held) in MADE]
    rows = _group(outputs, lambda held: graph.source_line(held.node))
    return sorted(rows, key=lambda row: (-row[1].size, row[0]))


def list_by_scope(schedule: Schedule, use: MemoryUse) -> list[tuple[str, Part]]:
    """Sum up the outputs of ops at the peak by layer or other name scope, the largest sum first.

    A gradient counts for the layer that it is of; an op outside of all scopes stands alone. A scope with most of the
    memory is opened, if there is another in it.
    """
    outputs = [held for held in use.holders if find_kind(schedule, held) in MADE]
    opened = open_scopes(schedule, outputs)
    rows = _group(outputs, lambda held: name_scope(schedule, held.node, opened))
    return sorted(rows, key=lambda row: (-row[1].size, row[0]))


def open_scopes(schedule: Schedule, outputs: Iterable[Held]) -> frozenset[Path]:
    """Return the scopes to open, so that none holds most of the bytes of some outputs, or nothing is in it."""
    sizes: dict[Path, int] = {}
    for held in outputs:
        path = list_scopes(schedule, held.node)
        sizes[path] = sizes.get(path, 0) + held.size
    return _open_paths(sizes)


def list_inside(schedule: Schedule, use: MemoryUse) -> list[tuple[str, int, int]]:
    """Sum up what calls that stay in the graph hold at the peak by layer or other scope: bytes and tensors.

    The largest sum comes first. Sizes are those of the program's own batch.
    """
    held = schedule.estimated.held
    calls = [one.node for one in use.holders if one.slot == SCRATCH and one.node in held]
    tensors = [(_drop_name(tensor.made_by), tensor.size) for node in calls for tensor in held[node]]
    sizes: dict[Path, int] = {}
    for path, size in tensors:
        sizes[path] = sizes.get(path, 0) + size
    opened, found = _open_paths(sizes), dict[str, tuple[int, int]]()
    for path, size in tensors:
        name = "/".join(_find_closed(path, opened))
        before = found.get(name, (0, 0))
        found[name] = before[0] + size, before[1] + 1
    return sorted(((name, *sums) for name, sums in found.items()), key=lambda row: (-row[1], row[0]))


def _open_paths(sizes: Mapping[Path, int]) -> frozenset[Path]:
    opened: set[Path] = {()}
    while sizes:
        groups: dict[Path, int] = {}
        for path, size in sizes.items():
            top = _find_closed(path, opened)
            groups[top] = groups.get(top, 0) + size
        largest = max(groups, key=lambda path: (groups[path], path))
        inside = sum(size for path, size in sizes.items() if path[: len(largest)] == largest and path != largest)
        if largest in opened or groups[largest] < _MOST * sum(sizes.values()) or 2 * inside < groups[largest]:
            break
        opened.add(largest)
    return frozenset(opened)


def name_scope(schedule: Schedule, node: int, opened: Collection[Path]) -> str:
    """Return the outermost scope of a node that is not opened, with those around it; its own name where it has none."""
    return "/".join(_find_closed(list_scopes(schedule, node), opened))


def has_scope(schedule: Schedule, node: int) -> bool:
    """Return whether a node is in any scope of the program."""
    origin = find_origin(schedule, node)
    return origin < 0 or len(_list_parts(get_known_name(schedule.placed, origin))) > 1


def _find_closed(path: Path, opened: Collection[Path]) -> Path:
    return next((path[:depth] for depth in range(1, len(path)) if path[:depth] not in opened), path)


def list_scopes(schedule: Schedule, node: int) -> Path:
    """Return the scopes of a node of the partitioned graph, its own name where it has none."""
    origin = find_origin(schedule, node)
    return (
        find_scopes(schedule.placed, origin) if origin >= 0 else _drop_name(schedule.estimated.graph.nodes[node].name)
    )


def find_origin(schedule: Schedule, node: int) -> int:
    """Return the node of the placed graph that made what a node puts out: of a receive, what was sent; -1 for none."""
    graph = schedule.estimated.graph
    part = graph.nodes[node]
    return graph.copies[part.copy].producer if part.copy >= 0 else part.origin


def find_scopes(placed: PlacedGraph, node: int) -> tuple[str, ...]:
    """Return the scopes of a node of a placed graph, those of the op that a gradient is of; its own name for none."""
    return _drop_name(get_known_name(placed, node))


def _drop_name(name: str) -> Path:
    path = _list_parts(name)
    return path[:-1] or path


def _list_parts(name: str) -> Path:
    return tuple(scope for scope in tidy_path(name) if scope != _GRADIENTS)


def find_kind(schedule: Schedule, held: Held) -> MemoryKind:
    """Return the kind of a tensor in memory; each variable counts as the model's."""
    node = schedule.estimated.graph.nodes[held.node]
    if held.slot == SCRATCH:
        return MemoryKind.SCRATCH
    if held.slot >= 0:
        return MemoryKind.COPY if node.role == "recv" else MemoryKind.OUTPUT
    if held.slot <= ARGUMENTS:
        is_variable = ARGUMENTS - held.slot in schedule.placement.program.resources
        return MemoryKind.VARIABLE if is_variable else MemoryKind.ARGUMENT
    if node.op in ARGS and schedule.estimated.outputs[held.node][0].dtype != "resource":
        return MemoryKind.ARGUMENT
    return MemoryKind.CONSTANT if node.op in CONSTANTS else MemoryKind.VARIABLE


def name_kept(schedule: Schedule, held: Held) -> str:
    """Return the name that the program gave a variable, or an argument that has no node, "" where it is not known."""
    placed = schedule.placed
    origin = schedule.estimated.graph.nodes[held.node].origin
    if held.slot <= ARGUMENTS:
        return _name_argument(placed, origin, ARGUMENTS - held.slot)
    if held.slot != PERMANENT:
        return ""
    nodes = (origin, *placed.graph.walk_first_inputs(origin)) if origin >= 0 else ()
    return next((known for at in nodes if (known := placed.notes(at).variable)), "")


def _name_argument(placed: PlacedGraph, call: int, place: int) -> str:
    library = placed.program.graph.library
    called = find_callee(placed.graph.ops[call], placed.graph.attrs[call], library)
    assert called is not None, f"{placed.graph.names[call]} is a call"
    name = library[called.name].inputs[place].name
    notes = placed.program.notes.get(called.name, {}).get(name)
    return notes.variable if notes is not None and notes.variable not in ("", _UNNAMED) else name


def name_held(schedule: Schedule, held: Held) -> str:
    """Return the name of a tensor in memory: of a variable the program's own, if it gave one."""
    known, slot = name_kept(schedule, held), f":{held.slot}" if held.slot > 0 else ""
    return known if known not in ("", _UNNAMED) else name_part(schedule.estimated.graph, held.node) + slot


def sum_other_variables(program: Program, others: Iterable[Program], device: str) -> Part:
    """Sum up the variables on a device that functions of the same run take, and `program` does not."""
    own = {(one.name, one.made_at) for one in program.resources.values()}
    found = {
        (one.name, one.made_at): one.size
        for other in others
        for one in other.resources.values()
        if one.is_variable and one.device == device and one.size and (one.name, one.made_at) not in own
    }
    return Part(sum(size for size in found.values() if size), len(found), None)


def _group(holders: Sequence[Held], key: Callable[[Held], K]) -> list[tuple[K, Part]]:
    groups: dict[K, list[Held]] = {}
    for held in holders:
        groups.setdefault(key(held), []).append(held)
    return [(name, Part(sum(held.size for held in some), len(some), some[0])) for name, some in groups.items()]
