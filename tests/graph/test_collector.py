"""Python's collector while a graph is built: what it does afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from simplace.graph.collector import paused_collector


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    was_on, were_frozen = gc.isenabled(), gc.get_freeze_count()
    yield
    gc.unfreeze()
    (gc.enable if was_on else gc.disable)()
    if were_frozen:
        gc.freeze()


def build() -> list[list[int]]:
    gc.enable()
    with paused_collector():
        assert not gc.isenabled()
        return [[] for _ in range(100_000)]


def is_old(kept: list[list[int]]) -> bool:
    return any(one is kept for one in gc.get_objects(generation=2))


def test_what_was_made_is_old_and_can_be_collected_one_day() -> None:
    gc.unfreeze()
    kept = build()
    assert (is_old(kept), gc.get_freeze_count(), gc.isenabled()) == (True, 0, True)


def test_what_others_froze_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    kept = build()
    assert (is_old(kept), gc.get_freeze_count()) == (False, frozen)


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with paused_collector():
        pass
    assert not gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="no graph"), paused_collector():
        raise ValueError("no graph")
    assert gc.isenabled()
