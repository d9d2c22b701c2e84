"""The ops, kernels and devices of the cases in test_placer_cases: made up, so that nothing depends on a build."""

from __future__ import annotations

from tests.placement.worlds import World, device_set, function, op_table

TABLE = op_table(
    """
    Feed() -> a: float, b: float on C
    Source() -> out: float on C G
    SourceG() -> out: float on G
    PairG() -> a: float, b: float on G
    Relu(x: float) -> y: float on C G
    ReluC(x: float) -> y: float on C
    ReluG(x: float) -> y: float on G
    Cached(x: float) -> y: float on C:2 G:1
    Compiled(x: float) -> y: float on X:2 C:1
    Var() -> ref: Ref(float) on C G
    VarC() -> ref: Ref(float) on C
    VarG() -> ref: Ref(float) on G
    VarNowhere() -> ref: Ref(float)
    Assign(ref: Ref(float), value: float) on C G
    AssignC(ref: Ref(float), value: float) on C
    AssignG(ref: Ref(float), value: float) on G
    Deref(ref: Ref(float)) -> value: float on C G
    Handle() -> out: resource on C G
    HandleC() -> out: resource on C
    HandleG() -> out: resource on G
    Store(handle: resource, value: float) on C G
    StoreC(handle: resource, value: float) on C
    StoreG(handle: resource, value: float) on G
    TwoHandles(one: resource, other: resource) on C G
    Make() -> out: resource on C G
    MakeC() -> out: resource on C
    MakeG() -> out: resource on G
    MakePreferC() -> out: resource on C:2 G:1
    MakePreferG() -> out: resource on C:1 G:2
    Next(in: resource) -> out: float on C G
    NextG(in: resource) -> out: float on G
    NextPreferC(in: resource) -> out: float on C:2 G:1
    NextPreferG(in: resource) -> out: float on C:1 G:2
    Shape(input: T) -> output: int32 | T: type = DT_FLOAT on C G
    Const() -> output: float on C G
    Identity(input: T) -> output: T | T: type = DT_RESOURCE on C G
    Mul(x: float, y: float) -> z: float on C G
    Add(x: T, y: T) -> z: T | T: type = DT_RESOURCE on C G
    Cast(x: float) -> y: int32 on C
    Lookup(x: int32) on C
    _Arg() -> output: T | T: type = DT_RESOURCE; index: int = 0 on C G
    _Retval(input: T) | T: type = DT_RESOURCE; index: int = 0 on C G
    PartitionedCall(args: Tin) -> output: Tout | Tin: list(type); Tout: list(type); f: func on C G
    """
)

PRIORITIES = {"FakeGPU": 51, "FakeCPU": 50, "XLA_CPU": -1, "COMPOSITE": -1}
_TASK = "/job:a/replica:0/task:0/device:"

LIBRARY = {
    one.name: one
    for one in (
        function(
            "Scale(x: float, r: resource) -> r_out: resource, y: float",
            """
            two = Const()
            scaled = Mul(x, two:output:0)
            """,
            r_out="r",
            y="scaled:z:0",
        ),
        function(
            "Swap(p: resource, q: resource) -> first: resource, second: resource",
            """
            from_q = Identity(q)
            from_p = Identity(p)
            """,
            first="from_q:output:0",
            second="from_p:output:0",
        ),
        function("Same(r: resource) -> out: resource", "", out="r"),
        function("Fresh(x: float) -> made: resource, x_out: float", "new = MakeC()", made="new:out:0", x_out="x"),
        function(
            "FreshBelow(x: float) -> made: resource, x_out: float",
            'deep = PartitionedCall(x) [Tin=[float], Tout=[resource, float], f=fn("Fresh")]',
            made="deep:output:0",
            x_out="deep:output:1",
        ),
        function(
            "Chain() -> out: resource",
            """
            on_cpu = MakeC()
            once = PartitionedCall(on_cpu:out:0) [Tin=[resource], Tout=[resource], f=fn("Same")]
            twice = PartitionedCall(once:output:0) [Tin=[resource], Tout=[resource], f=fn("Same")]
            on_gpu = MakeG()
            other = PartitionedCall(on_gpu:out:0) [Tin=[resource], Tout=[resource], f=fn("Same")]
            sum = Add(twice:output:0, other:output:0)
            """,
            out="sum:z:0",
        ),
        function(
            "Loop(r: resource) -> out: resource",
            'again = PartitionedCall(r) [Tin=[resource], Tout=[resource], f=fn("Loop")]',
            out="again:output:0",
        ),
        function(
            "Ping(r: resource) -> out: resource",
            'hit = PartitionedCall(r) [Tin=[resource], Tout=[resource], f=fn("Pong")]',
            out="hit:output:0",
        ),
        function(
            "Pong(r: resource) -> out: resource",
            'hit = PartitionedCall(r) [Tin=[resource], Tout=[resource], f=fn("Ping")]',
            out="hit:output:0",
        ),
    )
}


def machine(count: int) -> str:
    """Name the devices of one task: CPUs upwards and GPUs downwards in turn, then one XLA and one composite device."""
    pairs = (f"{_TASK}FakeCPU:{i} {_TASK}FakeGPU:{count - 1 - i}" for i in range(count))
    return " ".join([*pairs, f"{_TASK}XLA_CPU:0", f"{_TASK}COMPOSITE:0"])


def world(devices: str) -> World:
    """Make a world of the ops and functions above on the devices of a text."""
    return World(TABLE, device_set(devices, PRIORITIES), LIBRARY)


TEN = world(machine(10))
ONE = world(machine(1))
