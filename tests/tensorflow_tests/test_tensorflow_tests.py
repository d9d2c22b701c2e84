"""What the tool for TensorFlow's own tests reads in two outputs, and the table that it writes."""

from __future__ import annotations

from pathlib import Path

from tests.tensorflow_tests.outcome_table import TITLE, tell_result, write_section
from tests.tensorflow_tests.run_both import FileRun, compare_runs

PLAIN = FileRun(
    0, 4.0, "[ RUN      ] A.one\n[       OK ] A.one\n[       OK ] A.two\n[  SKIPPED ] A.gpu\n[  FAILED  ] A.bad\n"
)
OBSERVED = FileRun(
    1,
    9.0,
    "[       OK ] A.one\n[  FAILED  ] A.gpu\n[  FAILED  ] A.bad\n\n"
    "agrees with TensorFlow 2.21.0: 5/5 nodes, 6/7 eager ops the same, until the program exited with an error\n"
    "copies: 0/0 as in TensorFlow's partition graphs\n",
)


def test_what_fails_or_is_not_reached_under_simplace_alone() -> None:
    found = compare_runs(PLAIN, OBSERVED)
    assert (found.passed, found.observed_passed, found.worse) == (2, 1, ("A.gpu", "A.two"))
    assert found.counts == {"nodes": (5, 5), "eager ops": (6, 7)}
    assert tell_result("a_test.py", found).splitlines() == [
        "a_test.py: DIFFERS, 9 s (plain 4 s), 1 tests pass (plain 2); agrees with TensorFlow 2.21.0: 5/5 nodes, "
        "6/7 eager ops the same, until the program exited with an error",
        "  fails under simplace only: A.gpu",
        "  fails under simplace only: A.two",
    ]


def test_a_check_without_a_verdict_has_failed() -> None:
    crashed = compare_runs(PLAIN, FileRun(2, 1.0, "[       OK ] A.one\n[       OK ] A.two\nsimplace: no\n"))
    assert (crashed.worse, crashed.failure, crashed.is_alike) == ((), "simplace: no", False)
    idle = compare_runs(PLAIN, FileRun(2, 1.0, "[       OK ] A.one\n[       OK ] A.two\nnothing can be placed\n"))
    assert (idle.failure, idle.is_alike) == ("", True)


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Guides\n\nThe first table.\n\n{TITLE}\n\nold\n")
    found = compare_runs(PLAIN, OBSERVED)
    write_section({"a_test.py": found, "b_test.py": found}, page)
    text = page.read_text()
    assert text.startswith(f"# Guides\n\nThe first table.\n\n{TITLE}\n\nFiles of tests")
    assert "old" not in text
    assert text.splitlines()[-12:] == [
        "| file | tests passed by `python` | under simplace | nodes | eager ops | fail under simplace only |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a_test.py | 2 | 1 | 5 of 5 | 6 of 7 | 2 |",
        "| b_test.py | 2 | 1 | 5 of 5 | 6 of 7 | 2 |",
        "| all 2 | 4 | 2 | 10 of 10 | 12 of 14 | 4 |",
        "",
        "Why tests fail under simplace only:",
        "",
        *["- `A.gpu`: unknown"] * 2,
        *["- `A.two`: unknown"] * 2,
    ]
