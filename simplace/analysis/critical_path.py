"""The critical path of the last step: the chain of spans in which each ended the wait of the next."""

from __future__ import annotations

from simplace.executor.trace import Trace


def critical_path(trace: Trace) -> tuple[int, ...]:
    """Return the spans of the path by time; the last is the span that ends last (of several, the first recorded).

    Spans without length are left out. The time between two spans of the path went into hand-offs and polling.
    """
    if not trace.spans:
        return ()
    at = max(range(len(trace.spans)), key=lambda i: (trace.spans[i].end, -i))
    step = trace.spans[at].step
    path: list[int] = []
    seen: set[int] = set()
    while at >= 0 and at not in seen and trace.spans[at].step == step:
        seen.add(at)
        if trace.spans[at].duration:
            path.append(at)
        at = trace.spans[at].cause
    return tuple(reversed(path))
