"""`python -m tests.failures [NAME ...]`: measure all programs, or those whose names hold one of the words.

`--record` keeps the counts of all programs in docs/agreement-failures.json, and writes the page of agreement anew.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence

from simplace.kernels.installed import installed_version
from tests.agreement.failure_records import load_counts, save_counts
from tests.agreement.table import FAILURES, write_pages
from tests.failures.measure import Measured, count_failures, measure_cases, precision, recall
from tests.failures.read_cases import read_cases


def main(arguments: list[str]) -> int:
    """Print a line for each program, those that differ with their texts, then recall and precision."""
    parser = argparse.ArgumentParser(prog="python -m tests.failures", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="NAME", help="only programs whose names hold one of these")
    parser.add_argument("--record", action="store_true", help="keep the counts of all programs")
    options = parser.parse_args(arguments)
    words = options.words
    if words and options.record:
        parser.error("--record is for all programs")
    cases = [case for case in read_cases() if not words or any(word in case.name for word in words)]
    measured = measure_cases(cases)
    for each in measured:
        is_right = each.fails == each.is_told and each.is_as_declared
        print(f"{'ok  ' if is_right else 'DIFF'} {each.case.name}: {'fails' if each.fails else 'runs'}, "
              f"predicted {', '.join(each.rules) or 'nothing'}")  # fmt: skip
        if not is_right or words:
            print(f"     TensorFlow: {' '.join(each.truth.split())[:600]}")
            print(f"     declared: {', '.join(each.case.rules) or 'sound'}; told: {' / '.join(each.errors)[:600]}")
    failing = sum(each.fails for each in measured)
    print(f"{failing} failing, {len(measured) - failing} sound: recall {recall(measured):.1%}, "
          f"precision {precision(measured):.1%}")  # fmt: skip
    if options.record:
        _record_counts(measured)
    return int(any(each.fails != each.is_told for each in measured))


def _record_counts(measured: Sequence[Measured]) -> None:
    version = installed_version()
    assert version is not None, "the programs were run under TensorFlow"
    counts = count_failures(measured, datetime.date.today().isoformat())
    save_counts(FAILURES, {**load_counts(FAILURES), version: counts})
    write_pages()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
