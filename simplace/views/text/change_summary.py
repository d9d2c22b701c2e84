"""Write as text what differs between two placements: what moved, why, which copies, how long a step takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from simplace.analysis.step_times import StepTimes
from simplace.changes.layer_kernels import LayerKernel
from simplace.changes.placement_changes import Changes, Given, Move, MoveCause, ProgramChanges
from simplace.explain import reasons as why
from simplace.explain.sentences import state_reason
from simplace.partition.transfers import Copy, between_devices
from simplace.placement.placement import Placement
from simplace.result import Placed, Result
from simplace.views.text import quantities, summary
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.eager_tables import device_text
from simplace.views.text.lines import wrap_line
from simplace.views.text.tables import shorten_device
from simplace.views.text.traffic_phrases import describe_collectives
from viz import Column, Table, to_text
from viz.names import visible

_CAUSES, _COPIES, _NAMES, _EAGER = 6, 6, 4, 10
_HANGING = 4  # below the head of a cause, whose lines are indented by two


def change_summary(
    changes: Changes, times: Sequence[StepTimes] = (), width: int | None = None, in_full: bool = False
) -> str:
    """Return the whole comparison, at most `width` cells wide; `times` are the step times of the programs, () for none.

    Lists end after a few lines unless `in_full`.
    """
    blocks = ["\n".join(wrap_line(line, width, _HANGING) for line in _list_heads(changes))]
    same = [change for change in changes.programs if not change.differs]
    known: Sequence[StepTimes | None] = times or [None] * len(changes.programs)
    pairs = zip(changes.programs, known, strict=True)
    blocks += [_write_program(change, one, width, in_full) for change, one in pairs if change.differs]
    if same:
        blocks.append(wrap_line(_list_unchanged(same), width, _HANGING))
    if changes.eager.compared:
        blocks.append(_write_eager(changes, width, in_full))
    for which, programs in (("before", changes.only_before), ("after", changes.only_after)):
        if programs:
            names = _join_names([placed.title for placed in programs], _NAMES)
            blocks.append(
                wrap_line(
                    f"only {which}: {quantities.format_count(len(programs), 'program')}: {names}", width, _HANGING
                )
            )
    blocks.append("\n".join(wrap_line(line, width, _HANGING) for line in list_verdicts(changes)))
    return "\n\n".join(blocks)


def _write_eager(changes: Changes, width: int | None, in_full: bool) -> str:
    """Return the ops outside of functions that run elsewhere, or another number of times, by line."""
    found = changes.eager
    count = quantities.format_count(found.compared, "op")
    if not found.moves:
        return wrap_line(f"outside of functions: none of {count} moved", width, _HANGING)
    table = to_text(eager_table(changes, in_full), width)
    return f"outside of functions: {len(found.moves):,} of {count} differ\n\n{table}"


def eager_table(changes: Changes, in_full: bool = False) -> Table:
    """List the ops outside of functions that differ, a line and op a row, with devices and counts on both sides."""
    shown = changes.eager.moves[: None if in_full else _EAGER]
    rows = tuple(
        (
            move.at or "-",
            move.op,
            _list_devices(changes.before, move.before),
            _list_devices(changes.after, move.after),
        )
        for move in shown
    )
    more = len(changes.eager.moves) - len(rows)
    columns = (Column("line", flexible=False), Column("op", flexible=False), Column("before"), Column("after"))
    return Table(columns, rows, footer=f"and {more:,} more; --table lists them all" if more else "")


def _list_devices(result: Result, counts: Mapping[str, int]) -> str:
    shown = ((device_text(result.devices, device), count) for device, count in counts.items())
    return ", ".join(f"{device} ×{count:,}" if count > 1 else device for device, count in shown) or "-"


def list_verdicts(changes: Changes) -> list[str]:
    """Return for each side whether TensorFlow agrees with it."""
    lines = (summary.agreement_line(changes.before), summary.agreement_line(changes.after))
    return [f"before: {lines[0]}", f"after:  {lines[1]}"]


def step_text(times: StepTimes) -> str:
    """Return both times and by how much they differ.

    >>> step_text(StepTimes(1000, 1500, "modelled: ...", errors=(0.12, 0.2)))
    'a simulated step takes 1 µs ± 12% before, 1.5 µs ± 20% after (+50%), costs modelled: ...'
    """
    if times.without:
        return f"no step times: {times.without}"
    change = times.after / times.before - 1 if times.before else 0.0
    share = f"{change:+.{0 if abs(change) >= 0.1 else 1}%}" if times.after != times.before else "the same"
    before, after = map(format_uncertain, (times.before, times.after), times.errors)
    spans = f"{before} before, {after} after ({share})"
    return f"a simulated step takes {spans}, costs {times.costs}"


def move_title(move: Move, placement: Placement) -> str:
    """Return the name of a node that moved, with the line that created it."""
    at = placement.notes(move.after).at
    return f"{move.name} ({move.op})" + (f" at {at}" if at else "")


def given_text(given: Given, root: Move, old: Placement, new: Placement) -> str:
    """Return which fact differs, "" where no single one does."""
    return _GIVENS[given](root, old, new) if given else ""


def _list_heads(changes: Changes) -> list[str]:
    return [f"before: {_describe_target(changes.before)}", f"after:  {_describe_target(changes.after)}"]


def _describe_target(result: Result) -> str:
    note = f" ({result.devices_note})" if result.devices_note else ""
    pins = dict.fromkeys(pin for placed in result for pin in placed.placement.program.pins)
    supposed = "; ".join(f"{pin.pattern} requests {pin.device}" for pin in pins)
    return f"{result.target} on {result.devices}{note}" + (f", assuming that {supposed}" if supposed else "")


def _list_unchanged(same: list[ProgramChanges]) -> str:
    compared = sum(change.compared for change in same)
    if len(same) == 1:
        return f"{same[0].title}: none of {quantities.format_count(compared, 'node')} moved"
    names = _join_names([change.title for change in same], _NAMES)
    return f"{len(same)} programs without a change ({compared:,} nodes): {names}"


def _write_program(change: ProgramChanges, times: StepTimes | None, width: int | None, in_full: bool) -> str:
    parts = [wrap_line(f"{change.title}: {_count_moves(change)}", width, _HANGING), *_list_refusals(change)]
    if change.moves:
        parts.append(to_text(_move_table(change), width))
    shown = _choose_largest(change.causes, None if in_full else _CAUSES)
    parts += [
        "\n".join(wrap_line(line, width, _HANGING) for line in _write_cause(change, i, one))
        for i, one in enumerate(shown, 1)
    ]
    rest = len(change.causes) - len(shown)
    if rest:
        parts.append(f"and {quantities.format_count(rest, 'smaller cause')}; --table lists them all")
    if change.layers:
        parts.append("\n".join(wrap_line(_state_layer(change, one), width, _HANGING) for one in change.layers))
    parts += _one_sided(change, width, in_full)
    copies = _copy_table(change, None if in_full else _COPIES)
    parts.append(wrap_line(_copy_counts(change), width, _HANGING))
    if copies.rows:
        parts.append(to_text(copies, width))
    if times is not None:
        parts.append(wrap_line(step_text(times), width, _HANGING))
    return "\n\n".join(parts)


def _count_moves(change: ProgramChanges) -> str:
    if any(change.refusals):
        both = quantities.format_count(change.compared, "node")
        return f"{both} placed by both, {len(change.moves):,} of them elsewhere"
    return f"{len(change.moves):,} of {quantities.format_count(change.compared, 'node')} moved"


def _list_refusals(change: ProgramChanges) -> list[str]:
    lines = []
    for when, placed in (("before", change.before), ("after", change.after)):
        refusal = placed.placement.refusal
        if refusal is not None:
            said = refusal.message.strip().split("\nColocation Debug Info")[0].splitlines()
            lines.append(f"{when}: TensorFlow does not place this graph ({refusal.code})")
            lines += [f"  {visible(line)}" for line in said[:1]]
    return ["\n".join(lines)] if lines else []


def _move_table(change: ProgramChanges) -> Table:
    old, new = change.before.placement, change.after.placement
    ways: dict[tuple[str, str], list[Move]] = {}
    for move in change.moves:
        ways.setdefault((move.source, move.target), []).append(move)
    rows = tuple(
        (f"{shorten_device(old, source)} → {shorten_device(new, target)}", f"{len(moves):,}", _count_ops(moves))
        for (source, target), moves in sorted(ways.items(), key=lambda item: -len(item[1]))
    )
    return Table(
        (
            Column("moved", flexible=False),
            Column("nodes", "right", flexible=False),
            Column("ops", listed=True, wrapped=True),
        ),
        rows,
    )


def _count_ops(moves: Iterable[Move]) -> str:
    ops = Counter(move.op for move in moves)
    shown = [f"{count} {op}" if count > 1 else op for op, count in ops.most_common(4)]
    return ", ".join(shown) + (", …" if len(ops) > 4 else "")


def _choose_largest(causes: tuple[MoveCause, ...], limit: int | None) -> list[MoveCause]:
    """Return the causes of most moves, in the order of their first decision."""
    kept = sorted(range(len(causes)), key=lambda i: (-causes[i].moves, i))[:limit]
    return [causes[i] for i in sorted(kept)]


def _write_cause(change: ProgramChanges, number: int, cause: MoveCause) -> list[str]:
    old, new = change.before.placement, change.after.placement
    root = cause.roots[0]
    more = f" and {len(cause.roots) - 1:,} more" if len(cause.roots) > 1 else ""
    given = given_text(cause.given, root, old, new)
    way = f"{shorten_device(old, root.source)} → {shorten_device(new, root.target)}"
    lines = [f"{number}. {move_title(root, new)}{more}: {way}" + (f", because {given}" if given else "")]
    lines.append(f"   before: {state_reason(old, why.find_reason(old, root.before))}")
    lines.append(f"   after:  {state_reason(new, why.find_reason(new, root.after))}")
    for moves, how in ((cause.colocated, "by colocation"), (cause.propagated, "along edges")):
        if moves:
            names = _join_names([move.name for move in moves], _NAMES)
            verb = "follows" if len(moves) == 1 else "follow"
            lines.append(f"   {quantities.format_count(len(moves), 'node')} {verb} {how}: {names}")
    return lines


def _state_layer(change: ProgramChanges, found: LayerKernel) -> str:
    """Return in a line what a layer runs as on both sides."""
    at = f" ({found.at})" if found.at else ""
    sides = (f"as {found.op}", "as a while loop")
    was, now = sides if found.is_loop_after else sides[::-1]
    before, after = (str(placed.placement.devices) for placed in (change.before, change.after))
    return f"{found.layer}{at} runs {was} on {before}, {now} on {after}"


def _one_sided(change: ProgramChanges, width: int | None, in_full: bool) -> list[str]:
    lines = []
    for which, names in (("before", change.only_before), ("after", change.only_after)):
        if names:
            shown = _join_names(list(names), None if in_full else _NAMES)
            lines.append(
                wrap_line(f"only {which}: {quantities.format_count(len(names), 'node')}: {shown}", width, _HANGING)
            )
    return ["\n".join(lines)] if lines else []


def _copy_counts(change: ProgramChanges) -> str:
    return _tensor_copy_counts(change) + _collective_counts(change)


def _collective_counts(change: ProgramChanges) -> str:
    """Return how the collectives change, "" where there are none."""
    old, new = (
        ", ".join(map(describe_collectives, one.traffic.collectives)) or "none" for one in (change.before, change.after)
    )
    if old == new:
        return "" if old == "none" else f"; the same collectives: {old}"
    return f"; collectives: {old} before, {new} after"


def _tensor_copy_counts(change: ProgramChanges) -> str:
    old, new = change.before.crossing, change.after.crossing
    lost, gained = between_devices(change.copies_lost), between_devices(change.copies_gained)
    if not lost and not gained:
        return f"the same {quantities.format_count(len(old), 'copy')} between devices ({_format_bytes(old)})"
    return (
        f"copies between devices: {len(old):,} ({_format_bytes(old)}) before, "
        f"{len(new):,} ({_format_bytes(new)}) after; "
        f"{len(lost):,} lost ({_format_bytes(lost)}), {len(gained):,} gained ({_format_bytes(gained)})"
    )


def _format_bytes(copies: Iterable[Copy]) -> str:
    return quantities.format_total_bytes([copy.size for copy in copies])


def _copy_table(change: ProgramChanges, limit: int | None) -> Table:
    """Return lost and gained copies, the largest of each first."""
    rows: list[tuple[str, ...]] = []
    total = 0
    for sign, placed, copies in (
        ("lost", change.before, change.copies_lost),
        ("gained", change.after, change.copies_gained),
    ):
        found = sorted(between_devices(copies), key=lambda copy: (-(copy.size or 0), copy.tensor, copy.target))
        total += len(found)
        rows += [_copy_row(sign, placed, copy) for copy in found[:limit]]
    columns = (Column("", flexible=False), Column("copy", flexible=False), Column("tensor"),
               Column("type", flexible=False), Column("size", "right", flexible=False),
               Column("used by", listed=True))  # fmt: skip
    more = total - len(rows)
    return Table(columns, tuple(rows), footer=f"and {more:,} more; --table lists them all" if more else "")


def _copy_row(sign: str, placed: Placed, copy: Copy) -> tuple[str, ...]:
    placement = placed.placement
    return (
        sign,
        f"{shorten_device(placement, copy.source)} → {shorten_device(placement, copy.target)}",
        copy.tensor,
        f"{copy.dtype} {quantities.format_shape(copy.shape)}",
        quantities.format_bytes(copy.size),
        ", ".join(placement.graph.names[i] for i in copy.consumers),
    )


def _join_names(names: list[str], limit: int | None) -> str:
    shown = names[:limit]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def _state_request(root: Move, old: Placement, new: Placement) -> str:
    before, after = old.graph.requested[root.before], new.graph.requested[root.after]
    was, now = (_shorten_device(request) or "no device" for request in (before, after))
    return f"it requests {now} instead of {was}"


def _state_op(root: Move, old: Placement, new: Placement) -> str:
    return f"the op is {new.graph.ops[root.after]} instead of {old.graph.ops[root.before]}"


def _state_argument(root: Move, old: Placement, new: Placement) -> str:
    return f"the caller's tensor is on {shorten_device(new, root.target)} instead of {shorten_device(old, root.source)}"


def _state_call(root: Move, old: Placement, new: Placement) -> str:
    was, now = (one.default.short if one.default else "no device" for one in (old, new))
    return f"the function is called on {now} instead of {was}"


def _state_missing_device(root: Move, old: Placement, new: Placement) -> str:
    return f"{shorten_device(old, root.source)} no longer exists"


def _state_new_device(root: Move, old: Placement, new: Placement) -> str:
    return f"{shorten_device(new, root.target)} is new"


def _state_kernels(root: Move, old: Placement, new: Placement) -> str:
    was, now = _list_kernel_types(old, root.before), _list_kernel_types(new, root.after)
    return f"it has a kernel for {now} instead of for {was}"


def _list_kernel_types(placement: Placement, node: int) -> str:
    return " and ".join(kind for kind, _ in placement.groups.own_types[node]) or "no device type"


def _state_group(root: Move, old: Placement, new: Placement) -> str:
    was = {old.graph.names[i] for i in why.list_group_members(old, root.before)}
    now = {new.graph.names[i] for i in why.list_group_members(new, root.after)}
    parts = [
        f"{word} {_join_names(sorted(names), 3)}"
        for word, names in (("gained", now - was), ("lost", was - now))
        if names
    ]
    return f"its colocation group {' and '.join(parts)}"


def _state_soft_placement(root: Move, old: Placement, new: Placement) -> str:
    return (
        f"soft placement is {'on' if new.soft_placement else 'off'}, no longer {'on' if old.soft_placement else 'off'}"
    )


def _state_rules(root: Move, old: Placement, new: Placement) -> str:
    was, now = (one.groups.support.table.version for one in (old, new))
    return f"the rules are those of TensorFlow {now} instead of {was}"


def _shorten_device(text: str) -> str:
    return text.removeprefix("/job:localhost/replica:0/task:0")


_GIVENS: dict[Given, Callable[[Move, Placement, Placement], str]] = {
    "request": _state_request,
    "op": _state_op,
    "argument": _state_argument,
    "call": _state_call,
    "device gone": _state_missing_device,
    "device new": _state_new_device,
    "kernels": _state_kernels,
    "group": _state_group,
    "soft placement": _state_soft_placement,
    "rules": _state_rules,
}
