"""Write findings as JSON-ready data, the dearest first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplace.explain.finding import Finding
from simplace.explain.finding_lines import format_finding


def report_findings(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings with their rule, level, line and nodes, a sentence, and what they cost a step."""
    return [
        {
            "rule": one.rule,
            "level": one.severity,
            "title": one.title,
            "source": one.source,
            "nodes": list(one.nodes),
            "cost": {
                "copies": one.cost.copies,
                "bytes": one.cost.size,
                "seconds": one.cost.seconds,
                "error": round(one.cost.error, 4),
                "sources": list(one.cost.sources),
            },
            "text": format_finding(one),
        }
        for one in findings
    ]
