"""Functions that tf.data fuses and splits: the names of their nodes, arguments and results."""

from __future__ import annotations

import pytest

from simplace.compare.fused_functions import fits_log
from simplace.graph.node_def import FunctionDef, GraphDef
from simplace.lowering.dataset_fusions import fuse_datasets
from simplace.lowering.fusion_utils import (
    FunctionLibrary,
    combine_functions,
    compose_functions,
    join_predicates,
)
from simplace.lowering.make_deterministic import split_for_determinism
from simplace.lowering.rewrite_utils import find_switched
from tests.lowering.worlds import TABLE, function

OF_DATASETS = {"_tf_data_function": True}
FIRST = function("first(x: float) -> y: float, z: float", "a = Neg(x)\nb = Exp(a:y:0, ^a)", {"y": "b:y:0", "z": "x"})
SECOND = function(
    "second(x: float, w: float) -> y: float", "a = AddV2(x, w)\nc = Neg(a:z:0, ^a, ^x)", {"y": "c:y:0"},
    control_ret=("a",),
)  # fmt: skip
POSITIVE = function("positive(x: float) -> y: bool", "a = IsFinite(x)", {"y": "a:y:0"})
SMALL = function("small(x: float) -> y: bool", "a = IsNan(x)", {"y": "a:y:0"})


def library(*functions: FunctionDef) -> FunctionLibrary:
    return FunctionLibrary({each.name: each for each in functions}, len(functions))


def written(made: FunctionDef) -> list[str]:
    nodes = [f"{node.name} = {node.op}({', '.join(node.inputs)})" for node in made.nodes]
    args = ", ".join(arg.name for arg in made.inputs)
    return [*nodes, f"{args} -> {', '.join(made.ret[result.name] for result in made.outputs)}"]


def test_a_composed_function_takes_what_the_first_returns() -> None:
    functions = library(FIRST, SECOND)
    assert compose_functions(FIRST, SECOND, "fused", functions) == "fused"
    # TensorFlow renames no control input, so that of `c` is the first function's `a`.
    assert written(functions.added["fused"]) == [
        "a = Neg(x)", "b = Exp(a:y:0, ^a)", "a/_2 = AddV2(b:y:0, x)", "c = Neg(a/_2:z:0, ^a, ^b:y:0)", "x -> c:y:0",
    ]  # fmt: skip
    assert functions.made_of["fused"]["a/_2"] == ("second", "a")
    assert [arg.name for arg in functions.added["fused"].outputs] == ["y/_1"]


def test_a_combined_function_also_returns_what_the_first_does() -> None:
    functions = library(FIRST, SECOND)
    assert combine_functions(FIRST, SECOND, "fused", functions) == "fused"
    assert written(functions.added["fused"])[-1] == "x -> b:y:0, x, c:y:0"
    assert [arg.name for arg in functions.added["fused"].outputs] == ["y", "z", "y/_1"]


def test_the_second_of_two_predicates_runs_where_the_first_holds() -> None:
    functions = library(POSITIVE, SMALL)
    assert join_predicates(POSITIVE, SMALL, "positive", functions) == "positive/_3"
    made = functions.added["positive/_3"]
    assert written(made) == ["a = IsFinite(x)", "cond = If(a:y:0, x)", "x -> cond:output:0"]
    assert made.nodes[-1].attrs["then_branch"].name == "small"
    assert made.nodes[-1].attrs["else_branch"].name == "false_predicate"
    assert written(functions.added["false_predicate"]) == ["Const = Const()", "fake_arg0 -> Const:output:0"]


@pytest.mark.parametrize(
    "fuse", [compose_functions, combine_functions, join_predicates], ids=["compose", "combine", "join"]
)
def test_functions_that_do_not_fit_or_have_other_attributes_stay(fuse) -> None:
    functions = library(FIRST, SECOND)
    other = function("other(x: float) -> y: float", "", {"y": "x"}, attrs={"_noinline": True})
    wide = function("wide(x: float, w: float, v: float) -> y: float", "", {"y": "x"})
    assert fuse(FIRST, wide, "fused", functions) == fuse(other, other, "fused", functions) == ""
    assert functions.added == {}


def test_random_ops_and_what_they_need_are_split_off() -> None:
    drawn = function(
        "f(x: float, captured: float) -> y: float",
        """\
        shape = Const()
        r = RandomUniform(shape:output:0) {dtype=float}
        s = AddV2(x, r:output:0)
        t = Mul(s:z:0, captured, ^r)
        """,
        {"y": "t:z:0"},
    )
    functions = library(drawn)
    assert split_for_determinism(drawn, 1, functions, TABLE)
    assert written(functions.added["f_first_split"]) == [
        "shape = Const()", "r = RandomUniform(shape:output:0)", "x, captured -> x, r:output:0",
    ]  # fmt: skip
    assert written(functions.added["f_second_split"]) == [
        "s = AddV2(input_0, input_1)", "t = Mul(s:z:0, captured)", "input_0, input_1, captured -> t:z:0",
    ]  # fmt: skip


def test_a_function_without_stateful_ops_is_not_split() -> None:
    functions = library(SECOND)
    assert not split_for_determinism(SECOND, 0, functions, TABLE)
    loop = function(
        "f(x: float) -> y: float", "r = RandomUniform(x) {dtype=float}\ns = Switch(r:output:0, x)", {"y": "x"}
    )
    assert not split_for_determinism(loop, 0, library(loop), TABLE)


def of_datasets(text: str, result: str) -> FunctionDef:
    return function("f(d: variant, n: int64) -> y: variant", text, {"y": result}, attrs=OF_DATASETS)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('b = MapDataset(a:handle:0) {f=fn("one")}', ["map_fusion_nodes/a/b = MapDataset(d)"]),
        ('b = ParallelMapDatasetV2(a:handle:0, n) {f=fn("one")}', None),
        ('b = MapDataset(a:handle:0, n) {f=fn("one")}', None),
        ('b = MapDataset(a:handle:0) {f=fn("one"), use_unbounded_threadpool=True}', None),
    ],
)
def test_maps_are_fused_where_both_are_of_one_kind_and_capture_nothing(text: str, made: list[str] | None) -> None:
    one = function("one(x: float) -> y: float", "a = Neg(x)", {"y": "a:y:0"})
    before = of_datasets(f'a = MapDataset(d) {{f=fn("one")}}\n{text}', "b:handle:0")
    found = fuse_datasets(before, {"one": one}, TABLE, ["map_fusion"])
    assert written(found.function)[:-1] == (made or written(before)[:-1])
    assert list(found.added) == (["map_fusion_funcs/one/one"] if made else [])


def test_options_are_told_by_the_datasets_that_were_logged() -> None:
    one = function("one(x: float) -> y: float", "a = Neg(x)", {"y": "a:y:0"})
    before = of_datasets('a = MapDataset(d) {f=fn("one")}\nb = MapDataset(a:handle:0) {f=fn("one")}', "b:handle:0")
    graph = GraphDef((), {"f": before, "one": one}, 0)
    assert find_switched(graph, "f", 1, {"a": "MapDataset", "b": "MapDataset"}, TABLE) == ((), "")
    fused = {"map_fusion_nodes/a/b": "MapDataset"}
    assert find_switched(graph, "f", 1, fused, TABLE) == (("map_fusion",), "")
    assert find_switched(graph, "f", 1, {**fused, "c": "MapDataset"}, TABLE) == ((), "map_fusion")


def test_a_log_fits_with_what_branches_became_and_without_calls() -> None:
    text = 'a = Neg(x)\ncond = If(a) {then_branch=fn("one")}\np = PartitionedCall(a) {f=fn("one")}'
    made = function("f(x: float) -> y: float", text, {"y": "a:y:0"})
    assert fits_log(made, {"x", "a", "cond", "y_RetVal", "cond/switch_pred/_2", "Func/cond/then/_0/input/_3", "p/b"})
    assert not fits_log(made, {"x", "a", "cond", "cond/_6", "y_RetVal"})
    assert not fits_log(made, {"x", "a", "y_RetVal"})
