"""Kernel tables: what the shipped one holds, argument types, merging, bad files."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import pytest

from simplace.errors import TargetError
from simplace.graph import protos
from simplace.graph.dtypes import DataType
from simplace.kernels import table_file
from simplace.kernels.difference import write_difference
from simplace.kernels.kernel_lookup import SYMBOLIC
from simplace.kernels.registry import ArgSpec, AttrError, Kernel, KernelTable, OpDef, argument_types, with_defaults

FLOAT, INT32, STRING, RESOURCE = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_STRING, DataType.DT_RESOURCE


def test_the_shipped_table_names_its_build() -> None:
    assert KernelTable.versions()[-1] == "2.21.0"
    table = KernelTable.shipped()
    assert table.name == "2.21.0 (captured from a Linux build with CUDA)"
    assert len(table.op_names()) == 1910


def test_the_shipped_table_holds_every_registration() -> None:
    table = KernelTable.shipped()
    count: dict[str, int] = {}
    for op in table.op_names():
        for kernel in table.kernels(op):
            count[kernel.device_type] = count.get(kernel.device_type, 0) + 1
    assert {kind: count[kind] for kind in ("CPU", "GPU", "DEFAULT")} == {"CPU": 9276, "GPU": 5017, "DEFAULT": 1176}


def test_an_op_with_its_defaults_and_kernels() -> None:
    table = KernelTable.shipped()
    tile = table.op("Tile")
    assert tile == OpDef(
        name="Tile",
        inputs=(ArgSpec("input", type_attr="T"), ArgSpec("multiples", type_attr="Tmultiples")),
        outputs=(ArgSpec("output", type_attr="T"),),
        attr_types={"T": "type", "Tmultiples": "type"},
        defaults={"Tmultiples": INT32},
        allowed={"Tmultiples": (INT32, DataType.DT_INT64)},
    )
    assert with_defaults(tile, {"T": FLOAT}) == {"T": FLOAT, "Tmultiples": INT32}
    wanted = (("T", frozenset({FLOAT})), ("Tmultiples", frozenset({INT32})))
    assert Kernel("Tile", "GPU", "", 0, wanted, frozenset({"multiples"})) in table.kernels("Tile")
    assert table.op("NoSuchOp") is None
    assert table.kernels("NoSuchOp") == ()


@pytest.mark.parametrize(
    ("op", "attrs", "types"),
    [
        ("MatMul", {"T": FLOAT}, ((1, 1), (1,))),
        ("AddN", {"T": INT32, "N": 3}, ((3, 3, 3), (3,))),
        ("IdentityN", {"T": (FLOAT, STRING)}, ((1, 7), (1, 7))),
        ("AssignAdd", {"T": FLOAT}, ((101, 1), (101,))),
        ("RefMerge", {"T": FLOAT, "N": 2}, ((101, 101), (101, 3))),
        ("StatefulPartitionedCall", {"Tin": (), "Tout": (RESOURCE,)}, ((), (20,))),
        ("Split", {"T": FLOAT, "num_split": 2}, ((3, 1), (1, 1))),
    ],
)
def test_argument_types_expand_lists_and_references(op: str, attrs: dict[str, object], types: object) -> None:
    op_def = KernelTable.shipped().op(op)
    assert op_def is not None
    assert argument_types(op_def, attrs) == types


def test_a_missing_attribute_is_named() -> None:
    op_def = KernelTable.shipped().op("MatMul")
    assert op_def is not None
    with pytest.raises(AttrError) as caught:
        argument_types(op_def, {})
    assert str(caught.value) == "a node of op MatMul lacks the attribute 'T', of type type"


def test_an_extra_table_comes_on_top() -> None:
    extra = KernelTable.from_records("mine", [OpDef("Mine")], [Kernel("Mine", "GPU"), Kernel("MatMul", "TPU")])
    table = KernelTable.shipped().with_extra(extra)
    assert table.name.endswith("+ mine")
    assert table.op("Mine") == OpDef("Mine")
    assert table.op("MatMul") == KernelTable.shipped().op("MatMul")
    assert table.kernels("MatMul")[-1] == Kernel("MatMul", "TPU")
    assert "Mine" in table.op_names()


def test_no_table_for_another_major_version() -> None:
    with pytest.raises(TargetError) as caught:
        KernelTable.shipped("1.15.0")
    there = "2.16.2, 2.17.1, 2.18.1, 2.19.1, 2.20.0, 2.21.0"
    assert str(caught.value) == f"no kernel table for TensorFlow 1.15.0; there is one for {there}"


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("2.16.2", "2.16.2 (captured from a Linux build with CUDA)"),
        ("2.18", "2.18.1 (captured from a Linux build with CUDA)"),
        ("2.18.0", "2.18.1 (captured from a Linux build with CUDA), the nearest to 2.18.0"),
        ("2.9", "2.16.2 (captured from a Linux build with CUDA), the nearest to 2.9"),
        ("2.40.1", "2.21.0 (captured from a Linux build with CUDA), the nearest to 2.40.1"),
    ],
)
def test_the_nearest_table_says_so(asked: str, name: str) -> None:
    assert KernelTable.shipped(asked).name == name


def test_each_version_has_its_own_kernels() -> None:
    tables = [KernelTable.shipped(version) for version in KernelTable.versions()]
    counts = {table.version: len(table.op_names()) for table in tables}
    assert counts == {
        "2.16.2": 1891, "2.17.1": 1902, "2.18.1": 1899, "2.19.1": 1899, "2.20.0": 1909, "2.21.0": 1910,
    }  # fmt: skip
    assert [table.version for table in tables if table.op("DecodeJxl")] == ["2.21.0"]


def test_a_difference_is_read_back_as_the_whole_table(tmp_path: Path) -> None:
    whole = table_file.read_table_file(table_file.shipped_path("2.16.2"))
    again = tmp_path / "again"
    path = tmp_path / "whole"
    ops = protos.message_class("OpList")(op=whole.ops.values())
    kernels = protos.sealed_class("KernelList")(kernel=[one for ones in whole.kernels.values() for one in ones])
    about = {key: whole.about[key] for key in ("name", "version")}
    table_file.write_table_file(path, about, ops.SerializeToString(), kernels.SerializeToString())
    write_difference(path, "2.21.0", again)
    read = table_file.read_table_file(again)
    assert (read.ops, read.kernels) == (whole.ops, whole.kernels)
    assert again.stat().st_size < path.stat().st_size / 2


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("about.json", "{}")
    for name in ("text", "zip"):
        with pytest.raises(TargetError, match="is not a kernel table"):
            KernelTable.load(tmp_path / name)
    with pytest.raises(TargetError, match="cannot be read: No such file"):
        KernelTable.load(tmp_path / "missing")


def placeable(table: KernelTable, op: str) -> Counter[Kernel]:
    """Count the kernels without XLA's symbolic ones, which TensorFlow registers with the first op it runs."""
    return Counter(kernel for kernel in table.kernels(op) if not kernel.device_type.endswith(SYMBOLIC))


@pytest.mark.tf
def test_capture_writes_what_is_shipped(tmp_path: Path) -> None:
    import tensorflow as tf

    from simplace.oracle.child.capture import write_kernel_table

    write_kernel_table(tmp_path / "captured")
    captured = KernelTable.load(tmp_path / "captured")
    if (
        tf.version.VERSION not in KernelTable.versions()
        or captured.name != KernelTable.shipped(tf.version.VERSION).name
    ):
        pytest.skip(f"the shipped table is of another build than {captured.name}")
    shipped = KernelTable.shipped(tf.version.VERSION)
    assert captured.op_names() == shipped.op_names()
    for op in shipped.op_names():
        assert captured.op(op) == shipped.op(op)
        assert placeable(captured, op) == placeable(shipped, op)
