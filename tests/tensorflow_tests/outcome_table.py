"""The table of TensorFlow's own tests as a section of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.tensorflow_tests.run_both import Comparison

TITLE = "## TensorFlow's own tests"
_ABOUT = """\
Files of tests in TensorFlow's repository, each run as a script: by `python`, and by `simplace check --calls all` on
emulated GPUs. A test that asks for a GPU runs in the second run alone, one that wants none in the first. Written by
`python -m tests.tensorflow_tests FOLDER --page docs/guides.md`.
"""
_SHOWN = 12
_CAUSES = {  # by the beginning of a test's name
    "DenseHashTableOpTest.testStringToResource": (
        "TensorFlow itself refuses a table on a CPU with a default on a GPU, as it does on two logical CPUs"
    ),
    "TimelineTest.testTimelineGpu": "the trace of a run is that of the CPU which computes it, without streams of a GPU",
}
_COLUMNS = ("file", "tests passed by `python`", "under simplace", "nodes", "eager ops", "fail under simplace only")


def write_section(results: Mapping[str, Comparison], page: Path) -> None:
    """Write the table to the end of a page, in place of one that is there."""
    before = page.read_text(encoding="utf-8").partition(TITLE)[0].rstrip()
    text = f"{before}\n\n{TITLE}\n\n{_ABOUT}\n{write_table(results)}{_tell_causes(results)}"
    page.write_text(text, encoding="utf-8")


def write_table(results: Mapping[str, Comparison]) -> str:
    """Return a row a file, and one of sums."""
    rows = [_tell_row(name, [result]) for name, result in sorted(results.items())]
    rows.append(_tell_row(f"all {len(results)}", list(results.values())))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (_COLUMNS, ["---"] * len(_COLUMNS), *rows)) + "\n"


def tell_result(name: str, result: Comparison) -> str:
    """Return lines for the terminal."""
    how = "alike" if result.is_alike else "DIFFERS"
    took = f"{result.seconds:.0f} s (plain {result.plain_seconds:.0f} s)"
    said = f"{name}: {how}, {took}, {result.observed_passed} tests pass (plain {result.passed}); {result.verdict}"
    worse = [f"  fails under simplace only: {test}" for test in result.worse[:_SHOWN]]
    worse += [f"  and {len(result.worse) - _SHOWN} more"] if len(result.worse) > _SHOWN else []
    return "\n".join([said, *worse, *([f"  {result.failure}"] if result.failure else [])])


def _tell_causes(results: Mapping[str, Comparison]) -> str:
    """Return a list of the tests that fail under simplace only, each with its cause."""
    tests = sorted(test for result in results.values() for test in result.worse)
    if not tests:
        return ""
    causes = {test: next((why for name, why in _CAUSES.items() if test.startswith(name)), "unknown") for test in tests}
    return "\nWhy tests fail under simplace only:\n\n" + "".join(f"- `{test}`: {causes[test]}\n" for test in tests)


def _tell_row(name: str, results: list[Comparison]) -> list[str]:
    passed, observed = sum(each.passed for each in results), sum(each.observed_passed for each in results)
    worse = sum(len(each.worse) for each in results)
    early = [each.failure.replace("|", "/")[:120] for each in results if each.failure] if len(results) == 1 else []
    agreed = (_sum_counts(results, what) for what in ("nodes", "eager ops"))
    return [name, str(passed), str(observed), *agreed, "; ".join([*([str(worse)] if worse else []), *early])]


def _sum_counts(results: Iterable[Comparison], what: str) -> str:
    counts = [each.counts.get(what, (0, 0)) for each in results]
    total = sum(of for _, of in counts)
    return f"{sum(same for same, _ in counts)} of {total}" if total else ""
