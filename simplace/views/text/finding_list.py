"""Findings in lines, each with what it costs a step, the dearest first; what is harmless shares the last one."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.explain.finding import Finding, StepCost, cite_page
from simplace.explain.finding_lines import format_finding
from simplace.explain.placement_findings import is_folded
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.quantities import format_count, format_total_bytes


def describe_findings(findings: Sequence[Finding]) -> list[str]:
    """Return findings as lines of text with their pages, in order; what is harmless shares the last one."""
    folded = [cite_page(format_finding(one), one) for one in findings if is_folded(one)]
    lines = [cite_page(describe_finding(one), one) for one in findings if not is_folded(one)]
    return [*lines, *([f"harmless: {'; '.join(folded)}"] if folded else [])]


def describe_finding(finding: Finding) -> str:
    """Return a finding in one line, with what it costs."""
    cost = describe_cost(finding.cost)
    return f"{format_finding(finding).removesuffix('.')} - {cost}" if cost else format_finding(finding)


def describe_cost(cost: StepCost) -> str:
    """Return what a finding costs a step, "" where that is nothing, or not known.

    >>> costs = StepCost(3, 4096, 2e-5, 0.25, ("guessed",)), StepCost(0, 1 << 20), StepCost(seconds=1e-3)
    >>> [describe_cost(cost) for cost in costs]
    ['3 copies, 4 KiB, 20 µs ± 25% (guessed) a step', '1 MiB more to send a step', '1 ms a step']
    >>> describe_cost(StepCost(2, 8, unknown=1)), describe_cost(StepCost(1, unknown=1))
    ('2 copies, ≥ 8 B a step', '1 copy, unknown size a step')
    """
    parts = [format_count(cost.copies, "copy")] if cost.copies else []
    known = [cost.size] if cost.size else []
    size = format_total_bytes([*known, *[None] * min(cost.unknown, 1)])
    parts += [f"{size}{'' if cost.copies else ' more to send'}"] if known or cost.unknown else []
    sources = f" ({', '.join(cost.sources)})" if cost.sources else ""
    parts += [format_uncertain(cost.seconds * 1e9, cost.error) + sources] if cost.seconds else []
    return f"{', '.join(parts)} a step" if parts else ""
