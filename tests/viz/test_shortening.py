"""Texts below each other are shortened to a width, and different ones stay different."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from viz.shortening import fit_all, fit_lists

_NAMES = st.lists(
    st.lists(st.sampled_from(["model", "dense", "dense_1", "MatMul", "行列積", "x"]), max_size=8).map("/".join),
    max_size=9,
)


@given(texts=_NAMES, cells=st.integers(1, 60))
def test_no_text_is_wider_than_asked(texts: list[str], cells: int) -> None:
    assert all(cell_len(text) <= cells for text in fit_all(texts, cells))


@given(texts=_NAMES, cells=st.integers(8, 60))
def test_different_texts_stay_different(texts: list[str], cells: int) -> None:
    shown = fit_all(texts, cells)
    assert len(set(shown)) == len(set(texts))


_LISTS = st.lists(
    st.lists(st.sampled_from(["MatMul", "VarHandleOp", "a/b/行列積", "x"]), max_size=5).map(", ".join), max_size=6
)


@given(texts=_LISTS, cells=st.integers(1, 40))
def test_no_list_is_wider_than_asked(texts: list[str], cells: int) -> None:
    assert all(cell_len(text) <= cells for text in fit_lists(texts, cells))


@given(texts=_LISTS, cells=st.integers(19, 40))
def test_a_list_has_whole_things_and_counts_the_others(texts: list[str], cells: int) -> None:
    for text, shown in zip(texts, fit_lists(texts, cells), strict=True):
        *things, last = shown.split(", ")
        if last.endswith(" more"):
            assert text.split(", ")[: len(things)] == things
            assert last == f"{len(text.split(', ')) - len(things)} more"
        else:
            assert shown == text


def test_the_scope_of_a_single_name_gives_way_first() -> None:
    assert fit_all(["StatefulPartitionedCall/Add_2:0"] * 2, 20) == ["StatefulPar…/Add_2:0"] * 2


def test_a_shared_scope_gives_way_first() -> None:
    assert fit_all(
        ["gradients/encoder/layer_1/attention/MatMul", "gradients/encoder/layer_1/attention/Softmax"], 20
    ) == [
        "gradients/en…/MatMul",
        "gradients/e…/Softmax",
    ]


def test_of_alike_names_the_difference_is_shown() -> None:
    names = [f"a_layer_with_a_long_name_{number}/convolution/Conv2DBackpropFilter" for number in (1, 2)]
    assert fit_all(names, 16) == ["…ng_name_1/conv…", "…ng_name_2/conv…"]


def test_names_too_alike_are_numbered() -> None:
    names = ["a" * 30 + "b" * 30 + "a" * 30, "a" * 30 + "c" * 30 + "a" * 30, "a" * 20 + "b" * 40 + "a" * 30]
    assert fit_all(names, 9) == ["aaa…aaa…1", "aaa…aaa…2", "…aaaabbb…"]
