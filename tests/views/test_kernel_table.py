"""Data types against device types: rows join, DEFAULT kernels count everywhere, host memory is named."""

import pytest

from simplace.graph.dtypes import DataType
from simplace.kernels.op_kernels import kernel_rows
from simplace.kernels.registry import Kernel, KernelTable, OpDef
from simplace.views.text.kernel_table import kernel_table, lacking_notes, xla_note

COMPILED = """
import tensorflow as tf
for op, call in {
    "MatMul": lambda x: tf.linalg.matmul([x], [x], transpose_b=True),
    "Where": lambda x: tf.where(x > 0),
    "Unique": lambda x: tf.unique(x),
    "AsString": lambda x: tf.strings.as_string(x),
    "CropAndResize": lambda x: tf.image.crop_and_resize(tf.reshape(x, [1, 2, 2, 1]), [x], [0], [2, 2]),
    "SparseTensorDenseMatMul": lambda x: tf.raw_ops.SparseTensorDenseMatMul(
        a_indices=[[0, 0]], a_values=[1.0], a_shape=[1, 4], b=tf.reshape(x, [4, 1])),
}.items():
    try:
        tf.function(call, jit_compile=True)(tf.ones([4]))
        print(op, "takes")
    except tf.errors.InvalidArgumentError as error:
        assert op in str(error), error
        print(op, "refuses")
"""

FLOATS = frozenset({DataType.DT_FLOAT, DataType.DT_HALF})
INT = frozenset({DataType.DT_INT32})
OP = OpDef("Foo", attr_types={"T": "type", "U": "type"})


def rows(*kernels):
    table = KernelTable.from_records("test", [OP], kernels)
    return kernel_table("Foo", kernel_rows(table, "Foo"), "test")


def test_data_types_with_the_same_answers_share_a_row():
    found = rows(
        Kernel("Foo", "CPU", constraints=(("T", FLOATS | INT),)), Kernel("Foo", "GPU", constraints=(("T", FLOATS),))
    )
    assert [column.title for column in found.columns] == ["data types", "GPU", "CPU"]
    assert found.rows == (("T=float32, float16", "yes", "yes"), ("T=int32", "-", "yes"))


def test_both_attributes_join():
    both = (("T", FLOATS), ("U", FLOATS))
    assert rows(Kernel("Foo", "GPU", constraints=both)).rows == (("T=float32, float16 U=float32, float16", "yes", "-"),)


def test_a_kernel_without_constraints_counts_for_every_row():
    found = rows(Kernel("Foo", "CPU"), Kernel("Foo", "GPU", constraints=(("T", INT),), priority=2))
    assert found.rows == (("T=int32", "yes (priority 2)", "yes"), ("all others", "-", "yes"))


def test_a_default_kernel_stands_in_where_a_device_has_none():
    found = rows(Kernel("Foo", "DEFAULT", host_memory=frozenset({"x"})), Kernel("Foo", "CPU"))
    assert found.rows == (("all", "default (host: x)", "yes"),)


def test_the_nearest_data_type_is_named():
    table = KernelTable.from_records(
        "test", [OP], [Kernel("Foo", "GPU", constraints=(("T", FLOATS),)), Kernel("Foo", "CPU")]
    )
    assert lacking_notes(table, "Foo", DataType.DT_INT32) == ("no GPU kernel with T=int32; the nearest is float32",)
    assert lacking_notes(table, "Foo", DataType.DT_HALF) == ()


@pytest.mark.parametrize(
    ("op", "note"),
    [
        ("MatMul", "XLA has a kernel: jit_compile supports it"),
        ("AsString", "XLA has no kernel: jit_compile does not support it"),
        ("Switch", ""),
    ],
)
def test_whether_xla_compiles_an_op_is_said(op, note):
    assert xla_note(KernelTable.shipped("2.21.0"), op) == note


@pytest.mark.tf
def test_jit_compile_takes_and_refuses_what_the_note_says(warm):
    done = warm.run_tensorflow(COMPILED, COLUMNS="120", TF_CPP_MIN_LOG_LEVEL="3")
    said = dict(line.split() for line in done.stdout.splitlines())
    table = KernelTable.shipped("2.21.0")
    assert len(said) == 6
    assert said == {op: "takes" if "supports" in xla_note(table, op) else "refuses" for op in said}
