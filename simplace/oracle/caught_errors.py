"""Settle, for each program and eager op of a run, which errors the program catches, by how the run went on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]


def settle_handlers(events: Sequence[Event], *, is_script: bool) -> Iterator[Event]:
    """Yield events, those of programs and eager ops with the handlers that the end of the run bears out.

    A refusal that did not end the program was caught by something, such as a library or a context manager; one that
    ended it was not, whatever clauses there are. What opens a file catches nothing.
    """
    uncaught = "\n".join(event["text"] for event in events if event["kind"] == "uncaught")
    for event in events:
        handlers = event.get("handlers")
        if handlers is None:
            yield event
        else:
            yield {**event, "handlers": _settle(handlers, event["refused"], uncaught) if is_script else {}}


def _settle(handlers: Mapping[str, str], refused: Mapping[str, str] | None, uncaught: str) -> Mapping[str, str]:
    if refused is None:
        return handlers
    if refused["message"] not in uncaught:
        return {refused["code"]: "", **handlers}
    return {code: at for code, at in handlers.items() if code != refused["code"]}
