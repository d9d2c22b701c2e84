"""What TensorFlow fuses or leaves out where a function that datasets call makes datasets itself."""

from __future__ import annotations

import pytest

from simplace.graph.node_def import FunctionDef
from simplace.lowering.dataset_fusions import fuse_datasets
from tests.lowering.worlds import TABLE, function

OF_DATASETS = {"_tf_data_function": True}
SAME = function("same(a: int64, b: int64) -> c: int64, d: int64", "i = Identity(a)", {"c": "i:output:0", "d": "b"})
OTHER = function("other(a: int64, b: int64) -> c: int64, d: int64", "", {"c": "b", "d": "a"})


def of_datasets(text: str, result: str) -> FunctionDef:
    constants = """\
        one = Const() {dtype=int64, value=number(1)}
        zero = Const() {dtype=int64, value=number(0)}
        all = Const() {dtype=int64, value=number(-1)}
    """
    return function("f(d: variant, n: int64) -> y: variant", constants + text, {"y": result}, attrs=OF_DATASETS)


def fused(text: str, result: str) -> list[str]:
    """Fuse the datasets of a function; list its nodes but for the three constants, then what it returns."""
    made = fuse_datasets(of_datasets(text, result), {"same": SAME, "other": OTHER}, TABLE).function
    nodes = [node for node in made.nodes if node.name not in ("one", "zero", "all")]
    return [*(f"{node.name} = {node.op}({', '.join(node.inputs)})" for node in nodes), made.ret["y"]]


@pytest.mark.parametrize(
    ("node", "is_left_out"),
    [
        ("TakeDataset(d, all:output:0)", True),
        ("TakeDataset(d, one:output:0)", False),
        ("SkipDataset(d, zero:output:0)", True),
        ("SkipDataset(d, n)", False),
        ("RepeatDataset(d, one:output:0)", True),
        ("RepeatDataset(d, all:output:0)", False),
        ("ShardDataset(d, one:output:0, zero:output:0)", True),
        ("ShardDataset(d, n, zero:output:0)", False),
        ('MapDataset(d) {f=fn("same")}', True),
        ('ParallelMapDatasetV2(d, n) {f=fn("same")}', True),
        ('MapDataset(d) {f=fn("other")}', False),
        ('MapDataset(d, n) {f=fn("same"), Targuments=(int64,)}', False),
    ],
)
def test_a_dataset_that_only_hands_on_another_is_left_out(node: str, is_left_out: bool) -> None:
    found = fused(f"x = {node}\nlast = CacheDataset(x:handle:0)\nwait = NoOp(^x)", "last:handle:0")
    rest = ["CacheDataset(d)", "NoOp(^d)"] if is_left_out else ["CacheDataset(x:handle:0)", "NoOp(^x)"]
    assert found[-3:] == [f"last = {rest[0]}", f"wait = {rest[1]}", "last:handle:0"]
    assert len(found) == (3 if is_left_out else 4)


def test_no_ops_that_follow_each_other_all_go() -> None:
    assert fused("x = SkipDataset(d, zero:output:0)\ny = TakeDataset(x:handle:0, all:output:0)", "y:handle:0") == ["d"]


def test_a_batch_is_fused_with_the_map_before_it() -> None:
    text = """
        m = MapDataset(d, n) {f=fn("other"), Targuments=(int64,)}
        b = BatchDatasetV2(m:handle:0, n, zero:output:0)
        p = ParallelMapDatasetV2(b:handle:0, n) {f=fn("other")}
        c = BatchDatasetV2(p:handle:0, one:output:0, zero:output:0)
    """
    assert fused(text, "c:handle:0") == [
        "Const = Const()",
        "MapAndBatchDataset = MapAndBatchDataset(d, n, n, Const:output:0, zero:output:0)",
        "MapAndBatchDataset/_12 = MapAndBatchDataset(MapAndBatchDataset:handle:0, one:output:0, n, zero:output:0)",
        "MapAndBatchDataset/_12:handle:0",
    ]
    made = fuse_datasets(of_datasets(text, "c:handle:0"), {"other": OTHER}, TABLE)
    assert made.made_of == {"MapAndBatchDataset": "m", "MapAndBatchDataset/_12": "p"}


def test_a_shuffle_and_a_repeat_stay_beside_what_they_are_fused_to() -> None:
    text = """
        s = ShuffleDatasetV3(d, n, one:output:0, zero:output:0, g:handle:0)
        g = DummySeedGenerator()
        r = RepeatDataset(s:handle:0, n)
    """
    assert fused(text, "r:handle:0") == [
        "s = ShuffleDatasetV3(d, n, one:output:0, zero:output:0, g:handle:0)",
        "g = DummySeedGenerator()",
        "r = RepeatDataset(ShuffleAndRepeatDataset:handle:0, n)",
        "ShuffleAndRepeatDataset = ShuffleAndRepeatDatasetV2(d, n, one:output:0, zero:output:0, n, g:handle:0)",
        "ShuffleAndRepeatDataset:handle:0",
    ]


@pytest.mark.parametrize(
    "text",
    [
        """m = MapDataset(d) {f=fn("other"), use_unbounded_threadpool=True}
        b = BatchDatasetV2(m:handle:0, n, zero:output:0)""",
        "b = BatchDatasetV2(d, n, zero:output:0)",
        # TensorFlow refuses this one: the map cannot be deleted.
        """m = MapDataset(d) {f=fn("other")}
        o = BatchDatasetV2(m:handle:0, n, zero:output:0)
        b = ZipDataset(m:handle:0, o:handle:0)""",
    ],
)
def test_what_is_not_fused_stays_as_it_is(text: str) -> None:
    before = of_datasets(text, "b:handle:0")
    made = fuse_datasets(before, {"other": OTHER}, TABLE)
    assert (made.function, made.made_of) == (before, {})


def test_only_functions_that_datasets_call_are_optimized() -> None:
    plain = function("f(d: variant, n: int64) -> y: variant", "x = SkipDataset(d, n)", {"y": "x:handle:0"})
    assert fuse_datasets(plain, {}, TABLE).function is plain
