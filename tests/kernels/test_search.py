"""The kernel search: keys, constraints, priorities, the DEFAULT device type, memory types."""

from __future__ import annotations

import pytest

from simplace.devices.device_name import DeviceName
from simplace.graph.dtypes import DataType
from simplace.kernels.kernel_lookup import (
    Found,
    KernelSearchError,
    NearestDtype,
    find_kernel,
    memory_types,
    nearest_dtype,
    search_kernels,
    supported_device_types,
)
from simplace.kernels.registry import ArgSpec, AttrError, Kernel, KernelTable, OpDef

FLOAT, HALF, INT32, INT64 = DataType.DT_FLOAT, DataType.DT_HALF, DataType.DT_INT32, DataType.DT_INT64
OP = OpDef("Op", (ArgSpec("x", type_attr="T"),), (ArgSpec("y", type_attr="T"),), {"T": "type"}, {"U": FLOAT})


def on(device_type: str, *types: int, priority: int = 0, label: str = "", attr: str = "T") -> Kernel:
    constraints = ((attr, frozenset(types)),) if types else ()
    return Kernel("Op", device_type, label, priority, constraints)


def table(*kernels: Kernel) -> KernelTable:
    return KernelTable.from_records("test", [OP], kernels)


def test_the_registration_that_accepts_the_type() -> None:
    floats, ints = on("GPU", FLOAT, HALF), on("GPU", INT32)
    world = table(floats, ints)
    assert find_kernel(world, "Op", "GPU", {"T": HALF}) == floats
    assert find_kernel(world, "Op", "GPU", {"T": INT32}) == ints
    assert search_kernels(world, "Op", "GPU", {"T": INT64}) == Found(None, was_attr_mismatch=True)
    assert search_kernels(world, "Op", "CPU", {"T": INT64}) == Found(None)


def test_all_elements_of_a_list_must_fit() -> None:
    world = table(on("GPU", FLOAT, HALF))
    found = [find_kernel(world, "Op", "GPU", {"T": types}) is not None for types in ((FLOAT, HALF), (FLOAT, INT32), ())]
    assert found == [True, False, True]


def test_string_int_and_bool_constraints() -> None:
    world = KernelTable.from_records(
        "test", [OP], [Kernel("Op", "CPU", constraints=(("S", frozenset({b"x"})), ("B", frozenset({True}))))]
    )
    assert find_kernel(world, "Op", "CPU", {"S": b"x", "B": True}) is not None
    assert find_kernel(world, "Op", "CPU", {"S": b"x", "B": False}) is None


def test_the_higher_priority_wins_and_equals_are_an_error() -> None:
    low, high = on("CPU", FLOAT), on("CPU", FLOAT, priority=1)
    assert find_kernel(table(low, high), "Op", "CPU", {"T": FLOAT}) == high
    assert find_kernel(table(high, low), "Op", "CPU", {"T": FLOAT}) == high
    with pytest.raises(KernelSearchError, match="Multiple OpKernel registrations"):
        find_kernel(table(low, low), "Op", "CPU", {"T": FLOAT})


def test_default_stands_in_where_nothing_matched() -> None:
    own, default = on("GPU", FLOAT), on("DEFAULT", INT32, FLOAT)
    world = table(own, default)
    assert find_kernel(world, "Op", "GPU", {"T": FLOAT}) == own
    assert search_kernels(world, "Op", "GPU", {"T": INT32}) == Found(default, was_attr_mismatch=True)
    assert find_kernel(world, "Op", "XLA_GPU_JIT", {"T": FLOAT}) is None
    with pytest.raises(KernelSearchError, match="Multiple Default OpKernel registrations"):
        find_kernel(table(default, on("DEFAULT", FLOAT, priority=1)), "Op", "GPU", {"T": FLOAT})


def test_the_label_is_part_of_the_key() -> None:
    plain, named = on("CPU"), on("CPU", label="fast")
    world = table(plain, named)
    assert find_kernel(world, "Op", "CPU", {}) == plain
    assert find_kernel(world, "Op", "CPU", {"_kernel": b"fast"}) == named
    assert find_kernel(world, "Op", "CPU", {"_kernel": b"slow"}) is None


def test_defaults_are_filled_in_before_matching() -> None:
    world = table(on("CPU", FLOAT, attr="U"))
    assert find_kernel(world, "Op", "CPU", {}) is not None
    with pytest.raises(AttrError, match="OpKernel 'Op' has constraint on attr 'T' not in NodeDef"):
        find_kernel(table(on("CPU", FLOAT)), "Op", "CPU", {})


def test_types_by_priority_then_as_given() -> None:
    world = table(on("GPU", priority=1), on("CPU", priority=2), on("TPU"))
    assert supported_device_types(world, "Op", {}, ["TPU", "GPU", "CPU"]) == (("CPU", 2), ("GPU", 1), ("TPU", 0))
    assert supported_device_types(table(), "Op", {}, ["GPU", "CPU"]) == ()


def test_a_function_runs_anywhere() -> None:
    assert supported_device_types(table(), "f", {}, ["GPU", "CPU"]) == (("GPU", 0), ("CPU", 0))


def test_a_remote_process_may_know_the_op() -> None:
    local, there = DeviceName("a", 0, 0), DeviceName("a", 0, 1)
    ask = lambda world, requested: supported_device_types(  # noqa: E731
        world, "Op", {"T": FLOAT}, ["GPU", "CPU"], requested=requested, local=local
    )
    assert ask(table(), there) == (("GPU", 0), ("CPU", 0))
    assert ask(table(), there._replace(type="TPU")) == (("TPU", 0),)
    assert ask(table(), local) == ()
    assert ask(table(on("CPU", INT32)), there) == ()


SHIPPED = KernelTable.shipped()


@pytest.mark.parametrize(
    ("op", "device_type", "attrs", "memory"),
    [
        ("Tile", "GPU", {"T": FLOAT}, ((False, True), (False,))),
        ("Tile", "CPU", {"T": INT32}, ((False, True), (False,))),
        ("Shape", "GPU", {"T": FLOAT}, ((False,), (True,))),
        ("AddV2", "GPU", {"T": INT32}, ((True, True), (True,))),
        ("Identity", "CPU", {"T": DataType.DT_STRING}, ((True,), (True,))),
        ("PartitionedCall", "GPU", {"Tin": (INT32, FLOAT), "Tout": (INT32,)}, ((True, False), (True,))),
        ("PartitionedCall", "TPU", {"Tin": (INT32,), "Tout": ()}, ((False,), ())),
        ("MatMul", "GPU", {"T": FLOAT, "_output_hostmem": (0,)}, ((False, False), (True,))),
        ("ReadVariableOp", "GPU", {"dtype": FLOAT}, ((True,), (False,))),
    ],
)
def test_memory_types(op: str, device_type: str, attrs: dict[str, object], memory: object) -> None:
    assert memory_types(SHIPPED, op, device_type, attrs) == memory


@pytest.mark.parametrize(
    ("op", "dtype", "nearest"),
    [
        ("MatMul", INT32, NearestDtype("T", INT32, FLOAT)),
        ("MatMul", FLOAT, None),
        ("BiasAdd", DataType.DT_UINT8, NearestDtype("T", DataType.DT_UINT8, FLOAT)),
        ("AsString", FLOAT, None),
    ],
)
def test_the_nearest_type_with_a_gpu_kernel(op: str, dtype: DataType, nearest: object) -> None:
    assert nearest_dtype(SHIPPED, op, "GPU", {"T": dtype}) == nearest


def test_a_wider_type_of_the_same_class_comes_first() -> None:
    world = table(on("GPU", HALF, DataType.DT_DOUBLE, INT64, INT32))
    assert nearest_dtype(world, "Op", "GPU", {"T": FLOAT}) == NearestDtype("T", FLOAT, DataType.DT_DOUBLE)
    assert nearest_dtype(world, "Op", "GPU", {"T": DataType.DT_INT16}) == NearestDtype("T", DataType.DT_INT16, INT32)
