"""What would help a step that does not fit in memory: changes, each of them simulated.

Another batch, gradients summed up over parts of the batch, and mixed precision change the sizes of the step's tensors;
ops on another device are placed again. The number of a batch stands where the program has it: only the largest line is
named.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from simplace.analysis.memory import MemoryUse, Resize, memory_use
from simplace.analysis.memory_kinds import MemoryKind, find_kind, find_scopes, list_by_line, list_by_scope
from simplace.analysis.memory_replay import Tensor
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.devices.device_set import Device
from simplace.errors import SimplaceError
from simplace.graph.dtypes import DataType
from simplace.pipeline import place_again
from simplace.program.program import Pin

_HALVES = frozenset({"float16", "bfloat16"})
RemedyKind = Literal["batch", "accumulate", "float16", "move"]
_SHARES = (0.25, 0.5, 0.75)  # of the outputs at the peak, which stay when the rest moves
_MOST_PARTS = 64
_LEAST_GAIN = 0.02  # of the memory that a move has to free


@dataclass(frozen=True)
class Remedy:
    """Record of a change and what its simulated step needs on the device that had too little.

    `amount` is the batch ("batch"), or how many parts a batch is taken in ("accumulate"). Of a move, `subject` is the
    first scope, after which the program's others move, too, `target` the device's full name, and `nanoseconds` the time
    of the step then, with the program's own batch, off by `error` of itself in the mean. `fits` says so of all devices;
    `line` is the user's line that holds most of what becomes smaller, or where the move begins.
    """

    kind: RemedyKind
    device: str
    needed: int
    fits: bool
    line: str = ""
    amount: int = 0
    subject: str = ""
    target: str = ""
    nanoseconds: int = 0
    error: float = 0.0


def find_remedies(memory: StepMemory) -> list[Remedy]:
    """Return the changes that help the fullest device of a step which does not fit, [] for one that does."""
    short = [use for use in memory.uses if use.runs_out >= 0]
    if not short:
        return []
    use = max(short, key=lambda one: memory.needed(one) - one.limit)
    return [*_find_other_batches(memory, use), *_find_mixed_precision(memory, use), *_find_moves(memory, use)]


def _find_other_batches(memory: StepMemory, use: MemoryUse) -> Iterator[Remedy]:
    batches, line = memory.batches, _find_largest_line(memory, use)
    if not batches.growing or memory.batch < 2:
        return
    if memory.largest_batch:
        yield _resized(memory, use, Remedy("batch", use.device, 0, False, line, memory.largest_batch),
                       _with_batch(memory, memory.largest_batch))  # fmt: skip
    if not any(one.op.startswith(("Assign", "ResourceApply")) for one in memory.schedule.estimated.graph.nodes):
        return
    parts = 2
    while parts <= min(_MOST_PARTS, memory.batch):
        sums = _sum_variables(memory, use)
        remedy = Remedy("accumulate", use.device, 0, False, line, parts)
        found = _resized(memory, use, remedy, _with_batch(memory, -(-memory.batch // parts)), sums)
        if found.fits:
            yield found
            return
        parts *= 2


def _find_mixed_precision(memory: StepMemory, use: MemoryUse) -> Iterator[Remedy]:
    """Halve what grows with the batch and is float32, and add a copy of the variables in 16 bits.

    A program that computes in 16 bits as it is has no use for it.
    """
    estimated, before = memory.schedule.estimated, _with_batch(memory, memory.batch)
    types = {
        tensor: found.dtype
        for tensor in memory.batches.growing
        if tensor[1] >= 0 and (found := estimated.output(*tensor)) is not None
    }
    is_halved = {tensor for tensor, dtype in types.items() if dtype == "float32"}
    if is_halved and _HALVES.isdisjoint(types.values()):

        def resize(tensor: Tensor, size: int) -> int:
            return before(tensor, size) // (2 if tensor in is_halved else 1)

        remedy = Remedy("float16", use.device, 0, False, _find_largest_line(memory, use))
        yield _resized(memory, use, remedy, resize, _sum_variables(memory, use) // 2)


def _find_moves(memory: StepMemory, use: MemoryUse) -> Iterator[Remedy]:
    """Move the ops from some scope on to another GPU, or to the CPU where there is none: what helps most, if any."""
    schedule, found = memory.schedule, list[Remedy]()
    devices = [one for one in schedule.placement.devices if one.name != use.device]
    gpus = [one for one in devices if one.type == "GPU"]
    for target in gpus[:1] or [one for one in devices if one.type == "CPU"][:1]:
        for scopes in _list_endings(memory, use):
            moved = _move_scopes(memory, use, scopes, target)
            if moved is not None and moved.needed <= (1 - _LEAST_GAIN) * memory.needed(use):
                found.append(moved)
    if found:
        yield min(found, key=lambda one: (not one.fits, one.nanoseconds if one.fits else one.needed))


def _list_endings(memory: StepMemory, use: MemoryUse) -> Iterator[list[str]]:
    """List the last scopes of a program that hold about a quarter, a half and three quarters of the outputs."""
    sizes = {scope: part.size for scope, part in list_by_scope(memory.schedule, use)}
    graph, placed = memory.schedule.placement.graph, memory.schedule.placement.placed
    order = dict.fromkeys(
        scope
        for node in graph.op_ids
        if not graph.names[node].startswith("gradient_tape")
        and (scope := _find_scope(find_scopes(placed, node), sizes))
    )
    scopes, total, before = list(order), sum(sizes.values()), 0
    wanted = [total * share for share in _SHARES]
    for number, scope in enumerate(scopes):
        if wanted and number and before >= wanted[0]:
            yield scopes[number:]
            wanted = [one for one in wanted if one > before]
        before += sizes[scope]


def _find_scope(path: tuple[str, ...], scopes: Container[str]) -> str:
    """Return the one of some scopes that a path is in, "" for none."""
    names = ("/".join(path[:depth]) for depth in range(len(path), 0, -1))
    return next((name for name in names if name in scopes), "")


def _move_scopes(memory: StepMemory, use: MemoryUse, scopes: list[str], target: Device) -> Remedy | None:
    """Place the program again with the ops of scopes on a device; None where TensorFlow would refuse that.

    What takes a variable stays beside it.
    """
    schedule = memory.schedule
    placement = schedule.placement
    graph = placement.graph
    nodes = [
        node
        for node in placement.decisions
        if placement.device(node) == use.device
        and int(DataType.DT_RESOURCE) not in graph.in_types[node]
        and _find_scope(find_scopes(placement.placed, node), scopes)
    ]
    if not nodes:
        return None
    pins = tuple(Pin(graph.names[node], target.spec) for node in nodes)
    program = replace(placement.program, pins=(*placement.program.pins, *pins))
    try:
        moved = StepMemory.of(
            Schedule.of(place_again(placement, program), schedule.execution.options), memory.programs, memory.batch
        )
    except SimplaceError:
        return None
    needed = sum(moved.needed(one) for one in moved.uses if one.device == use.device)
    line = next((at for node in nodes if (at := placement.placed.notes(node).at)), "")
    time, error = moved.schedule.trace.makespan, moved.schedule.uncertainty
    return Remedy("move", use.device, needed, moved.fits, line, 0, scopes[0], target.name, time, error)


def _resized(memory: StepMemory, use: MemoryUse, remedy: Remedy, resize: Resize, added: int = 0) -> Remedy:
    """Return a remedy with what the step needs when its tensors have other sizes, and `added` bytes more are taken."""
    limits = {one.device: max(one.limit - (added if one is use else 0), 1) if one.limit else 0 for one in memory.uses}
    uses = memory_use(memory.schedule.trace, tuple(limits), limits, resize)
    (there,) = (one for one in uses if one.device == use.device)
    return replace(remedy, needed=memory.find_needed(there, resize) + added, fits=all(one.runs_out < 0 for one in uses))


def _with_batch(memory: StepMemory, batch: int) -> Resize:
    return lambda tensor, size: memory.batches.resize(batch, tensor, size)


def _sum_variables(memory: StepMemory, use: MemoryUse) -> int:
    held = (one for one in use.holders if find_kind(memory.schedule, one) is MemoryKind.VARIABLE)
    return sum(one.size for one in held)


def _find_largest_line(memory: StepMemory, use: MemoryUse) -> str:
    return next((line for line, _ in list_by_line(memory.schedule, use) if line), "")
