"""Write the failures that are predicted as JSON-ready data."""

from __future__ import annotations

from typing import Any

from simplace.analysis.memory_failures import find_out_of_memory
from simplace.doctor.advice import advise_on_finding
from simplace.doctor.failures import predict_failures
from simplace.explain.finding import Failure
from simplace.result import Result


def report_failures(result: Result) -> list[dict[str, Any]]:
    """Return what is placed and then fails, with TensorFlow's words and what to write instead."""
    found = [*predict_failures(result), *find_out_of_memory(placed.placement for placed in result)]
    return [_report_failure(failure) for failure in found]


def _report_failure(failure: Failure) -> dict[str, Any]:
    said = advise_on_finding(failure)
    return {
        "rule": failure.rule,
        "program": failure.program or None,
        "source": failure.source,
        "nodes": list(failure.nodes),
        "text": said.what,
        "error": failure.error,
        "caught_at": failure.caught_at,
        "why": said.why,
        "instead": said.instead,
    }
