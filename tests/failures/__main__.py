"""`python -m tests.failures [NAME ...]`: measure all programs, or those whose names hold one of the words."""

from __future__ import annotations

import sys

from tests.failures.measure import measure_cases, precision, recall
from tests.failures.read_cases import read_cases


def main(words: list[str]) -> int:
    """Print a line for each program, those that differ with their texts, then recall and precision."""
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
    return int(any(each.fails != each.is_told for each in measured))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
