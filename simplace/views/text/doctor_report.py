"""The doctor's report in text: findings with their line, errors first, then what costs a step most."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.doctor.advice import advise_on_finding
from simplace.explain.finding import Finding, name_page
from simplace.explain.placement_findings import is_dear
from simplace.views.text.finding_list import describe_cost
from simplace.views.text.lines import wrap_line
from simplace.views.text.quantities import format_count
from viz.names import visible

_LEVELS = ("error", "warning", "note")


def doctor_report(findings: Sequence[Finding], head: str, width: int | None = None) -> str:
    """Return the findings, at most `width` cells wide."""
    count = format_count(len(findings), "finding") if findings else "nothing found"
    ordered = sorted(findings, key=_rank)
    told = [visible(f"{head}: {count}"), *(_write_finding(finding, width) for finding in ordered)]
    if ordered:
        told.append(wrap_line(f"what it means: simplace explain --rule {name_page(ordered[0].rule)}", width))
    return "\n\n".join(told)


def _rank(finding: Finding) -> tuple[bool, bool, bool, int]:
    """Return where a finding belongs: errors, then what costs much, then warnings, notes, and what is harmless."""
    return finding.severity != "error", finding.is_harmless, not is_dear(finding), _LEVELS.index(finding.severity)


def _write_finding(finding: Finding, width: int | None) -> str:
    said = advise_on_finding(finding)
    parts = [("", said.what), ("costs: ", describe_cost(finding.cost)), ("error: ", said.error), ("why: ", said.why),
             ("do: ", said.instead), ("see: ", name_page(finding.rule))]  # fmt: skip
    at = f" at {finding.source}" if finding.source else ""
    program = f" in {finding.program}" if finding.program else ""
    lines = [visible(f"{finding.severity}: {finding.rule}{at}{program}")]
    lines += [wrap_line(f"  {label}{text}", width, len(label)) for label, text in parts if text]
    return "\n".join(lines)
