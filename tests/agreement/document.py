"""Write the records of all TensorFlow versions as Markdown: one page of sums, and a page of programs per version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.agreement.failure_records import load_counts
from tests.agreement.record import CALLED, EAGER, Record, Run
from tests.failures.measure import FailureCounts

_INTRODUCTION = """\
# Agreement with TensorFlow

simplace and TensorFlow place every program of the samples and of the corpus on emulated machines, and what both do is
compared node by node. Written by `python -m tests.agreement`, which compares with the installed version. The last two
columns are of programs that fail after their placement, and of similar ones that run: how many of the first are
predicted to fail ([predicted failures](failures.md)), and how many of the second (`python -m tests.failures --record`).
"""
_KEY = """\
A cell counts the nodes that both place alike, out of all that either places. **Bold**: something differs. r:
TensorFlow refused a placement, and simplace refused it with the same status and the same message; then only the nodes
that were placed before count. Empty: the program does not place that graph on that machine. Each machine has one CPU;
soft and hard are soft placement on and off. "copies" counts the copies between devices over the whole row: those that
simplace and TensorFlow's partition graphs have alike (ends, type, consumers, what they wait for), out of all. "s" is
what comparing the whole script took, in seconds.
"""
_CAUSES = (
    'A node with more than eight edges, where TensorFlow takes "the first" of them: it keeps them in a hash set of '
    "addresses, so its own choice changes from run to run (graph/edgeset.h). Seen for the IdentityN that stays behind "
    "for a lowered loop or branch, where lists of strings and of numbers meet. A random program counts as such only if "
    "TensorFlow, asked 16 times, places each of its nodes as simplace does at least once.",
    "What XLA compiles, which TensorFlow does not place: the device of the call is compared. A dash stands in the "
    "columns of functions of datasets, calls that are not inlined and eager ops where a record is older than they are.",
    "MultiWorkerMirroredStrategy with more than one worker: TensorFlow's collective ops and its coordination service "
    "wait, before anything is placed, until each worker has begun the same program in a process of its own (there is "
    "one eager context in a process, and it is one worker). Each worker places its own functions on its own devices: "
    "that is compared with one worker.",
    "What a program loads of a SavedModel that it saved on a cluster: a function saves there, emulated GPUs compute "
    "nothing, and so there is no file.",
    "Ops that end TensorFlow's process while the graph is built (a check in the op's shape function), and the rare "
    "program on which it hangs: there is no placement.",
    "A graph that Python changes after the session has it, such as the gradient of a call made between two runs: "
    'TensorFlow refuses the new graph before it places it ("Connecting to invalid output").',
    "Frames made by hand of the raw ops Enter, Exit, NextIteration and LoopCond: random ones are no valid loop, so the "
    "random programs make loops with tf.while_loop (both versions), map_fn and scan only.",
    "Branches in functions of datasets that Grappler optimizes as it does other functions, where a graph reaches one "
    "that no dataset calls, such as the factory of a one-shot iterator (grappler/optimizers/meta_optimizer.cc): they "
    "are counted as not compared.",
    "On GPUs, functions of a session's datasets that TensorFlow instantiates with the first element (behind a shuffle, "
    "for a generator, in the function of a flat_map), or that capture a GPU's variable: an emulated session takes no "
    "element. They are counted as not compared.",
    "Where the program turns on map_fusion, map_and_filter_fusion and filter_fusion together, and two functions of one "
    "pipeline have maps and filters that are fused: of what is made under one name TensorFlow keeps one, and some "
    "lines of its log on that are not accounted for, as the summary says.",
    "Calls that are not inlined before the placement: of a function on a GPU, whose kernel an emulated one does not "
    "run; of one that Grappler specializes for the call, because a result is unused or an argument constant; and, but "
    "for `check`, which turns Grappler off, of one that Grappler inlines once the graph is placed, as it does in "
    "sessions and in functions of datasets: it places the nodes without a line of the log "
    "(grappler/optimizers/function_optimizer.cc). They are counted as not compared, each for its reason.",
    "Failures after placement, such as inputs from different frames: the placement is compared, the failure is not.",
    "The order of hash maps in messages (node attributes, kernels, op types, possible devices), and the numbers "
    "TensorFlow gives to device names.",
)
_RANDOM_HEADS = {
    "date": "date", "seed": "first seed", "programs": "programs", "placements": "placements", "refused": "refused",
    "nodes": "nodes", "differing": "differ", "in_a_row": "agree in a row", "by_chance": "by chance",
    "ended": "ended TensorFlow",
}  # fmt: skip


def summary_page(records: Sequence[Record], random: Path, failures: Path, folder: str) -> str:
    """Write the page of sums; `folder` is that of the other pages.

    `random` is the file of the random programs' counts, `failures` that of the predicted failures.
    """
    heads = (
        "TensorFlow", "compared", "programs", "placements", "refused", "nodes", "of them in datasets and calls",
        "eager ops", "copies", "cells that differ", "failures predicted", "false alarms",
    )  # fmt: skip
    counts = load_counts(failures)
    lines = [_INTRODUCTION, _row(heads), "|" + "---|" * len(heads)]
    for record in records:
        dates = sorted({run.date for run in record.all_runs()})
        cells = record.cells()
        programs = {
            (script, name)
            for script, runs in record.runs.items()
            for run in runs.values()
            for name in run.cells
            if name not in (CALLED, EAGER)
        }
        eager = record.cells(lambda row: row == EAGER)
        placed = record.cells(lambda row: row != EAGER)
        called = record.cells(lambda row: row == CALLED)
        page = f"[{record.tensorflow}]({folder}/{record.tensorflow}.md)"
        lines.append(_row((
            page, " to ".join(dict.fromkeys((dates[0], dates[-1]))), len(programs),
            sum(cell.placements for cell in placed), sum(cell.refused for cell in cells),
            sum(cell.total for cell in placed), sum(cell.total for cell in called) or "-",
            sum(cell.total for cell in eager) or "-", sum(cell.copies for cell in cells),
            sum(bool(cell.differing) for cell in cells), *_failure_cells(counts.get(record.tensorflow)),
        )))  # fmt: skip
    lines += ["", *_random_lines(random), "## Not compared", "", *(f"- {cause}" for cause in _CAUSES)]
    return "\n".join(lines) + "\n"


def _failure_cells(counts: FailureCounts | None) -> tuple[str, str]:
    if counts is None:
        return "-", "-"
    return f"{counts.predicted} of {counts.failing}", f"{counts.false_alarms} of {counts.sound}"


def version_page(record: Record) -> str:
    """Write the page of one version's programs: a table for the scripts of each set of columns."""
    lines = [f"# Agreement with TensorFlow {record.tensorflow}", "", _KEY]
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for script, runs in record.runs.items():
        by_columns.setdefault(_known_columns(record, tuple(runs)), []).append(script)
    for columns, scripts in by_columns.items():
        lines += [_row(("script", "program", *columns, "copies", "s")), "|" + "---|" * (len(columns) + 4)]
        lines += [line for script in scripts for line in _script_lines(record, script, columns)]
        lines.append("")
    ends = [
        f"- {script} ({name}): {_quote_code(run.end)}"
        for script, runs in record.runs.items()
        for name, run in runs.items()
        if run.end
    ]
    if ends:
        lines += ["Scripts that did not run to their end:", "", *ends, ""]
    return "\n".join(lines)


def _quote_code(text: str) -> str:
    """Return a text as code: in an error's words, brackets would be links to pages."""
    return "`" + text.replace("`", "'") + "`"


def _known_columns(record: Record, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the largest set of columns of any script that holds these: a script half done stays with the others."""
    sets = (tuple(runs) for runs in record.runs.values() if set(names) <= set(runs))
    return max(sets, key=len)


def _script_lines(record: Record, script: str, columns: Sequence[str]) -> Iterator[str]:
    runs = record.runs[script]
    programs = dict.fromkeys(program for run in runs.values() for program in run.cells)
    seconds = sum(run.seconds for run in runs.values())
    for place, program in enumerate(programs):
        cells = [runs[name].cells.get(program, "") if name in runs else "" for name in columns]
        yield _row((script, program, *cells, _copies(runs, program), "" if place else f"{seconds:.0f}"))


def _copies(runs: Mapping[str, Run], program: str) -> str:
    cells = [run.cells[program] for run in runs.values() if program in run.cells]
    same, total = sum(cell.copies_same for cell in cells), sum(cell.copies for cell in cells)
    return f"{same}/{total}" if same == total else f"**{same}/{total}**"


def _random_lines(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    yield from ("## Random programs", "")
    yield from ("`python -m tests.agreement random --record` ran these, seeds in a row from the first one:", "")
    yield _row(tuple(_RANDOM_HEADS.values()))
    yield "|" + "---|" * len(_RANDOM_HEADS)
    rows = json.loads(path.read_text(encoding="utf-8"))
    for one in rows:
        yield _row(tuple(one.get(key, "") for key in _RANDOM_HEADS))
    yield from ("", f"Of the last of these, {_in_a_row(rows):,} in a row agree.", "")


def _in_a_row(rows: Sequence[Mapping[str, int]]) -> int:
    """Count the programs since the last one that differs, over all runs.

    >>> _in_a_row([{"in_a_row": 5, "differing": 0}, {"in_a_row": 2, "differing": 1}, {"in_a_row": 4, "differing": 0}])
    6
    """
    total = 0
    for row in reversed(rows):
        total += row["in_a_row"]
        if row["differing"]:
            break
    return total


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
