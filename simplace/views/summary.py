"""The summary that `show` prints: what a person wants to know of a placement in ten seconds."""

from __future__ import annotations

import textwrap
from collections import Counter

from simplace.comparison import Agreement
from simplace.cut_check import CopyDifference
from simplace.explain import explain_conflict, sentence
from simplace.placement.placement import Placement
from simplace.result import Placed, Result
from simplace.surprises import Surprise, find_surprises
from simplace.views import tables
from simplace.views.quantities import plural
from viz import Column, Table, to_text

_DETAILED = 4  # programs shown in full; of more, the largest
_SURPRISES = 6
COPIES = 5


def summary(result: Result, width: int | None = None, copies: int | None = COPIES) -> str:
    """Write the summary of a result, at most `width` cells wide, with that many copies a program (None: all)."""
    blocks = [_wrapped(_head(result), width)]
    detailed = list(result.programs)
    if len(detailed) > _DETAILED:
        blocks.append(to_text(_program_table(result), width))
        largest = sorted(detailed, key=lambda placed: -len(placed.placement.decisions))[:2]
        detailed = [placed for placed in detailed if placed in largest]
    blocks += [program_summary(placed, width, copies) for placed in detailed]
    if len(detailed) < len(result.programs):
        rest = len(result.programs) - len(detailed)
        blocks.append(f"{plural(rest, 'smaller program')} not shown in full; --program NAME picks one.")
    blocks += [_wrapped(f"note: {remark}", width) for remark in result.remarks]
    return "\n\n".join(blocks)


def program_summary(placed: Placed, width: int | None = None, copies: int | None = COPIES) -> str:
    """Write the summary of one program: devices, copies, surprises."""
    parts = [title(placed), to_text(tables.device_table(placed), width)]
    crossing = tables.copy_table(placed, copies)
    if crossing.rows:
        parts.append(to_text(crossing, width))
    if placed.placement.refusal is not None:
        parts.append(_refusal(placed.placement))
    found = find_surprises(placed.placement)
    if found:
        lines = [_wrapped(f"  ! {surprise_text(placed.placement, one)}", width) for one in found[:_SURPRISES]]
        more = len(found) - _SURPRISES
        lines += [f"  ! and {more} more; --json has them all"] if more > 0 else []
        parts.append("\n".join(["surprises", *lines]))
    return "\n\n".join(parts)


def title(placed: Placed) -> str:
    """Name a program with what its placement depends on."""
    placement = placed.placement
    program = placement.program
    called = f" called on {placement.default.short}" if placement.default else ""
    soft = "on" if placement.soft_placement else "off"
    nodes = plural(len(placement.decisions), "node")
    kind = {"function": "tf.function", "session": "session", "graph": "graph"}[program.kind]
    return f"{program.name}: {kind}{called}, {nodes}, soft placement {soft}"


def surprise_text(placement: Placement, surprise: Surprise) -> str:
    """Say one surprise in a line, with the user's line."""
    at = f" ({surprise.source})" if surprise.source else ""
    device = tables.short(placement, surprise.device)
    what = _which(placement, surprise.nodes)
    match surprise.kind:
        case "idle device":
            return f"{device} has nothing to do: no op asks for it, and TensorFlow does not spread work by itself"
        case "host memory":
            return f"{what} on a GPU keep{'s' if len(surprise.nodes) == 1 else ''} results in host memory{at}"
    assert surprise.reason is not None, "surprises about nodes have a reason"
    because = sentence(placement, surprise.reason)
    if surprise.kind == "cpu between gpus":
        return f"{what} on {device} between GPU ops{at}: {because}"
    return f"{what}{at}: {because}"


def agreement_line(result: Result, whom: str = "") -> str:
    """Say in one line whether TensorFlow agrees, or why it was not asked; `whom` names another log than its own."""
    whom = whom or f"TensorFlow {result.tensorflow}"
    asked = [placed.agreement for placed in result.programs if placed.agreement is not None]
    if not asked:
        return f"not checked against TensorFlow, only replayed by its {result.tensorflow} rules: {result.unchecked}"
    same, total = sum(a.same for a in asked), sum(a.total for a in asked)
    refused = sum(1 for a in asked if a.refusals[1])
    more = f", and refuses {plural(refused, 'program')} as predicted" if refused else ""
    if all(a.holds for a in asked):
        return f"agrees with {whom}: {same}/{total} nodes{more}"
    return f"DISAGREES with {whom}: {same}/{total} nodes the same; {_first_difference(result)}"


def copies_line(result: Result) -> str:
    """Say in one line whether TensorFlow's partition graphs have the same copies, "" where they were not asked for."""
    asked = [placed.copy_agreement for placed in result.programs if placed.copy_agreement is not None]
    if not asked:
        return ""
    count = f"{sum(a.same for a in asked)}/{sum(a.total for a in asked)}"
    if all(a.holds for a in asked):
        uncut = sum(placed.copy_agreement is None and placed.placement.refusal is None for placed in result.programs)
        rest = f"; it made none for {plural(uncut, 'program')}" if uncut else ""
        return f"copies: {count} as in TensorFlow's partition graphs{rest}"
    return f"copies DIFFER from TensorFlow's partition graphs: {count} the same; {_first_copies(result)}"


def copy_difference_text(placed: Placed, found: CopyDifference) -> str:
    """Say one differing copy in a line."""
    one = found.transfer
    source, target = (tables.short(placed.placement, device) for device in (one.source, one.target))
    return (
        f"{one.tensor} from {source} to {target}: simplace {found.ours or 'none'}, TensorFlow {found.theirs or 'none'}"
    )


def _first_copies(result: Result) -> str:
    parts = [
        f"{placed.name}: {copy_difference_text(placed, found)}"
        for placed in result.programs
        if placed.copy_agreement is not None
        for found in placed.copy_agreement.differences[:2]
    ]
    return "; ".join(parts[:3])


def _wrapped(text: str, width: int | None) -> str:
    if width is None:
        return text
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _first_difference(result: Result) -> str:
    parts = []
    for placed in result.programs:
        agreement = placed.agreement
        if agreement is None or agreement.holds:
            continue
        if agreement.refusals[0] != agreement.refusals[1]:
            parts.append(f"{placed.name}: {_refusals(agreement)}")
        for d in agreement.differences[:2]:
            ours, theirs = (tables.short(placed.placement, x) or "nowhere" for x in (d.ours, d.theirs))
            parts.append(f"{placed.name}: {d.node} ({d.op}): simplace {ours}, TensorFlow {theirs}")
    return "; ".join(parts[:3])


def _refusals(agreement: Agreement) -> str:
    ours, theirs = agreement.refusals
    return f"simplace {_outcome(ours)}, TensorFlow {_outcome(theirs)}"


def _outcome(code: str) -> str:
    return f"refuses it with {code}" if code else "places it"


def _head(result: Result) -> str:
    note = f" ({result.devices_note})" if result.devices_note else ""
    return f"{result.target} on {result.devices}{note}"


def _program_table(result: Result) -> Table:
    rows = []
    for placed in result.programs:
        ops = Counter(tables.short(placed.placement, d.device) for d in placed.placement.decisions.values())
        spread = ", ".join(f"{device} {count:,}" for device, count in sorted(ops.items()))
        agreement = "" if placed.agreement is None else str(placed.agreement)
        rows.append((placed.name, placed.placement.program.kind, spread, agreement))
    return Table((Column("program"), Column("kind"), Column("ops per device"), Column("agreement")), tuple(rows))


def _refusal(placement: Placement) -> str:
    refusal = placement.refusal
    assert refusal is not None, "asked only for a refused placement"
    lines = [f"refused: TensorFlow does not place this graph ({refusal.code})"]
    lines.append("  " + refusal.message.split("\nColocation Debug Info")[0].splitlines()[0])
    lines += [f"  {line}" for line in explain_conflict(placement)]
    return "\n".join(lines)


def _which(placement: Placement, nodes: tuple[int, ...]) -> str:
    ops = Counter(placement.graph.ops[i] for i in nodes)
    if len(nodes) == 1:
        return f"{placement.graph.names[nodes[0]]} ({placement.graph.ops[nodes[0]]})"
    kinds = ", ".join(f"{count} {op}" if count > 1 else op for op, count in ops.most_common(3))
    return f"{len(nodes)} ops ({kinds}{', …' if len(ops) > 3 else ''})"
