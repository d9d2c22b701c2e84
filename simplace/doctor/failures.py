"""All that TensorFlow places and then fails to run: of each placement, and what the running program showed."""

from __future__ import annotations

from collections.abc import Iterator

from simplace.explain.copy_tensor import read_copy_error
from simplace.explain.eager_findings import find_refused_ops
from simplace.explain.failures import NotCopied, RefusedOp, RefusedSetting, UnequalGrowth, find_failures
from simplace.explain.finding import Failure
from simplace.program.observation import PythonFact
from simplace.result import Result

_NO_DEVICE = "Could not satisfy device specification"  # as eager/context.cc has it
_GROWTH = "Memory growth cannot differ between GPU devices"


def predict_failures(result: Result) -> Iterator[Failure]:
    """Yield the failures of a result, those of its programs in their order."""
    known = _list_known(result)
    yield from _list_new(result, known)
    yield from known


def list_failures_of_run(result: Result) -> list[Failure]:
    """List what ended the program, unless it is a failure of one of its placements."""
    if not any(fact.kind == "raised" for fact in result.python):
        return []
    return _list_new(result, _list_known(result))


def _list_known(result: Result) -> list[Failure]:
    refused = [] if result.eager is None else list(find_refused_ops(result.eager))
    return [*refused, *(failure for placed in result for failure in find_failures(placed.placement))]


def _list_new(result: Result, known: list[Failure]) -> list[Failure]:
    told = {(type(failure), failure.error) for failure in known}
    return [each for each in failures_of_run(result.python) if (type(each), each.error) not in told]


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
    elif copied := read_copy_error(error):
        yield NotCopied(raised.at, "", (), copied.error, copied.content, copied.device)
    elif _NO_DEVICE in error:
        yield RefusedOp(raised.at, "", (), error.splitlines()[0], "")
    elif error == _GROWTH:
        set_at = next((fact.at for fact in facts if fact.kind == "memory growth"), "")
        yield UnequalGrowth(raised.at, "", (), error, set_at)
