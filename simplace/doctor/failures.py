"""All that TensorFlow places and then fails to run: of each placement, and what the running program showed."""

from __future__ import annotations

from collections.abc import Iterator

from simplace.explain.failures import RefusedSetting, UnequalGrowth, find_failures
from simplace.explain.finding import Failure
from simplace.program.observation import PythonFact
from simplace.result import Result

_GROWTH = "Memory growth cannot differ between GPU devices"


def foretell_failures(result: Result) -> Iterator[Failure]:
    """Yield the failures of a result, those of its programs in their order."""
    yield from failures_of_run(result.python)
    for placed in result:
        yield from find_failures(placed.placement)


def failures_of_run(facts: tuple[PythonFact, ...]) -> Iterator[Failure]:
    """Yield what ended the program as it ran, where that is one of the failures that are explained."""
    for fact in facts:
        if fact.kind == "raised":
            yield from _name_failure(fact, facts)


def is_caught(fact: PythonFact, facts: tuple[PythonFact, ...]) -> bool:
    """Return whether the program went on after a setting was refused."""
    return not any(each.kind == "raised" and each.values["error"] == fact.values["error"] for each in facts)


def _name_failure(raised: PythonFact, facts: tuple[PythonFact, ...]) -> Iterator[Failure]:
    error = raised.values["error"]
    refused = [fact for fact in facts if fact.kind == "setting refused" and fact.values["error"] == error]
    if refused:
        values = refused[-1].values
        yield RefusedSetting(refused[-1].at, "", (), error, values["setting"], values["started"])
    elif error == _GROWTH:
        set_at = next((fact.at for fact in facts if fact.kind == "memory growth"), "")
        yield UnequalGrowth(raised.at, "", (), error, set_at)
