"""Which programs do nothing but give variables their first values."""

from __future__ import annotations

import pytest

from simplace.pipeline import place_program
from simplace.result import Placed
from tests.lowering.worlds import DEVICES, TABLE, session_program

VARIABLE = """
    c = Const() {dtype=float, value=number(1)}
    w = VariableV2() {dtype=float, shape=dims(), container=b"", shared_name=b""}
    assign = Assign(w, c) {T=float, use_locking=True, validate_shape=True}
    read = Identity(w)
    again = Identity(read)
"""


@pytest.mark.parametrize(
    ("more", "is_initializer"),
    [
        ("", True),
        ("known = IsVariableInitialized(w) {dtype=float}", True),
        ("y = Neg(c)", True),
        ("y = Neg(again)", False),
        ("y = AssignAdd(w, c) {use_locking=True}", False),
        ("y = PlaceholderWithDefault(c) {dtype=float, shape=dims()}", False),
    ],
)
def test_what_computes_with_a_variable_is_no_initializer(more: str, is_initializer: bool) -> None:
    placement = place_program(session_program(VARIABLE + more), DEVICES, TABLE)
    assert placement.refusal is None, placement.refusal
    assert Placed(placement).is_initializer is is_initializer
