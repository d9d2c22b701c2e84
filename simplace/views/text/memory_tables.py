"""What `simplace memory` prints: whether a step fits, what holds the memory, the largest batch."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.analysis.batch_growth import ELEMENTS
from simplace.analysis.device_comparison import count_examples
from simplace.analysis.memory import Held, MemoryUse
from simplace.analysis.memory_at_start import StartMemory, list_start_memory
from simplace.analysis.memory_kinds import (
    MemoryKind,
    Part,
    divide_kind,
    list_by_kind,
    list_by_line,
    list_by_scope,
    list_inside,
    name_held,
)
from simplace.analysis.memory_remedies import Remedy
from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.analysis.session_memory import MemoryFraction
from simplace.analysis.step_memory import StepMemory
from simplace.devices.device_set import shorten_task
from simplace.graph.op_kinds import CALLS_OF_PYTHON
from simplace.placement.xla_compiler import find_clusters
from simplace.views.figures.variable_roles import VariableRoles
from simplace.views.text.alike_rows import join_alike_rows
from simplace.views.text.cost_sentences import format_makespan, format_uncertain
from simplace.views.text.lines import wrap_line
from simplace.views.text.quantities import format_bytes
from simplace.views.text.schedule_tables import list_assumptions
from viz import Column, Table, to_text
from viz.names import visible

_ROWS = 8
_IN_CLUSTERS = (
    "what calls that XLA compiles hold between their kernels is estimated, and counts as scratch memory, as do the "
    "results of a function that is compiled whole; copies of tensors in other layouts are not counted"
)
_OF_KERNELS = (
    "what kernels need besides their inputs and outputs (the workspaces of cuDNN's convolutions and of cuBLAS)"
)


def write_memory(memory: StepMemory, remedies: Sequence[Remedy] = (), width: int | None = None) -> str:
    """Return the answer for each device, what holds the fullest ones' memory, the batch, and what would help."""
    parts = [wrap_line(_write_headline(memory), width), to_text(join_alike_rows(_device_table(memory)), width)]
    schedule, roles = memory.schedule, VariableRoles(memory.schedule)
    for use in _list_detailed(memory):
        tables = [_kind_table(memory, use, roles), _tensor_table(memory, use, roles)]
        tables.append(_part_table(schedule, "outputs by scope", list_by_scope(schedule, use)))
        tables.append(_inside_table(memory, use))
        if len(lines := list_by_line(schedule, use)) > 1:
            tables.append(_part_table(schedule, "outputs by line", lines))
        parts += [to_text(table, width) for table in tables if table.rows]
    parts.append(wrap_line(describe_batch(memory), width))
    if starts := list_start_memory(memory.schedule, grows=memory.grows):
        parts.append(to_text(join_alike_rows(_start_table(memory, starts), place=1), width))
    if remedies:
        parts.append(to_text(_remedy_table(memory, remedies), width))
    compiled = (_IN_CLUSTERS,) if find_clusters(memory.schedule.placement) else ()
    ignored = describe_fraction(memory.fraction)
    notes = (
        *list_assumptions(memory.schedule),
        *_list_early_sums(memory),
        *ignored,
        *compiled,
        _describe_left_out(memory),
    )
    parts += [wrap_line(f"note: {line}", width) for line in notes]
    return "\n\n".join(parts)


def _describe_left_out(memory: StepMemory) -> str:
    """Return what is not counted of a step."""
    ops = {node.op for node in memory.schedule.estimated.graph.nodes}
    parts = [_OF_KERNELS]
    parts += ["elements that the input pipeline holds ready"] * (not ops.isdisjoint(ELEMENTS))
    parts += ["what tf.py_function and tf.numpy_function compute"] * (not ops.isdisjoint(CALLS_OF_PYTHON))
    return f"not counted: {', '.join(parts)}, and what Grappler changes"


def write_verdict(memory: StepMemory, use: MemoryUse) -> str:
    """Return in one line whether the memory of a device suffices."""
    needed, limit = memory.needed(use), memory.limit(use)
    if not limit:
        return "no limit"
    if use.runs_out >= 0:
        schedule = memory.schedule
        name = name_part(schedule.estimated.graph, use.runs_out)
        line = schedule.estimated.graph.source_line(use.runs_out)
        at = f" ({line})" if line else ""
        why = f"no room at {name}{at}"
        if memory.tensors(use) <= limit:
            why += f": the largest free piece has {format_bytes(use.largest_free)}"
        return f"does not fit: {why}"
    free = limit - needed
    close = ", too little to rely on" if memory.is_close(use) else ""
    return f"fits, {format_bytes(free)} ({free / limit:.0%}) free{close}"


def describe_batch(memory: StepMemory) -> str:
    """Return the largest batch that fits, or why none is known."""
    batches = memory.batches
    if not batches.batch and memory.schedule.estimated.given:
        return (
            "batch: XLA compiles the function whole, so all is that of the program's own batch; --no-jit follows its "
            "arguments, and takes --batch"
        )
    if not batches.batch:
        return "batch: nothing the program is given has a first dimension, so no batch is searched"
    if batches.clash >= 0:
        graph = memory.schedule.estimated.graph
        name = graph.nodes[batches.clash].name
        return (
            f"batch: {batches.batch} is also the first dimension of a variable ({name}), so what grows with the batch "
            "cannot be told; call the function with another batch"
        )
    if batches.loop:
        return (
            f"batch: the loop {batches.loop} runs {batches.batch:,} times, perhaps once for each example of the batch, "
            "so what another batch needs cannot be told; call the function with another batch"
        )
    asked = (
        f"{memory.batch:,}" if memory.batch == batches.batch else f"{memory.batch:,}, the program's {batches.batch:,}"
    )
    examples = count_examples(batches)
    if examples > batches.batch:
        asked += f" ({examples // batches.batch:,} such in a step, {examples:,} examples)"
    if memory.largest_batch is None:
        return f"batch: {asked}; no device's memory limits it"
    largest = f"{memory.largest_batch:,}" if memory.largest_batch else "none, not even 1"
    reliable = f"; with a tenth of the memory left free: {memory.reliable_batch:,}" if memory.largest_batch else ""
    return f"batch: {asked}; the largest that fits: {largest}{reliable}"


def _list_early_sums(memory: StepMemory) -> list[str]:
    """Return that a program called with another batch makes another graph where it sums up gradients; [] if not."""
    batch = max(memory.batch, memory.largest_batch or 0)
    sums = memory.batches.find_early_sums(batch) if memory.batches.growing else ()
    if not sums:
        return []
    graph = memory.schedule.estimated.graph
    at = next((f" ({line})" for node in sums if (line := graph.source_line(node))), "")
    return [
        f"called with a batch of {batch:,}, tf.GradientTape sums up gradients before it has all of them{at}, as it "
        "does from 128 MiB on, so the program may need less than is said; call the function with that batch to know"
    ]


def describe_fraction(fraction: MemoryFraction | None) -> list[str]:
    """Return that a fraction which a session sets is not simulated; [] for one that is, or none."""
    if fraction is None or fraction.is_usual:
        return []
    at = f" ({fraction.at})" if fraction.at else ""
    return [
        f"a session's per_process_gpu_memory_fraction of {fraction.value:g}{at} is not simulated (above 1 it asks "
        "for unified memory); a GPU has here all but TensorFlow's reserve"
    ]


def _start_table(memory: StepMemory, starts: Sequence[StartMemory]) -> Table:
    devices = memory.schedule.placement.devices.by_name
    rows = tuple(
        (
            shorten_task(one.process),
            devices[one.device].short,
            *map(format_bytes, (one.at_start, one.at_most)),
            _describe_start(one),
        )
        for one in starts
    )
    columns = (Column("process", flexible=False), Column("device", flexible=False),
               Column("takes at start", "right", flexible=False), Column("at most", "right", flexible=False),
               Column("why", below=True))  # fmt: skip
    return Table(columns, rows)


def _describe_start(start: StartMemory) -> str:
    taken = f"{start.fraction:.0%} of its memory, as set" if start.fraction else "all but TensorFlow's reserve"
    if start.is_logical:
        why = "logical GPU: its own limit"
    else:
        why = f"visible: {taken}" if start.at_start else "memory growth: more as it is needed"
    return why if start.is_used else f"{why}; this step does not use it"


def _remedy_table(memory: StepMemory, remedies: Sequence[Remedy]) -> Table:
    devices = memory.schedule.placement.devices.by_name
    rows = tuple(
        (
            _describe_remedy(memory, one),
            one.line or "-",
            f"{format_bytes(one.needed)} on {devices[one.device].short}",
            "fits" if one.fits else "does not fit",
        )
        for one in remedies
    )
    columns = (Column("what would help, simulated"), Column("line"), Column("needs", "right", flexible=False),
               Column("verdict", flexible=False))  # fmt: skip
    return Table(columns, rows)


def _describe_remedy(memory: StepMemory, remedy: Remedy) -> str:
    if remedy.kind == "batch":
        return f"a batch of {remedy.amount:,}"
    if remedy.kind == "accumulate":
        return f"gradients of {remedy.amount} parts of the batch, summed up before one update"
    if remedy.kind == "float16":
        return "mixed precision: activations in 16 bits, a 16-bit copy of the variables"
    schedule = memory.schedule
    target = schedule.placement.devices.by_name[remedy.target].short
    moved = f"{remedy.subject} and what follows on {target}"
    if memory.batch != memory.batches.batch:
        return moved
    before, after = format_makespan(schedule), format_uncertain(remedy.nanoseconds, remedy.error)
    return f"{moved}: a step of {after} in place of {before}"


def _write_headline(memory: StepMemory) -> str:
    schedule = memory.schedule
    name = visible(schedule.placement.program.title)
    other = memory.asked and memory.asked != memory.batch
    own = f", of the program's own batch, not of {memory.asked:,}" if other else ""
    return f"{name}: memory of a step{own}, simulated with {schedule.estimated.costs}"


def _device_table(memory: StepMemory) -> Table:
    devices = memory.schedule.placement.devices.by_name
    rows = tuple(
        (
            devices[use.device].short,
            format_bytes(memory.tensors(use)),
            format_bytes(memory.needed(use)),
            format_bytes(memory.limit(use)) if use.limit else "-",
            write_verdict(memory, use),
        )
        for use in memory.uses
    )
    columns = (Column("device", flexible=False), Column("tensors", "right", flexible=False),
               Column("needs", "right", flexible=False), Column("has", "right", flexible=False),
               Column("verdict", wrapped=True))  # fmt: skip
    return Table(columns, rows)


def _list_detailed(memory: StepMemory) -> list[MemoryUse]:
    """List the devices whose memory is shown in detail: those where it runs out, else the one that needs most of it."""
    short = [use for use in memory.uses if use.runs_out >= 0]
    limited = [use for use in memory.uses if use.limit] or list(memory.uses)
    fullest = sorted(limited, key=lambda use: -memory.needed(use))[:1]
    return [use for use in short or fullest if use.holders]


def _kind_table(memory: StepMemory, use: MemoryUse, roles: VariableRoles) -> Table:
    """Return what the step needs by kind; what the allocator rounds up and cannot use comes last."""
    rows = list_by_kind(memory.schedule, use, roles.is_state)
    if memory.others[use.device].count:
        rows.append((MemoryKind.OF_OTHERS, memory.others[use.device]))
        rows.sort(key=lambda row: _KINDS.index(row[0]))
    needed = memory.needed(use)
    cells = [(kind.value, *_format_part(memory.schedule, part, needed)) for kind, part in rows]
    lost = needed - memory.tensors(use)
    if lost > 0:
        cells.append((_LOST, format_bytes(lost), f"{lost / needed:.0%}", "-", "-"))
    short = memory.schedule.placement.devices.by_name[use.device].short
    at = f", {format_uncertain(use.peak_at, memory.schedule.uncertainty)} into the step" if memory.has_own_times else ""
    title = f"{short} at its peak{at}"
    return Table((Column("kind", flexible=False), *_PARTS), tuple(cells), title)


def _tensor_table(memory: StepMemory, use: MemoryUse, roles: VariableRoles) -> Table:
    """Return the largest tensors at the peak, with the user's lines that make them."""
    schedule, needed = memory.schedule, memory.needed(use)
    shown, rest = use.holders[:_ROWS], use.holders[_ROWS:]
    rows = tuple(
        (
            name_held(schedule, one),
            format_bytes(one.size),
            f"{one.size / max(needed, 1):.0%}",
            divide_kind(schedule, one, roles.is_state).value,
            schedule.estimated.graph.source_line(one.node) or "-",
        )
        for one in shown
    )
    columns = (Column("tensor"), Column("bytes", "right", flexible=False), Column("share", "right", flexible=False),
               Column("kind", flexible=False), Column("line", below=True))  # fmt: skip
    left = sum(one.size for one in rest)
    return Table(columns, rows, footer=f"and {len(rest):,} more, {format_bytes(left)}" if rest else "")


def _part_table(schedule: Schedule, title: str, rows: list[tuple[str, Part]]) -> Table:
    total = sum(part.size for _, part in rows)
    cells = tuple((name or "-", *_format_part(schedule, part, total)) for name, part in rows[:_ROWS])
    more = len(rows) - _ROWS
    return Table((Column(title), *_PARTS), cells, footer=f"and {more:,} more" if more > 0 else "")


def _inside_table(memory: StepMemory, use: MemoryUse) -> Table:
    """Return what calls that stay in the graph hold by layer: what XLA compiles, and what is not inlined."""
    rows = list_inside(memory.schedule, use)
    total = max(sum(size for _, size, _ in rows), 1)
    cells = tuple(
        (name or "-", format_bytes(size), f"{size / total:.0%}", f"{count:,}") for name, size, count in rows[:_ROWS]
    )
    own = "" if memory.batch == memory.batches.batch else f", with a batch of {memory.batches.batch:,}"
    more = len(rows) - _ROWS
    columns = (Column(f"inside of calls by scope{own}"), *_PARTS[:3])
    return Table(columns, cells, footer=f"and {more:,} more" if more > 0 else "")


_KINDS = tuple(MemoryKind)
_LOST = "lost by the allocator: rounding, pieces too small"
_PARTS = (Column("bytes", "right", flexible=False), Column("share", "right", flexible=False),
          Column("tensors", "right", flexible=False), Column("largest"))  # fmt: skip


def _format_part(schedule: Schedule, part: Part, total: int) -> tuple[str, str, str, str]:
    largest = _format_held(schedule, part.largest) if part.largest is not None else "-"
    return format_bytes(part.size), f"{part.size / max(total, 1):.0%}", f"{part.count:,}", largest


def _format_held(schedule: Schedule, held: Held) -> str:
    return f"{name_held(schedule, held)} {format_bytes(held.size)}"
