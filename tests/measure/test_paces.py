"""How fast the machine was during each of some steps, told by made-up times of kernels."""

from __future__ import annotations

import pytest

from simplace.measure.child.paces import find_paces


def test_a_step_whose_kernels_take_longer_ran_on_a_slower_machine() -> None:
    quick, slow = {"a": 200.0, "b": 5000.0, "c": 90.0}, {"a": 360.0, "b": 9000.0, "c": 162.0}
    assert find_paces([quick] * 8 + [slow] * 2, [400.0] * 8 + [720.0] * 2) == pytest.approx([400.0] * 8 + [720.0] * 2)


def test_the_gauges_say_how_fast_that_is_but_not_which_step_was_slow() -> None:
    quick, slow = {"a": 100.0, "b": 100.0}, {"a": 400.0, "b": 400.0}
    assert find_paces([quick, slow], [300.0, 300.0]) == pytest.approx([150.0, 600.0])


def test_most_nodes_decide_and_those_that_are_not_in_all_steps_do_not() -> None:
    one = {"a": 100.0, "b": 100.0, "c": 100.0, "branch": 7.0}
    other = {"a": 100.0, "b": 100.0, "c": 900.0, "zero": 0.0}
    assert find_paces([one, other], [300.0, 300.0]) == pytest.approx([300.0, 300.0])


def test_steps_without_a_node_in_common_are_as_gauged() -> None:
    assert find_paces([{"a": 1.0}, {"b": 1.0}], [300.0, 500.0]) == [300.0, 500.0]
    assert find_paces([], []) == []
