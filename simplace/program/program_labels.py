"""Labels that tell the programs of one run from each other, in the words of their author."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from simplace.program.program import Program

_NUMBER = re.compile(r" #\d+$")


def label_programs(programs: Sequence[Program]) -> list[str]:
    """Return a label for each program, no two alike: its name, or what it is to its user; then its line, then a number.

    The line is that of the first call. A name whose programs are all first called at one line needs none.

    >>> from simplace.graph.node_def import GraphDef
    >>> def step(**known):
    ...     return Program("step", "function", GraphDef((), {}), **known)
    >>> label_programs([step(at="a:3"), step(at="a:4"), step(at="a:4"), step(role="fit, train step", at="a:1")])
    ['step (a:3)', 'step (a:4)', 'step (a:4) #2', 'fit, train step (a:1)']
    """
    lines: dict[str, set[str]] = {}
    for program in programs:
        if not program.known_as:
            lines.setdefault(program.name, set()).add(_find_line(program))
    bases = [_with_line(program, is_needed=len(lines.get(program.name, ())) > 1) for program in programs]
    seen: Counter[str] = Counter()
    labels = []
    for base in bases:
        seen[base] += 1
        labels.append(base if seen[base] == 1 else f"{base} #{seen[base]}")
    return labels


def drop_number(label: str) -> str:
    """Return a label without the number that tells it from others alike.

    >>> drop_number("step (a.py:4) #2"), drop_number("step (a.py:4)")
    ('step (a.py:4)', 'step (a.py:4)')
    """
    return _NUMBER.sub("", label)


def _find_line(program: Program) -> str:
    return program.caller.at if program.caller is not None else program.at


def _with_line(program: Program, *, is_needed: bool) -> str:
    at, known = _find_line(program), program.known_as
    if known:
        return f"{known} ({at})" if at else known
    return f"{program.name} ({at})" if at and is_needed else program.name
