"""Which scopes are opened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplace.views.figures.scopes import OTHERS, insert_stems, open_scopes

PATHS = st.lists(st.lists(st.sampled_from(["a", "a_1", "a_2", "b", "conv2d_7"]), min_size=1, max_size=4), max_size=30)


def opened(names: list[str], limit: int, devices: list[str] | None = None) -> list[str]:
    paths = {i: (*insert_stems(name.split("/")), f"#{i}") for i, name in enumerate(names)}
    on = dict(enumerate(devices or ["GPU:0"] * len(names)))
    return ["/".join(step for step in path if step[-1] != "*") for path in open_scopes(paths, on, limit).values()]


@given(PATHS, st.integers(1, 20), st.integers(1, 3))
def test_boxes_stay_within_the_limit(names: list[list[str]], limit: int, count: int) -> None:
    paths = {i: (*insert_stems(parts), f"#{i}") for i, parts in enumerate(names)}
    devices = {i: f"GPU:{i % count}" for i in paths}
    keys = open_scopes(paths, devices, limit)
    assert keys.keys() == paths.keys()
    assert len({(devices[i], key) for i, key in keys.items()}) <= max(limit, count)
    assert all(paths[i][: len(key)] == key or key == (OTHERS,) for i, key in keys.items())


def test_largest_scope_is_opened_first() -> None:
    assert opened(["big/x", "big/y", "big/z", "small/x", "small/y"], 4) == [
        "big/x/#0", "big/y/#1", "big/z/#2", "small", "small",
    ]  # fmt: skip


def test_small_siblings_of_a_kind_stay_together() -> None:
    names = [f"net/transpose_{i}/{op}" for i in range(8) for op in ("perm", "out")]
    assert set(opened(names, 40)) == {"net"}
    assert len(set(opened([f"net/layer_{i}/{op}" for i in range(3) for op in ("mul", "add")], 40))) == 6


def test_scope_of_repeated_names_stays_closed() -> None:
    names = [f"adam/{op}_{i}" for i in range(20) for op in ("Mul", "Sub", "Sqrt")]
    assert set(opened(names, 40)) == {"adam"}


def test_scope_is_opened_on_all_devices_or_none() -> None:
    names = [f"tower/{part}" for part in "wxyz"] * 2
    devices = ["GPU:0"] * 4 + ["GPU:1"] * 4
    assert set(opened(names, 7, devices)) == {"tower"}
    assert len(set(opened(names, 8, devices))) == 8
