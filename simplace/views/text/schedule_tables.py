"""Tables and sentences of a schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simplace.analysis.memory import Held, MemoryUse
from simplace.analysis.memory_kinds import name_held
from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_findings import find_besides_waits
from simplace.analysis.time_sources import compare_errors, find_cost, find_source
from simplace.costs.estimate import Assumption
from simplace.costs.outcomes import Loop
from simplace.executor.control_flow import Branch
from simplace.executor.step_options import DEFAULT_BATCH
from simplace.explain.finding_lines import format_error
from simplace.views.text.alike_rows import join_alike_rows
from simplace.views.text.cost_sentences import (
    describe_bound,
    describe_sources,
    format_makespan,
    format_uncertain,
    head_with_error,
)
from simplace.views.text.finding_list import describe_finding
from simplace.views.text.left_out_phrases import describe_grappler, describe_left_out
from simplace.views.text.lines import wrap_line
from simplace.views.text.path_tables import path_tables
from simplace.views.text.quantities import format_bytes, format_count, format_duration
from simplace.views.text.sharing_phrases import describe_shared_hardware, describe_sharing_briefly
from simplace.views.text.tables import name_run
from simplace.views.text.traffic_phrases import describe_traffic
from simplace.views.text.verdict import device_time_table, write_verdict
from simplace.views.text.wait_phrases import WAITED_FOR
from viz import Column, Table, to_text
from viz.names import visible

_MANY = 64  # events of a critical path: more are summed up
_NAMED = 4  # tracks that are never used


def write_summary(schedule: Schedule, width: int | None = None) -> str:
    """Return a schedule's makespan, its tracks, critical path, waits and memory, as text."""
    optimized, left_out = describe_grappler(schedule), describe_left_out(schedule)
    sent = describe_traffic(schedule.estimated.graph.traffic)
    parts = [write_headline(schedule), *(wrap_line(one, width) for one in (sent, optimized, left_out) if one)]
    parts += [to_text(join_alike_rows(table), width) for table in (track_table(schedule), device_time_table(schedule))]
    parts += [wrap_line(visible(line), width) for line in describe_shared_hardware(schedule)]
    path = critical_table(schedule)
    if path.rows:
        parts.append(to_text(path, width))
    if len(schedule.critical_path) > _MANY:
        parts += [to_text(table, width) for table in path_tables(schedule) if table.rows]
    held_up = waiting_table(schedule)
    if held_up.rows:
        parts.append(to_text(held_up, width))
    parts.append(to_text(join_alike_rows(memory_table(schedule)), width))
    parts += [f"! {visible(line)}" for line in list_warnings(schedule)]
    notes = [*list_assumptions(schedule), *_describe_unused_batch(schedule)]
    parts += [f"note: {visible(line)}" for line in notes]
    parts.append(wrap_line(f"verdict: {write_verdict(schedule)}", width))
    return "\n\n".join(parts)


def write_headline(schedule: Schedule) -> str:
    """Return the makespan, and its lower bound from the critical path of the graph."""
    trace = schedule.trace
    steps = f" for {len(trace.steps)} steps" if len(trace.steps) > 1 else ""
    line = (
        f"{schedule.placement.program.title}: {format_makespan(schedule)}{steps} "
        f"on the {schedule.executor} executor, "
        f"costs {schedule.estimated.costs}"
    )
    line = visible(line)
    chain = schedule.longest_chain
    if chain is not None:
        line += f"\nlower bound with unlimited threads: {format_uncertain(chain, schedule.uncertainty)}"
    shares = schedule.sources
    if shares:
        line += f"\nthe time of its critical path is {describe_sources(shares)}"
    return line


def track_table(schedule: Schedule) -> Table:
    """Return how busy each thread, stream and link was."""
    rows = tuple(
        (one.name, f"{one.spans:,}", format_uncertain(one.busy, schedule.measure_track_error(i)), f"{one.share:.0%}")
        for i in schedule.trace.track_order
        if (one := schedule.busy_tracks[i]).spans
    )
    idle = [one.name for one in schedule.busy_tracks if not one.spans]
    columns = (Column("track"), *(Column(head, "right", flexible=False) for head in ("events", "busy", "of the step")))
    more = f" and {len(idle) - _NAMED:,} more" if len(idle) > _NAMED else ""
    footer = f"never used: {', '.join(idle[:_NAMED])}{more}" if idle else ""
    return Table(columns, rows, footer=footer)


def critical_table(schedule: Schedule, limit: int = 8) -> Table:
    """Return the longest events of the critical path, in the order of time."""
    spans, graph = schedule.trace.spans, schedule.estimated.graph
    path = schedule.critical_path
    kept = set(sorted(path, key=lambda i: (-spans[i].duration, i))[:limit])
    rows: list[tuple[str, ...]] = []
    for i in path:
        if i not in kept:
            continue
        span = spans[i]
        cost, source = find_cost(schedule.estimated, span), find_source(schedule.estimated, span)
        waited = (
            format_duration(span.start - span.ready) + f" {WAITED_FOR[span.why]}" if span.start > span.ready else "-"
        )
        rows.append(
            (
                format_duration(span.start),
                name_part(graph, span.node),
                schedule.trace.tracks[span.track].name,
                format_uncertain(span.duration, source.error),
                source.source if source.error else "-",
                describe_bound(cost) or describe_sharing_briefly(schedule, i) or "-",
                waited if span.why in WAITED_FOR else "-",
                graph.source_line(span.node) or "-",
            )
        )
    start = Column(head_with_error("start", schedule), "right", flexible=False)
    columns = [start, Column("critical path"), Column("track", flexible=False),
               Column("duration", "right", flexible=False), Column("source", flexible=False),
               Column("bound", below=True), Column(head_with_error("waited", schedule), below=True),
               Column("line", below=True)]  # fmt: skip
    for place in (5, 4):  # nothing ran on a GPU; no time is a prediction
        if all(row[place] == "-" for row in rows):
            rows = [(*row[:place], *row[place + 1 :]) for row in rows]
            del columns[place]
    more = len(path) - len(rows)
    return Table(tuple(columns), tuple(rows), footer=f"and {more:,} shorter events" if more else "")


def waiting_table(schedule: Schedule) -> Table:
    """Return the waiting time by cause, with the op that waited longest for each."""
    rows = []
    for cause, words in WAITED_FOR.items():
        longest = max(schedule.waits, key=lambda wait: wait.by_cause.get(cause, 0), default=None)
        total = schedule.waiting_by_cause[cause]
        if longest is None or not total:
            continue
        count = sum(cause in wait.by_cause for wait in schedule.waits)
        name = name_part(schedule.estimated.graph, longest.node)
        rows.append(
            (
                words,
                format_count(count, "op"),
                format_duration(total),
                f"{name} ({format_duration(longest.by_cause[cause])})",
            )
        )
    summed = Column(head_with_error("sum over ops", schedule), "right", flexible=False)
    columns = (Column("waited", flexible=False), Column("ops", "right", flexible=False), summed,
               Column(head_with_error("longest", schedule), below=True))  # fmt: skip
    return Table(columns, tuple(rows))


def memory_table(schedule: Schedule) -> Table:
    """Return each device's peak memory and the largest tensors at that time."""
    rows = tuple(
        (
            schedule.placement.devices.by_name[use.device].short,
            format_bytes(use.peak),
            format_bytes(use.limit) if use.limit else "-",
            format_duration(use.peak_at),
            ", ".join(_format_held(schedule, held) for held in use.holders[:3]) or "-",
        )
        for use in schedule.memory
    )
    columns = (Column("memory of", flexible=False), Column("peak", "right", flexible=False),
               Column("limit", "right", flexible=False),
               Column(head_with_error("at", schedule), "right", flexible=False),
               Column("largest tensors at the peak", listed=True))  # fmt: skip
    return Table(columns, rows)


def inter_op_table(schedules: Sequence[Schedule]) -> Table:
    """Return the steps of several thread settings, a row each; gains are against the row before."""
    rows = []
    before: Schedule | None = None
    for one in schedules:
        threads = one.threads
        gain = "-" if before is None or not before.trace.makespan else _format_gain(before, one)
        peak = max((use.peak for use in one.memory), default=0)
        label = "caller" if threads.inter_op == -1 else str(threads.inter_op_size)
        waited = format_uncertain(one.waiting_by_cause["thread"], one.uncertainty)
        shown = format_makespan(one)
        rows.append((label, str(threads.intra_op_size), shown, gain, waited, format_bytes(peak)))
        before = one
    heads = ("inter-op", "intra-op", "makespan", "gain", "waited for threads", "peak memory")
    return Table(tuple(Column(head, "right", flexible=False) for head in heads), tuple(rows))


def _format_gain(before: Schedule, after: Schedule) -> str:
    """Return what part of a step's time another one saves, and how far off that is."""
    ratio = after.trace.makespan / before.trace.makespan
    return f"{1 - ratio:+.1%}{format_error(ratio * compare_errors(before.errors, after.errors))}"


def _list_missing_members(schedule: Schedule) -> list[str]:
    """Return the collectives that ran without some of their members: the assumed loops or branches differ there."""
    graph = schedule.estimated.graph
    runs = Counter(span.node for span in schedule.trace.spans if span.kind == "collective")
    lines = []
    for one, members in zip(graph.collectives, graph.members, strict=True):
        missing = [node for node in members if runs[node] < max(runs[other] for other in members)]
        if missing:
            devices = schedule.placement.devices.by_name
            where = ", ".join(devices[graph.nodes[node].device].short for node in missing)
            lines.append(
                f"{one.kind} {graph.nodes[members[0]].name} ran without {where}, whose loops or branches do not reach "
                f"it as assumed; TensorFlow would wait forever (--branch and --trips set what is assumed)"
            )
    return lines


def list_warnings(schedule: Schedule) -> list[str]:
    """Return what goes wrong: memory that runs out, unordered writes, and what devices wait for without need."""
    lines = [describe_finding(one) for one in find_besides_waits(schedule)]
    lines += [_runs_out(schedule, use) for use in schedule.memory if use.runs_out >= 0]
    lines += _list_missing_members(schedule)
    names = schedule.placed.graph.names
    pairs = schedule.unordered_writes
    lines += [
        f"{names[pair.first]} and {names[pair.second]} both write {names[pair.variable]}, and no edge orders them"
        for pair in pairs[:3]
    ]
    if len(pairs) > 3:
        lines.append(f"and {format_count(len(pairs) - 3, 'more pair')} of unordered writes; --json has them all")
    return lines


def list_assumptions(schedule: Schedule) -> list[str]:
    """Return what the simulation assumed."""
    lines = [*_name_step_run(schedule)]
    lines += [_describe_loop(loop) for loop in schedule.loops]
    lines += [_describe_branch(branch) for branch in schedule.flow.branches]
    if schedule.placement.program.is_sized_by_values:
        lines.append("sizes that the graph leaves open follow from integers among the arguments of the first call")
    return lines + [_describe_assumption(one) for one in schedule.estimated.assumptions]


def _describe_unused_batch(schedule: Schedule) -> list[str]:
    """Return that a batch which was asked for changes nothing, where the program says how large all its tensors are."""
    batch = schedule.execution.options.batch
    if batch == DEFAULT_BATCH or any(one.kind == "batch" for one in schedule.estimated.assumptions):
        return []
    return [
        f"--batch {batch:,} changes nothing here: it is for first dimensions that a program leaves open, and this one "
        "leaves none; simplace memory --batch simulates the memory of another batch"
    ]


def _name_step_run(schedule: Schedule) -> list[str]:
    """Return which run of a session was simulated, where it has several."""
    runs, chosen = schedule.placement.program.runs, schedule.run
    one = next((each for each in runs if each.run == chosen), None)
    return [f"a step is the run {name_run(one)}; --run picks another of {len(runs):,}"] if one and len(runs) > 1 else []


def _runs_out(schedule: Schedule, use: MemoryUse) -> str:
    name = name_part(schedule.estimated.graph, use.runs_out)
    short = schedule.placement.devices.by_name[use.device].short
    alive = ", ".join(_format_held(schedule, held) for held in use.alive_then[:3])
    line = schedule.estimated.graph.source_line(use.runs_out)
    at = f" ({line})" if line else ""
    return f"{short} would exceed its {format_bytes(use.limit)} of memory at {name}{at}; live tensors: {alive}"


def _format_held(schedule: Schedule, held: Held) -> str:
    return f"{name_held(schedule, held)} {format_bytes(held.size)}"


def _describe_loop(loop: Loop) -> str:
    how = {
        "given": "as given",
        "observed": "as it ran",
        "read": "derived from its condition",
        "called": "as in the first call; --trips NAME=N sets it",
        "bounded": "the most that its condition allows; --trips NAME=N sets it",
        "bounded as called": "the most that its condition allows in the first call; --trips NAME=N sets it",
        "assumed": "assumed; --trips NAME=N sets it",
    }
    mean = " in the mean" if len(set(loop.by_entry)) > 1 else ""
    return f"the loop {loop.name} runs {format_count(loop.trips, 'time')}{mean} ({how[loop.how]})"


def _describe_branch(branch: Branch) -> str:
    how = {
        "given": "as given",
        "observed": "as it ran",
        "read": "computed from constants and counters",
        "called": "as in the first call; --branch NAME=N sets it",
        "assumed": "assumed; --branch NAME=N sets it",
    }
    each = branch.by_round or branch.by_run
    often, runs = each.count(branch.taken), len(each)
    times = f" {often:,} of {runs:,} times" if often < runs else ""
    taken = f"output {branch.taken} of the condition {branch.predicate} is taken{times}"
    return f"{taken} ({how[branch.how]}; of an If, 1 is the then branch)"


def _describe_assumption(one: Assumption) -> str:
    more = f" and {one.count - 1:,} more" if one.count > 1 else ""
    match one.kind:
        case "batch":
            return f"the unknown first dimension of {one.example}{more} is taken as {one.value}; --batch sets it"
        case "dimension":
            return f"unknown dimensions of {one.example}{more} are taken as {one.value}"
        case "rank":
            return f"the unknown shape of {one.example}{more} is taken as that of its largest input, else as a scalar"
        case "argument":
            return f"the size of {one.example}{more} follows from arguments of the first call"
        case "branch":
            return f"of {one.example}{more}, inside of a call, the first branch is taken (of an If: then)"
    return f"no cost formula for {one.example}{more}: only the bytes it moves are counted"
