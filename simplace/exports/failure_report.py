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
    return [_report_failure(failure) for failure in list_predicted(result)]


def list_predicted(result: Result) -> list[Failure]:
    """List the failures of a result, then the steps that will not fit in the memory of logical GPUs."""
    return [*predict_failures(result), *find_out_of_memory(placed.placement for placed in result)]


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
