"""Why ops that TensorFlow placed are not in a step, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from simplace.analysis.schedule import Schedule
from simplace.partition.graph_partition import LeftOut
from simplace.views.text.quantities import format_count

_OF_MANY: dict[LeftOut, str] = {
    "folded": "depend on constants alone", "merged": "compute what another computes", "unused": "are needed by nothing",
}  # fmt: skip
WHY_LEFT_OUT: dict[LeftOut, str] = {
    "folded": "not in a step: it depends on constants alone, and TensorFlow computes it once, before the first",
    "merged": "not in a step: another op computes the same, and TensorFlow merges the two",
    "unused": "not in a step: nothing needs it, and TensorFlow removes it",
}


def describe_left_out(schedule: Schedule) -> str:
    """Return how many ops and copies of a program are not in a step, and why; "" where all are."""
    graph = schedule.estimated.graph
    copies = len(graph.copies) - len({graph.nodes[send].copy for send in graph.receiver})
    return write_left_out(schedule.left_out.values(), len(schedule.placed.graph.op_ids), copies)


def describe_grappler(schedule: Schedule) -> str:
    """Return that a step's graph is as Grappler makes it, where that was asked for, and how many ops it has."""
    if not schedule.execution.options.grappler:
        return ""
    if not schedule.placement.program.has_grappler:
        return "not optimized by TensorFlow's Grappler: the program turned it off"
    if schedule.placement.program.kind == "compiled":
        return "not optimized by TensorFlow's Grappler: XLA compiles all of it"
    ids, names = schedule.placement.graph.ids, schedule.placed.graph.names
    made = sum(names[i] not in ids for i in schedule.placed.graph.op_ids)
    count = format_count(len(names) - 2, "op")
    return f"optimized by TensorFlow's Grappler: {count}, {made:,} of them under names of its own"


def write_left_out(left_out: Collection[LeftOut], ops: int, copies: int) -> str:
    r"""Return how many of a number of ops are left out, with how many of the copies that it sends, and why.

    >>> print(write_left_out(["folded", "unused", "folded"], 12, 1).replace(": ", ":\n"))
    leaves out 3 of 12 ops and 1 of the copies, as TensorFlow does before the first step:
    2 depend on constants alone, 1 is needed by nothing
    """
    if not left_out:
        return ""
    counts = Counter(left_out)
    sent = f" and {copies:,} of the copies" if copies else ""
    why = ", ".join(
        f"{counts[one]:,} {text if counts[one] > 1 else _to_singular(text)}"
        for one, text in _OF_MANY.items()
        if counts[one]
    )
    return f"leaves out {len(left_out):,} of {ops:,} ops{sent}, as TensorFlow does before the first step: {why}"


def _to_singular(text: str) -> str:
    verb, _, rest = text.partition(" ")
    return f"{'is' if verb == 'are' else verb + 's'} {rest}"
