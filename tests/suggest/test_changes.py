"""Changes that are joined, and where their lines were before the first of them."""

from __future__ import annotations

import pytest

from simplace.suggestions.changes import (
    KINDS,
    Change,
    LinesOverGpus,
    OtherBatch,
    OtherReduction,
    OtherType,
    ScopeDevice,
    join_changes,
    relocate_change,
)
from simplace.suggestions.suggestion_sentences import describe_change

SCOPE = ScopeDevice(edits=(), at="m.py:3", before='"/CPU:0"', after="/GPU:0", pins={"a": "/GPU:0"})
VARIABLES = ScopeDevice(
    edits=(), at="m.py:3", before='"/GPU:0"', after="/GPU:1", variables=("w",), pins={"b": "/GPU:1"}
)


def test_a_later_change_of_a_scope_takes_the_place_of_the_first():
    joined = join_changes(SCOPE, OtherBatch(edits=(), at="m.py:9", before=8, after=32), VARIABLES)
    assert describe_change(joined) == (
        'm.py:9: take a batch of 32 in place of 8; m.py:3: name "/GPU:1" in place of "/CPU:0", for w'
    )
    assert joined.pins == {"b": "/GPU:1"}
    assert joined.changes_values


def test_of_two_reductions_the_last_counts():
    copied = OtherReduction(edits=(), at="m.py:4", before="", after="ReductionToOneDevice")
    joined = join_changes(copied, OtherReduction(edits=(), at="m.py:4", before=copied.after, after="NcclAllReduce"))
    assert describe_change(joined) == "m.py:4: sum up the gradients by NcclAllReduce in place of the default"


def test_joined_changes_are_flat():
    inner = join_changes(SCOPE, OtherBatch(edits=(), at="m.py:9", before=8, after=32))
    again = join_changes(inner, OtherBatch(edits=(), at="m.py:9", before=32, after=128))
    assert [part.kind for part in again.parts] == ["scope-device", "batch"]
    assert describe_change(again.parts[1]) == "m.py:9: take a batch of 128 in place of 8"


def test_lines_are_told_where_they_are_on_disk():
    change = join_changes(SCOPE, LinesOverGpus(edits=(), at="m.py:5", devices=(("m.py:5", "/GPU:1"),)))
    moved = relocate_change(change, lambda at: at.replace(":", ":1"))
    assert describe_change(moved) == 'm.py:13: name "/GPU:0" in place of "/CPU:0"; compute m.py:15 on /GPU:1'


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_a_sentence(kind: type[Change]):
    assert describe_change.dispatch(kind) is not describe_change.dispatch(object)


def test_another_type_may_change_values():
    change = OtherType(edits=(), at="m.py:2", before="float64", after="float32", places=2)
    assert (change.kind, change.changes_values, SCOPE.changes_values) == ("data-type", True, False)
    assert describe_change(change) == "m.py:2: compute in float32 in place of float64 (2 places)"
