"""What is looked up once for nodes that agree is what would be found for each of them."""

from __future__ import annotations

from simplace.devices.device_set import local_devices
from simplace.graph.dtypes import DataType
from simplace.kernels.kernel_lookup import memory_types
from simplace.kernels.registry import KernelTable
from simplace.placement.kernel_support import KernelSupport

TABLE = KernelTable.shipped()
FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32
NODES: list[tuple[str, dict[str, object]]] = [
    ("AddN", {"T": FLOAT, "N": 2}),
    ("AddN", {"T": FLOAT, "N": 2, "_class": (b"loc:@a",)}),
    ("AddN", {"T": FLOAT, "N": 3}),
    ("AddN", {"T": INT32, "N": 2}),
    ("PartitionedCall", {"Tin": (INT32,), "Tout": ()}),
    ("PartitionedCall", {"Tin": (INT32,), "Tout": (), "_XlaMustCompile": 1}),
    ("PartitionedCall", {"Tin": (INT32,), "Tout": (), "_XlaMustCompile": True}),
    ("AddN", {"T": INT32, "N": 2, "_kernel": b"host"}),
    ("AddN", {"T": FLOAT, "N": 2, "_input_hostmem": (1,)}),
    ("AddN", {"T": FLOAT, "N": 2, "_input_hostmem": (0,), "_output_hostmem": (0,)}),
]


def test_memory_of_kernels_depends_on_what_the_look_up_compares():
    support = KernelSupport(TABLE, local_devices([("CPU", 1), ("GPU", 1)]), None)
    for device_type in ("CPU", "GPU"):
        found = [support.host_memory(op, device_type, attrs) for op, attrs in NODES]
        assert found == [memory_types(TABLE, op, device_type, attrs) for op, attrs in NODES]
    assert found[4] == found[5] != found[6], "on a GPU, only what XLA compiles keeps int32 there"


def test_op_without_definition_has_no_memory_types():
    support = KernelSupport(TABLE, local_devices([("CPU", 1)]), None)
    assert support.host_memory("a_function", "CPU", {}) is None
