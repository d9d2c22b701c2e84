"""Make a program that differs as small as it can be while it still differs.

Works on lines, since every statement of a generated program is one. All edits of a round are tried one by one in one
process, then those that keep the difference are put together, half of them if not all can be, and so on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simplace.machine.machine import Machine
from tests.agreement import runner

_MADE = re.compile(r"(\w+) = made\((tf\.\w+), (?!lambda: unknown)")
_SEVERAL = re.compile(r"\(?([\w, ]+?),?\)? = several\(\[([\w., ]+)\]")
_VALUE = re.compile(r"\b[tcxa]\d+\b")
_MOST_TRIALS = 120

Differs = Callable[[dict[str, str]], set[str]]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the line `at`: `text` None drops it with all below it, "" takes it away and moves what is below out."""

    at: int
    text: str | None


def shrink(source: str, machine: Machine, rounds: int = 40) -> str:
    """Return the smallest program found that differs from TensorFlow like `source` does."""

    def differs(programs: dict[str, str]) -> set[str]:
        found: set[str] = set()
        while programs:
            batch = runner.run(programs, machine)
            found.update(outcome.program for outcome in batch.outcomes if outcome.differences)
            programs = {name: programs[name] for name in batch.unreached[1:]}  # the first of them ended the process
        return found

    return shrink_with(ast.unparse(ast.parse(source)), differs, rounds)  # a line a statement


def shrink_with(source: str, differs: Differs, rounds: int = 40) -> str:
    """Shrink by any question about programs.

    >>> source = "def program(name):\\n    with a:\\n        t1 = b\\n    t2 = c\\n    t3 = d\\n"
    >>> print(shrink_with(source, lambda ps: {n for n, text in ps.items() if "t2" in text}))
    def program(name):
        t2 = c
    <BLANKLINE>
    """
    for _ in range(rounds):
        smaller = _round(source, differs)
        if smaller is None:
            return source
        source = smaller
    return source


def _round(source: str, differs: Differs) -> str | None:
    lines = source.splitlines()
    edits = _edits(lines)[:_MOST_TRIALS]
    trials = {f"p{i}": _apply(lines, [edit]) for i, edit in enumerate(edits)}
    good = [int(name[1:]) for name in differs(trials)] if trials else []
    if not good:
        return None
    good.sort(key=lambda i: len(trials[f"p{i}"]))
    together = {}
    share = len(good)
    while share > 1:
        together[f"p{share}"] = _apply(lines, [edits[i] for i in good[:share]])
        share //= 2
    found = [together[name] for name in differs(together)] if together else []
    return min([*found, trials[f"p{good[0]}"]], key=len)


def _edits(lines: Sequence[str]) -> list[Edit]:
    edits = []
    for at, line in enumerate(lines):
        if at == 0:
            continue
        text = line.strip()
        if text != "pass" and not text.startswith("return"):
            edits.append(Edit(at, None))
        if text.startswith("with "):
            edits.append(Edit(at, ""))
        edits += [Edit(at, other) for other in _simpler(text)]
    return edits


def _simpler(text: str) -> list[str]:
    """Return simpler statements that define the same names.

    >>> for simpler in _simpler("t3 = made(tf.int32, lambda: t1 + t2)"):
    ...     print(simpler)
    t3 = made(tf.int32, lambda: unknown(tf.int32))
    t3 = made(tf.int32, lambda: t1)
    t3 = made(tf.int32, lambda: t2)
    >>> _simpler("return [t1, t2]")
    ['return []', 'return [t1]', 'return [t2]']
    """
    if made := _MADE.match(text):
        names = dict.fromkeys(_VALUE.findall(text[made.end() :]))
        start = f"{made[1]} = made({made[2]}, lambda: "
        simpler = [f"{start}unknown({made[2]}))", *(f"{start}{name})" for name in names)]
        return [one for one in simpler if len(one) < len(text) or "unknown" not in text]
    if several := _SEVERAL.match(text):
        return [f"{several[1]}, = {', '.join(f'unknown({dtype.strip()})' for dtype in several[2].split(','))},"]
    if text.startswith("return [") and "," in text:
        return ["return []", *(f"return [{name}]" for name in dict.fromkeys(_VALUE.findall(text)))]
    return []


def _apply(lines: Sequence[str], edits: Sequence[Edit]) -> str:
    """Apply edits to the lines of a program; a block that becomes empty gets a `pass`."""
    by_line: dict[int, Edit] = {}
    for edit in edits:
        by_line.setdefault(edit.at, edit)
    result: list[tuple[int, str]] = []
    dropped = 1 << 30
    moved: list[int] = []
    for at, line in enumerate(lines):
        depth = (len(line) - len(line.lstrip())) // 4
        if depth > dropped:
            continue
        dropped = 1 << 30
        moved = [outer for outer in moved if outer < depth]
        chosen = by_line.get(at)
        if chosen is not None and chosen.text is None:
            dropped = depth
            continue
        if chosen is not None and chosen.text == "":
            moved.append(depth)
            continue
        result.append((depth - len(moved), chosen.text if chosen and chosen.text else line.strip()))
    return "\n".join(_with_passes(result)) + "\n"


def _with_passes(lines: Sequence[tuple[int, str]]) -> list[str]:
    written = []
    for (depth, text), following in zip(lines, [*lines[1:], (0, "")], strict=True):
        written.append("    " * depth + text)
        if text.endswith(":") and following[0] <= depth:
            written.append("    " * (depth + 1) + "pass")
    return written
