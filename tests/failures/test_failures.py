"""Failures after placement: the table of programs, and a few of each kind beside TensorFlow itself."""

from __future__ import annotations

import pytest

from simplace.doctor.silent_failures import ALL_FINDINGS
from tests.failures.measure import measure_cases, precision, recall
from tests.failures.read_cases import read_cases

ASKED = (
    "xla/variable of another scope", "xla/inside a while loop", "xla/called where the variable is",
    "compile/a loop variable that grows", "compile/a tensor array", "copies/a dataset in a branch",
    "copies/the branch called on the CPU", "copies/strings under a scope", "settings/growth of one of two",
    "settings/growth of all", "devices/no kernel without soft placement", "collectives/a reduction alone",
    "collectives/a reduction of two",
)  # fmt: skip


def test_the_table_has_forty_of_each() -> None:
    cases = read_cases()
    assert len({case.name for case in cases}) == len(cases)
    assert len([case for case in cases if case.rules]) >= 40
    assert len([case for case in cases if not case.rules]) >= 40
    assert {rule for case in cases for rule in case.rules} <= {kind.rule for kind in ALL_FINDINGS}


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_what_is_predicted_is_what_tensorflow_does() -> None:
    """`python -m tests.failures` measures all of the table."""
    measured = measure_cases([case for case in read_cases() if case.name in ASKED])
    assert [each.case.name for each in measured if not each.is_as_declared] == []
    assert (len(measured), recall(measured), precision(measured)) == (len(ASKED), 1.0, 1.0)
