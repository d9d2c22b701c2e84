"""The summary that `show` prints: devices, copies, findings and agreement of a placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from simplace.explain.placement_findings import find_in_placement
from simplace.placement.placement import Placement
from simplace.program.program_labels import drop_number
from simplace.result import Placed, Result
from simplace.views.text import tables
from simplace.views.text.alike_rows import join_alike_rows
from simplace.views.text.lines import list_findings, wrap_line
from simplace.views.text.quantities import format_count, format_shape
from simplace.views.text.reach import tell_ending, tell_unreached
from simplace.views.text.traffic_phrases import collective_table, describe_traffic
from viz import Column, Table, to_text
from viz.names import visible

if TYPE_CHECKING:
    from simplace.compare.compare_placements import Agreement
    from simplace.compare.compare_transfers import CopyDifference
    from simplace.explain.finding import Failure

_DETAILED = 4  # programs shown in full; of more, the largest
KINDS = {
    "function": "tf.function",
    "session": "session",
    "graph": "graph",
    "compiled": "tf.function",
    "dataset": "function",
    "call": "function",
    "eager": "eager op",
}
COPIES = 5
_GIVEN = 4  # arguments whose shapes are named


def write_summary(result: Result, width: int | None = None, copies: int | None = COPIES) -> str:
    """Return the summary of a result, at most `width` cells wide, with that many copies a program (None: all)."""
    blocks = [wrap_line(_describe_target(result), width)]
    detailed = list(result.programs)
    if len(detailed) > _DETAILED:
        blocks.append(to_text(_program_table(result), width))
        largest = result.by_work()[:2]
        detailed = [placed for placed in detailed if placed in largest]
    blocks += [_summarize(placed, width, copies, result.used_devices) for placed in detailed]
    if len(detailed) < len(result.programs):
        rest = len(result.programs) - len(detailed)
        blocks.append(f"{format_count(rest, 'smaller program')} not shown in full; --program NAME picks one.")
    if result.eager is not None:
        from simplace.views.text.eager_summary import write_eager_summary

        is_all = not result.programs
        blocks.append(write_eager_summary(result.eager, width, is_all=is_all, is_long=copies is None))
    if result.python and (of_run := _list_failures_of_run(result, width)):
        blocks.append(of_run)
    blocks += note_lines(result, width)
    return "\n\n".join(blocks)


def note_lines(result: Result, width: int | None = None) -> list[str]:
    """Return a line for each note of the run, such as calls that were not computed."""
    return [wrap_line(f"note: {remark}", width) for remark in result.remarks]


def _list_failures_of_run(result: Result, width: int | None) -> str:
    from simplace.doctor.failures import list_failures_of_run
    from simplace.explain.failures import format_failure
    from simplace.explain.finding import cite_page

    lines = [cite_page(format_failure(failure), failure) for failure in list_failures_of_run(result)]
    return list_findings(lines, width, "simplace doctor has them all") if lines else ""


def _summarize(placed: Placed, width: int | None, copies: int | None, busy: Collection[str]) -> str:
    """Return the summary of one program: devices, copies, findings; `busy` are the devices that all programs use."""
    parts = [write_title(placed)]
    if placed.placement.program.kind != "compiled":
        parts.append(to_text(join_alike_rows(tables.device_table(placed)), width))
    if placed.clusters:
        parts.append(to_text(tables.cluster_table(placed), width))
    sent = describe_traffic(placed.traffic)
    if sent:
        parts.append(wrap_line(sent, width))
    if placed.run is not None and len(placed.runs) > 1:
        parts.append(wrap_line(tables.describe_step_run(placed.run.run, len(placed.runs)), width))
    if placed.collectives:
        parts.append(to_text(collective_table(placed, copies), width))
    crossing = tables.run_table(placed, copies) if placed.runs else tables.copy_table(placed, copies)
    if crossing.rows:
        parts.append(to_text(crossing, width))
    if given := describe_given_shapes(placed):
        parts.append(wrap_line(given, width))
    if placed.placement.refusal is not None:
        parts.append(_describe_refusal(placed.placement))
    found = find_in_placement(placed.placement, placed.communication, busy)
    if found:
        from simplace.views.text.finding_list import describe_findings

        parts.append(list_findings(describe_findings(found), width, "--json has them all"))
    return "\n\n".join(parts)


def describe_given_shapes(placed: Placed) -> str:
    """Return whose sizes are shown where the graph leaves them open, "" where it leaves none."""
    given, follows = placed.placement.program.given_shapes, placed.placement.program.is_sized_by_values
    if not given and not follows:
        return ""
    if not given:
        return "sizes that the graph leaves open follow from integers among the arguments of the first call"
    shown = [f"{name} {format_shape(shape)}" for name, shape in given[:_GIVEN]]
    more = f" and {len(given) - _GIVEN:,} more" if len(given) > _GIVEN else ""
    also = ", and what follows from integers among its arguments" if follows else ""
    return visible(f"sizes that the graph leaves open are those of the first call: {', '.join(shown)}{more}{also}")


def write_title(placed: Placed) -> str:
    """Return a program's name with what its placement depends on."""
    placement = placed.placement
    program = placement.program
    called = f" called on {placement.default.short}" if placement.default else ""
    if program.kind == "dataset":
        called = f" of a dataset, {visible(program.name)} to TensorFlow"
    elif program.caller is not None:
        at = f" at {program.caller.at}" if program.caller.at else ""
        called = f", the {program.caller.role} by {visible(program.caller.node)}{at}"
    soft = "on" if placement.soft_placement else "off"
    nodes = _count_nodes(placement)
    kind = KINDS[program.kind]
    if program.runs_unplaced:
        nodes = f"{nodes} on its device, without placement"
    if program.kind == "compiled":
        nodes = f"{format_count(sum(len(cluster.ops) for cluster in placed.clusters), 'op')} compiled by XLA"
    return f"{visible(program.title)}: {kind}{called}, {nodes}, soft placement {soft}"


def _count_nodes(placement: Placement) -> str:
    placed = len(placement.decisions)
    if placement.refusal is None:
        return format_count(placed, "node")
    source_and_sink = 2
    return f"{format_count(len(placement.graph) - source_and_sink, 'node')}, {placed or 'none'} placed"


def agreement_line(result: Result, whom: str = "") -> str:
    """Return in one line whether TensorFlow agrees, or why it was not compared; `whom` names another log."""
    whom = whom or f"TensorFlow {result.tensorflow}"
    asked = [placed.agreement for placed in result.programs if placed.agreement is not None]
    eager = result.eager_agreement
    if not asked and eager is None:
        why = result.unchecked or _tell_uncompared(result).removeprefix("; ") or _tell_unplaced(result)
        return visible(f"not checked against TensorFlow, only replayed by its {result.tensorflow} rules: {why}")
    before, after = tell_ending(result), f"{tell_unreached(result)}{_tell_uncompared(result)}"
    compared = [*asked, *([eager] if eager is not None else [])]
    if all(each.holds for each in compared):
        return visible(f"agrees with {whom}: {', '.join(_count_agreeing(asked, eager))}{before}{after}")
    same = [f"{sum(each.same for each in asked)}/{sum(each.total for each in asked)} nodes"] if asked else []
    same += [_count_eager(eager)] if eager is not None else []
    return visible(f"DISAGREES with {whom}: {', '.join(same)} the same{before}; {_first_difference(result)}{after}")


def _count_agreeing(asked: Sequence[Agreement], eager: Agreement | None) -> Iterator[str]:
    """Yield how many nodes, eager ops and refused programs are as TensorFlow has them; all are."""
    total, refused = sum(each.total for each in asked), sum(bool(each.refusals[1]) for each in asked)
    if total or (asked and not refused):
        yield f"{sum(each.same for each in asked)}/{total} nodes"
    if eager is not None:
        yield _count_eager(eager)
    if refused:
        yield f"{format_count(refused, 'program')} refused as predicted"


def _count_eager(eager: Agreement) -> str:
    return f"{eager.same}/{eager.total} eager ops"


def _tell_uncompared(result: Result) -> str:
    """Return in clauses how many functions were not compared, and why."""
    functions = [one for one in result.programs if one.is_uncalled and not one.placement.program.runs_unplaced]
    told = ""
    rewritten = [placed for placed in functions if placed.unreplayed]
    inlined = sum(placed.is_inlined and not placed.unreplayed for placed in functions)
    if uncalled := len(functions) - len(rewritten) - inlined:
        them = "it" if uncalled == 1 else "them"
        told += f"; {format_count(uncalled, 'function')} not compared, as this run did not instantiate {them}"
    if inlined:
        call = "its call" if inlined == 1 else "their calls"
        told += f"; {format_count(inlined, 'function')} not compared, as Grappler inlines {call} after placement"
    if rewritten:
        optimizers = " and ".join(sorted({placed.unreplayed for placed in rewritten}))
        told += f"; {format_count(len(rewritten), 'function')} not compared, as Grappler's {optimizers} is not replayed"
    return told


def _explain_no_agreement(placed: Placed) -> str:
    """Return in a word why TensorFlow logs no placement of a program, "" where that depends on the run."""
    if placed.placement.program.runs_unplaced:
        return "not placed"
    return "inlined" if placed.is_inlined else ""


def _tell_unplaced(result: Result) -> str:
    """Return in a clause why nothing that is shown was placed by TensorFlow."""
    if any(placed.placement.program.runs_unplaced for placed in result.programs):
        return "what is shown runs on its device, without placement"
    return "TensorFlow was not asked"


def coverage_line(result: Result) -> str:
    """Return in one line how much of TensorFlow's log belongs to what is shown, "" where that was not measured.

    Eager ops count by themselves, in `agreement_line`; where they are not told, how many ran is told here.
    """
    found = result.coverage
    if found is None or not (found.total or result.eager is None):
        return ""
    ran = found.eager if result.eager is None else 0
    more = f"; {format_count(ran, 'eager op')} ran besides" if ran else ""
    rest = "" if not found.missing else f", all but {', '.join(found.missing[:3])}{', …' * (len(found.missing) > 3)}"
    return visible(f"accounts for {found.accounted:,} of {found.total:,} lines of TensorFlow's log{rest}{more}")


def failure_lines(predicted: Iterable[Failure], width: int | None = None) -> str:
    """Return a line for each failure that is predicted, "" where there is none."""
    from simplace.explain.failures import format_failure
    from simplace.explain.finding import cite_page

    lines = []
    for one in predicted:
        verb = "fails" if one.caught_at is None else "raises"
        lines.append(wrap_line(cite_page(f"{verb} when run: {format_failure(one)}", one), width))
    return "\n".join(lines)


def copies_line(result: Result) -> str:
    """Return in one line whether TensorFlow's partition graphs have the same copies, "" where there are none."""
    asked = [placed.copy_agreement for placed in result.programs if placed.copy_agreement is not None]
    if not asked:
        return ""
    count = f"{sum(a.same for a in asked)}/{sum(a.total for a in asked)}"
    if all(a.holds for a in asked):
        uncut = sum(placed.copy_agreement is None and placed.placement.refusal is None for placed in result.programs)
        rest = f"; TensorFlow made none for {format_count(uncut, 'program')}" if uncut else ""
        return f"copies: {count} as in TensorFlow's partition graphs{rest}"
    return visible(f"copies DIFFER from TensorFlow's partition graphs: {count} the same; {_first_copies(result)}")


def copy_difference_text(placed: Placed, found: CopyDifference) -> str:
    """Return one differing copy in a line."""
    one = found.transfer
    source, target = (tables.shorten_device(placed.placement, device) for device in (one.source, one.target))
    return (
        f"{one.tensor} from {source} to {target}: simplace {found.ours or 'none'}, TensorFlow {found.theirs or 'none'}"
    )


def _first_copies(result: Result) -> str:
    parts = [
        f"{placed.title}: {copy_difference_text(placed, found)}"
        for placed in result.programs
        if placed.copy_agreement is not None
        for found in placed.copy_agreement.differences[:2]
    ]
    return "; ".join(parts[:3])


def _first_difference(result: Result) -> str:
    parts = []
    for placed in result.programs:
        agreement = placed.agreement
        if agreement is None or agreement.holds:
            continue
        if agreement.refusals[0] != agreement.refusals[1]:
            parts.append(f"{placed.title}: {_compare_refusals(agreement)}")
        for d in agreement.differences[:2]:
            ours, theirs = (tables.shorten_device(placed.placement, x) or "nowhere" for x in (d.ours, d.theirs))
            parts.append(f"{placed.title}: {d.node} ({d.op}): simplace {ours}, TensorFlow {theirs}")
    if result.eager_agreement is not None and result.eager_agreement.differences:
        from simplace.views.text import eager_tables

        for d in result.eager_agreement.differences[:2]:
            ours, theirs = (eager_tables.device_text(result.devices, x) for x in (d.ours, d.theirs))
            parts.append(f"{d.node} ({d.op}): simplace {ours}, TensorFlow {theirs}")
    return "; ".join(parts[:3])


def _compare_refusals(agreement: Agreement) -> str:
    ours, theirs = agreement.refusals
    return f"simplace {_describe_outcome(ours)}, TensorFlow {_describe_outcome(theirs)}"


def _describe_outcome(code: str) -> str:
    return f"refuses it with {code}" if code else "places it"


def _describe_target(result: Result) -> str:
    note = f" ({result.devices_note})" if result.devices_note else ""
    return f"{result.target} on {result.devices}{note}"


def _program_table(result: Result) -> Table:
    """List the programs; those alike in all but which GPU they use, such as the copies of a replica's, share a row."""
    rows: dict[tuple[str, ...], list[tuple[str, Counter[str]]]] = {}
    for placed in result.programs:
        ops = tables.count_ops_by_device(placed)
        program = placed.placement.program
        agreement = str(placed.agreement) if placed.agreement is not None else _explain_no_agreement(placed)
        row = (drop_number(placed.title), program.kind, _spread_without_number(ops), agreement)
        rows.setdefault(row, []).append((placed.title, ops))
    shown = tuple(
        (
            found[0][0] if len(found) == 1 else f"{name} ×{len(found)}",
            kind,
            _describe_spread([ops for _, ops in found]),
            *rest,
        )
        for (name, kind, _, *rest), found in rows.items()
    )
    return Table(
        (
            Column("program"),
            Column("kind", flexible=False),
            Column("ops per device", listed=True, wrapped=True),
            Column("agreement", wrapped=True),
        ),
        shown,
    )


def _describe_spread(found: Sequence[Counter[str]]) -> str:
    """Return the ops on each device of programs that are alike."""
    if all(ops == found[0] for ops in found):
        return ", ".join(f"{device} {count:,}" for device, count in sorted(found[0].items()))
    return _spread_without_number(found[0])


def _spread_without_number(ops: Counter[str]) -> str:
    """Return the ops on each device; the only GPU has no number.

    >>> _spread_without_number(Counter({"CPU:0": 2, "GPU:3": 4}))
    'CPU:0 2, one GPU 4'
    """
    gpus = [device for device in ops if device.rpartition("/")[2].startswith("GPU:")]
    shown = {device: "one GPU" if gpus == [device] else device for device in sorted(ops)}
    return ", ".join(f"{shown[device]} {ops[device]:,}" for device in shown)


def _describe_refusal(placement: Placement) -> str:
    from simplace.explain.finding import state_caught
    from simplace.explain.sentences import state_conflict

    refusal = placement.refusal
    assert refusal is not None, "asked only for a refused placement"
    caught_at = placement.program.catches(refusal.code)
    code = ", ".join(filter(None, (refusal.code, state_caught(caught_at))))
    lines = [f"refused: TensorFlow does not place this graph ({code})"]
    lines.append("  " + refusal.message.split("\nColocation Debug Info")[0].splitlines()[0])
    lines += [f"  {line}" for line in state_conflict(placement)]
    return "\n".join(lines)
