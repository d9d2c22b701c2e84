"""A few ops with CPU and GPU kernels, on one machine with a CPU and two GPUs, for tests of reasons and explanations."""

from __future__ import annotations

from simplace.devices.device_set import local_devices
from tests.placement.worlds import World, function, op_table

TABLE = op_table(
    """
    Source() -> out: float on C G
    SourceC() -> out: float on C
    Ints() -> out: int32 on C G
    Neg(x: T) -> y: T | T: {float, int32, half} = DT_FLOAT on C G
    NegC(x: float) -> y: float on C
    PreferC(x: float) -> y: float on C:2 G:1
    Pair(x: float, y: float) -> z: float on C G
    Handle() -> out: resource on C G
    Read(handle: resource) -> value: float on C G
    ReadC(handle: resource) -> value: float on C
    ReadG(handle: resource) -> value: float on G
    Both(one: resource, other: resource) on C G
    Var() -> ref: Ref(float) on C G
    Shape(input: T) -> output: int32 | T: type = DT_FLOAT on C G
    Identity(input: T) -> output: T | T: type = DT_FLOAT on C G
    Enter(data: T) -> output: T | T: type = DT_RESOURCE on C G
    TensorListReserve() -> handle: variant | element_dtype: type on C G
    TensorListStack(handle: variant) -> tensor: float on C G
    TensorListPushBack(handle: variant, item: variant) -> out: variant | element_dtype: type on C G
    Keep(x: variant) -> y: variant on C G
    PartitionedCall(args: Tin) -> output: Tout | Tin: list(type); Tout: list(type); f: func on C G
    _Arg() -> output: T | T: type = DT_FLOAT; index: int = 0 on C G
    _Retval(input: T) | T: type = DT_FLOAT; index: int = 0 on C G
    """,
    {"C": "CPU", "G": "GPU"},
)
MADE_ON_CPU = function("MadeOnCpu() -> made: resource", "here = Handle() @/CPU:0", made="here:out:0")
WORLD = World(TABLE, local_devices([("CPU", 1), ("GPU", 2)]), {MADE_ON_CPU.name: MADE_ON_CPU})
TASK = "/job:localhost/replica:0/task:0/device:"
CPU0, GPU0, GPU1 = (device.name for device in WORLD.devices)
