"""The cases of TensorFlow's placer_test.cc as small worlds of our own; each is named after its case there.

Cases that cannot be expressed:
- TestUseGpuWithNoCuda: its sentence is only in builds without CUDA, and the rules here are those of the CUDA wheel.
- DuplicateInputResource_Conflict allows any device that three nodes share; here it is that of the first argument.
- NestedTwoFunctionsBackToBack calls a function that returns a resource and says float; here the call says resource.
- Which of two requests TensorFlow only logs (log_device_placement) is in test_colocation, as notices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from simplace.program.status import Refusal
from tests.placement.fakes import ONE, TEN, world
from tests.placement.worlds import World, answer, answers

TASK = "/job:a/replica:0/task:0"
CPU, GPU = f"{TASK}/device:FakeCPU", f"{TASK}/device:FakeGPU"
B0, B1 = "/job:b/replica:0/task:0/device", "/job:b/replica:0/task:1/device"


@dataclass(frozen=True)
class Case:
    """Record of a graph, where to place it, and each node's device, or a status code with words of its message."""

    name: str
    graph: str
    answer: str = ""
    refused: tuple[str, ...] = ()
    soft: bool = True
    world: World = TEN
    default: str = ""


BASICS = [
    Case(
        "TestNoConstraints",
        """
        feed = Feed()
        left = Relu(feed)
        right = Relu(feed:1)
        """,
        "feed = FakeCPU:0; left right = FakeGPU:0",
    ),
    Case(
        "TestNoConstraintsWithPrioritizedKernels",
        """
        feed = Feed()
        left = Cached(feed)
        right = Cached(feed:1)
        """,
        "feed left right = FakeCPU:0",
    ),
    Case(
        "TestXlaOpPlacement",
        f"""
        feed = Feed()
        free = Compiled(feed)
        fixed = Compiled(feed:1) !{TASK}/device:XLA_CPU:0
        """,
        "feed free = FakeCPU:0; fixed = XLA_CPU:0",
    ),
    Case("TestGPUInputIntoPrioritizedKernel", "src = SourceG()\nuse = Cached(src)", "src = FakeGPU:0; use = FakeCPU:0"),
    Case(
        "TestGPUInputColocatedWithPrioritizedKernel",
        """
        src = SourceG()
        near = Cached(src) [_class=["loc:@src"]]
        far = Cached(src)
        """,
        "src near = FakeGPU:0; far = FakeCPU:0",
    ),
    Case("TestDSWithPriority", "ds = MakePreferC()\nit = Next(ds)", "ds it = FakeCPU:0"),
    Case("TestDSWithGPUPriority", "ds = MakePreferG()\nit = Next(ds)", "ds it = FakeGPU:0"),
    Case("TestITWithPriority", "ds = Make()\nit = NextPreferC(ds)", "ds it = FakeCPU:0"),
    Case("TestITWithGPUPriority", "ds = Make()\nit = NextPreferG(ds)", "ds it = FakeGPU:0"),
    Case("TestITGPU", "ds = MakePreferC()\nit = NextG(ds)", "ds it = FakeGPU:0"),
    Case("TestSimpleIteratorOnlyGPU", "ds = MakeC()\nit = NextPreferG(ds)", "ds it = FakeCPU:0"),
    Case("TestAgreeingPriorities", "ds = MakePreferC()\nit = NextPreferC(ds)", "ds it = FakeCPU:0"),
    Case("TestAgreeingRegularPriorities", "ds = MakePreferG()\nit = NextPreferG(ds)", "ds it = FakeGPU:0"),
    Case("TestConflictingPriorities", "ds = MakePreferC()\nit = NextPreferG(ds)", "ds it = FakeGPU:0"),
    Case("TestConflictingPrioritiesReversed", "ds = MakePreferG()\nit = NextPreferC(ds)", "ds it = FakeGPU:0"),
    Case(
        "TestDeviceTypeConstraints",
        """
        feed = Feed()
        v0 = VarC()
        set0 = AssignC(v0, feed)
        v1 = VarG()
        set1 = AssignG(v1, feed)
        """,
        "feed v0 set0 = FakeCPU:0; v1 set1 = FakeGPU:0",
    ),
    Case(
        "TestPartialSpec",
        "feed = Feed() @/job:a\nv = Var() @/job:a",
        "feed = FakeCPU:0; v = FakeGPU:0",
    ),
    Case("TestAssignedDevicePreserved", f"feed = Feed() !{CPU}:7", "feed = FakeCPU:7"),
    Case(
        "TestPartialSpecGpuToCpu",
        "feed = Feed() @/device:FakeGPU:0\nv = Var() @/device:FakeGPU:0",
        "feed = FakeCPU:0; v = FakeGPU:0",
    ),
    Case("TestResourceMove", "ds = MakePreferC() @/device:FakeCPU:0\nit = NextG(ds)", "ds it = FakeGPU:0"),
    Case(
        "TestAssignedGpuDeviceToCpuDevice",
        f"feed = Feed() !{GPU}:0",
        refused=("INTERNAL", f"Assigned device '{GPU}:0' does not have registered OpKernel support for Feed"),
    ),
]

HEURISTICS = [
    Case("TestMetadataColocatedWithInput", "v = VarC()\nshape = Shape(v)", "v shape = FakeCPU:0"),
    Case(
        "TestHeuristicGeneratorFollowsSingleConsumer",
        "v = VarC()\nsrc = Source()\nset = Assign(v, src)",
        "v src set = FakeCPU:0",
    ),
    Case(
        "TestIgnoreGeneratorHeuristicIfWrongDevice",
        "v = VarC()\nsrc = SourceG()\nset = Assign(v, src)",
        "v set = FakeCPU:0; src = FakeGPU:0",
    ),
    Case(
        "TestIgnoreGeneratorHeuristicIfWrongPartialDevice",
        "v = VarC()\nsrc = Source() @/device:FakeCPU:1\nset = Assign(v, src)",
        "v set = FakeCPU:0; src = FakeCPU:1",
    ),
    Case(
        "TestGeneratorNodeFollowsConsumerNode",
        """
        v0 = VarC()
        v1 = VarC()
        src = Source()
        set0 = Assign(v0, src)
        set1 = Assign(v1, src)
        """,
        "v0 v1 src set0 set1 = FakeCPU:0",
    ),
    Case(
        "TestGeneratorNodeDoesntFollowNonColocatedConsumers",
        f"""
        v0 = VarC() !{CPU}:1
        v1 = VarC() !{CPU}:2
        src = Source()
        set0 = Assign(v0, src)
        set1 = Assign(v1, src)
        """,
        "v0 set0 = FakeCPU:1; v1 set1 = FakeCPU:2; src = FakeGPU:0",
    ),
    Case(
        "IdentityMatchesInputAndOutputPlacement",
        f"""
        arg = _Arg() [T=float] @{B1}:FakeCPU:0
        before = Identity(arg) [T=float] @{B1}:FakeCPU:0
        between = Identity(before) [T=float]
        cast = Cast(between) @{B1}:FakeCPU:0
        use = Lookup(cast) @{B1}:FakeCPU:0
        """,
        f"arg before between cast use = {B1}:FakeCPU:0",
        world=world(f"{B0}:FakeCPU:0 {B1}:FakeCPU:0"),
    ),
    Case(
        "IdentityDoesntMatchWithMultipleOutput",
        f"""
        arg = _Arg() [T=float] @{B1}:FakeCPU:0
        before = Identity(arg) [T=float] @{B1}:FakeCPU:0
        between = Identity(before) [T=float]
        cast = Cast(between) @{B1}:FakeCPU:0
        use = Lookup(cast) @{B1}:FakeCPU:0
        also = Identity(between) [T=float]
        """,
        f"arg before cast use = {B1}:FakeCPU:0; between also = {B0}:FakeCPU:0",
        world=world(f"{B0}:FakeCPU:0 {B1}:FakeCPU:0"),
    ),
]


def _pairs(var: str, assign: str) -> str:
    rows = (f"v{i} = {var}()\nset{i} = {assign}(v{i}, feed)" for i in range(10))
    return "\n".join(["feed = Feed()", *rows])


_ALL_PAIRS = " ".join(f"v{i} set{i}" for i in range(10))
_NO_COMMON_TYPE = ("INVALID_ARGUMENT", "no device type supports both of those nodes")

REFERENCES = [
    *(
        Case(
            f"TestReferenceConnection-{var}-{assign}", _pairs(var, assign), f"feed = FakeCPU:0; {_ALL_PAIRS} = {where}"
        )
        for var, assign, where in (
            ("Var", "Assign", "FakeGPU:0"),
            ("Var", "AssignC", "FakeCPU:0"),
            ("Var", "AssignG", "FakeGPU:0"),
            ("VarC", "Assign", "FakeCPU:0"),
            ("VarC", "AssignC", "FakeCPU:0"),
            ("VarG", "Assign", "FakeGPU:0"),
            ("VarG", "AssignG", "FakeGPU:0"),
        )
    ),
    *(
        Case(f"TestReferenceConnection-{var}-{assign}", _pairs(var, assign), refused=_NO_COMMON_TYPE)
        for var, assign in (("VarC", "AssignG"), ("VarG", "AssignC"))
    ),
    *(
        Case(
            f"TestResourceHandle-{var}-{use}",
            f"feed = Feed()\nv = {var}()\nset = {use}(v, feed)",
            f"feed = FakeCPU:0; v set = {where}",
        )
        for var, use, where in (
            ("Handle", "Store", "FakeGPU:0"),
            ("Handle", "StoreC", "FakeCPU:0"),
            ("Handle", "StoreG", "FakeGPU:0"),
            ("HandleC", "Store", "FakeCPU:0"),
            ("HandleC", "StoreC", "FakeCPU:0"),
            ("HandleG", "StoreG", "FakeGPU:0"),
            ("HandleG", "Store", "FakeGPU:0"),
        )
    ),
    *(
        Case(
            f"TestResourceHandle-{v}-{use}", f"feed = Feed()\nv = {v}()\nset = {use}(v, feed)", refused=_NO_COMMON_TYPE
        )
        for v, use in (("HandleG", "StoreC"), ("HandleC", "StoreG"))
    ),
    *(
        Case(
            f"TestResourceHandlesOnDifferentDevicesFails-{what}-{'soft' if soft else 'hard'}",
            f"here = Handle() {mark}{CPU}:0\nthere = Handle() {mark}{GPU}:0\nboth = TwoHandles(here, there)",
            refused=(
                "INVALID_ARGUMENT",
                "Cannot place the graph because a reference or resource edge connects colocation groups with "
                f"incompatible {what} devices: {GPU}:0 vs {CPU}:0",
            ),
            soft=soft,
        )
        for soft in (False, True)
        for what, mark in (("resource", "@"), ("assigned", "!"))
    ),
    Case(
        "TestReferenceConnectionIgnoreInfeasible",
        """
        src = PairG() @/job:a/task:0/device:FakeGPU:0
        v = Var() @/job:a/task:0/device:FakeGPU:0
        set = Assign(v, src) @/job:a/task:0/device:FakeCPU:0
        """,
        "src v set = FakeGPU:0",
        soft=False,
    ),
    Case(
        "TestReferenceConnectionMoreSpecificDestinationSourceWins",
        """
        src = Source() @/job:a/task:0
        v = Var() @/job:a/task:0
        set = Assign(v, src) @/job:a/task:0/device:FakeCPU:0
        """,
        "src v set = FakeCPU:0",
        soft=False,
    ),
    Case(
        "TestReferenceConnectionNoSourceDevice",
        """
        src = PairG() @/job:a/task:0/device:FakeGPU:0
        v = Var()
        set = Assign(v, src) @/job:a/task:0/device:FakeCPU:0
        """,
        "src = FakeGPU:0; v set = FakeCPU:0",
        soft=False,
    ),
    Case(
        "TestResourceHandleOnCompositeDevice-free",
        f"feed = Feed()\nv = HandleC() !{TASK}/device:COMPOSITE:0\nset = Store(v, feed)",
        "feed = FakeCPU:0; v set = COMPOSITE:0",
    ),
    Case(
        "TestResourceHandleOnCompositeDevice-assigned",
        f"feed = Feed()\nv = HandleC() !{TASK}/device:COMPOSITE:0\nset = Store(v, feed) !{CPU}:0",
        "feed set = FakeCPU:0; v = COMPOSITE:0",
    ),
    Case(
        "TestDeviceTypeConstraintsAllowSoftPlacement",
        """
        v0 = VarG()
        use0 = Deref(v0) @/device:FakeCPU:0
        v1 = VarC()
        use1 = Deref(v1) @/device:FakeGPU:0
        """,
        "v0 use0 = FakeGPU:0; v1 use1 = FakeCPU:0",
    ),
    Case(
        "TestUnsatisfiableConstraintWithReferenceConnections",
        "v = VarG()\nfeed = Feed()\nset = AssignC(v, feed)",
        refused=("INVALID_ARGUMENT", "Cannot colocate nodes {{colocation_node v}} and {{colocation_node set}}"),
    ),
]

_CLASSES_OF_TWO = """
    feed = Feed()
    v0 = VarC()
    v1 = VarC()
    v2 = VarG()
    set0 = Assign(v0, feed) [_class=["loc:@v0"]]
    set1 = Assign(v1, feed) [_class=["loc:@v1"]]
    set2 = Assign(v2, feed) [_class=["loc:@v1"]]
"""
_TWO_CLASSES = """
    feed = Feed()
    one = ReluC(feed) [_class=["loc:@feed"]]
    two = ReluG(feed) [_class=["loc:@feed", "loc:@one"]]
"""
_TWO_GENERATORS = """
    a = _Arg() @/device:FakeGPU:0
    b = _Arg() @/device:FakeCPU:0
    one = Identity(a) [_class=["loc:@two"]]
    two = Identity(b)
"""
_TWO_ASSIGNED = f"""
    a = _Arg()
    b = _Arg()
    pass_a = Identity(a) !{GPU}:0
    pass_b = Identity(b) !{CPU}:0
    one = Identity(pass_a) [_class=["loc:@two"]]
    two = Identity(pass_b)
"""


def _many() -> tuple[str, str]:
    rows = ["feed = Feed()"]
    for i in range(100):
        near_var, near_set = (f' [_class=["loc:@{name}"]]' if i >= 10 else "" for name in (f"v{i % 6}", f"set{i % 3}"))
        rows += [f"v{i} = Var(){near_var}", f"set{i} = Assign(v{i}, feed){near_set}"]
    everything = " ".join(f"v{i} set{i}" for i in range(100))
    return "\n".join(rows), f"feed = FakeCPU:0; {everything} = FakeGPU:0"


COLOCATION = [
    Case(
        "TestColocationGroup",
        """
        feed = Feed()
        near = Relu(feed) [_class=["loc:@feed"]]
        far = Relu(feed)
        """,
        "feed near = FakeCPU:0; far = FakeGPU:0",
    ),
    Case(
        "TestMultipleColocationGroups",
        """
        feed = Feed()
        one = Relu(feed) [_class=["loc:@feed"]]
        two = Relu(feed) [_class=["loc:@feed", "loc:@one"]]
        """,
        "feed one two = FakeCPU:0",
    ),
    Case(
        "TestChainColocation",
        """
        feed = Feed()
        one = Relu(feed) [_class=["loc:@feed"]]
        two = Relu(feed) [_class=["loc:@one"]]
        """,
        "feed one two = FakeCPU:0",
    ),
    Case("TestInvalidMultipleColocationGroups-soft", _TWO_CLASSES, "feed one = FakeCPU:0; two = FakeGPU:0"),
    Case(
        "TestInvalidMultipleColocationGroups-hard",
        _TWO_CLASSES,
        refused=(
            "INVALID_ARGUMENT",
            "Cannot colocate nodes {{colocation_node two}} and {{colocation_node feed}} because no device type "
            "supports both of those nodes and the other nodes colocated with them",
        ),
        soft=False,
    ),
    Case(
        "TestColocationGroupWithReferenceConnections",
        """
        feed = Feed()
        v0 = VarC()
        v1 = VarC()
        v2 = VarC() @/device:COMPOSITE:0
        set0 = Assign(v0, feed) [_class=["loc:@v0"]]
        set1 = Assign(v1, feed) [_class=["loc:@v1"]]
        set2 = Assign(v2, feed) [_class=["loc:@v2"]]
        """,
        "feed v0 v1 set0 set1 = FakeCPU:0; v2 set2 = COMPOSITE:0",
    ),
    Case(
        "TestColocationGroupWithUnsatisfiableReferenceConnections-soft",
        _CLASSES_OF_TWO,
        "feed v0 v1 set0 set1 = FakeCPU:0; v2 set2 = FakeGPU:0",
    ),
    Case(
        "TestColocationGroupWithUnsatisfiableReferenceConnections-hard",
        _CLASSES_OF_TWO,
        refused=(
            "INVALID_ARGUMENT",
            "Cannot colocate nodes {{colocation_node set2}} and {{colocation_node v1}} because no device type supports "
            "both of those nodes and the other nodes colocated with them.",
        ),
        soft=False,
    ),
    Case("TestColocationAndReferenceConnections", *_many()),
    Case(
        "RequestedDeviceOnResourceGeneratorIsTreatedAsAssigned-soft",
        _TWO_GENERATORS,
        "a one = FakeGPU:0; b two = FakeCPU:0",
    ),
    Case(
        "RequestedDeviceOnResourceGeneratorIsTreatedAsAssigned-hard",
        _TWO_GENERATORS,
        refused=(
            "INVALID_ARGUMENT",
            "Cannot colocate nodes {{colocation_node two}} and {{colocation_node one}}: Cannot merge devices with "
            "incompatible types: '/device:FakeCPU:0' and '/device:FakeGPU:0'",
        ),
        soft=False,
    ),
    Case(
        "RequestedDeviceCanBeOverridden",
        """
        a = _Arg()
        b = _Arg()
        pass_a = Identity(a) @/device:FakeGPU:0
        pass_b = Identity(b) @/device:FakeCPU:0
        one = Identity(pass_a) [_class=["loc:@two"]]
        two = Identity(pass_b)
        """,
        "a b pass_a pass_b one two = FakeGPU:0",
    ),
    Case(
        "AssignedDeviceOfColocatedNodeIsRespected",
        f"a = _Arg() !{CPU}:0\nit = NextG(a)",
        refused=(
            "INVALID_ARGUMENT",
            "{{colocation_node it}} was colocated with a group of nodes that required incompatible device "
            f"'{CPU}:0'",
        ),
    ),
    Case(
        "AssignedDevicesAreNotOverriddenDueToResourcesAndColocation-soft",
        _TWO_ASSIGNED,
        "a pass_a one = FakeGPU:0; b pass_b two = FakeCPU:0",
    ),
    Case(
        "AssignedDevicesAreNotOverriddenDueToResourcesAndColocation-hard",
        _TWO_ASSIGNED,
        refused=(
            "INVALID_ARGUMENT",
            "Cannot colocate nodes {{colocation_node two}} and {{colocation_node one}}: Cannot merge devices with "
            f"incompatible types: '{CPU}:0' and '{GPU}:0'",
        ),
        soft=False,
    ),
]

_UNKNOWN_OP = "No OpKernel was registered to support Op 'VarNowhere' used by {{node v}}"

FAILURES = [
    Case(
        "TestEmptyDeviceSet",
        "feed = Feed()",
        refused=("FAILED_PRECONDITION", "No devices are registered"),
        world=world(""),
    ),
    Case(
        "TestHeterogeneousDeviceSetFailure",
        "feed = Feed()\nv = VarG()\nset = Assign(v, feed) @/job:b/task:1",
        refused=(
            "INVALID_ARGUMENT",
            "colocated with a group of nodes that required incompatible device",
            "VarG: FakeGPU",
            "Assign: FakeGPU FakeCPU",
        ),
        world=world(f"{B0}:FakeGPU:0 {B1}:FakeCPU:0"),
    ),
    Case("TestUnknownDevice", "feed = Feed() @/job:foo", refused=("INVALID_ARGUMENT", "/job:foo")),
    Case(
        "TestUnknownMergedDevice",
        "v = Var() @/job:foo\nfeed = Feed()\nset = Assign(v, feed) @/task:0",
        refused=("INVALID_ARGUMENT", "/job:foo"),
    ),
    Case(
        "TestUnknownAssignedDevice",
        "feed = Feed() !/job:foo",
        refused=("INTERNAL", "Assigned device '/job:foo' does not match any device"),
    ),
    Case(
        "TestNoKernelsRegisteredWithNoRequestedDevice",
        "v = VarNowhere()",
        refused=("INVALID_ARGUMENT", _UNKNOWN_OP, "<no registered kernels>"),
    ),
    Case(
        "TestNoKernelsRegisteredWithRequestedDeviceLocal",
        f"v = VarNowhere() @{B0}:FakeGPU:0",
        refused=("INVALID_ARGUMENT", _UNKNOWN_OP, "<no registered kernels>"),
        soft=False,
        world=world(f"{B0}:FakeGPU:0 {B0}:FakeCPU:0"),
        default=f"{B0}:FakeCPU:0",
    ),
    Case(
        "TestNoKernelsRegisteredWithRequestedDeviceRemote",
        f"v = VarNowhere() @{B1}:FakeGPU:0",
        f"v = {B1}:FakeGPU:0",
        soft=False,
        world=world(f"{B1}:FakeGPU:0 {B0}:FakeCPU:0"),
        default=f"{B0}:FakeCPU:0",
    ),
    Case(
        "TestNoDevicesRegistered",
        "v = VarG()",
        refused=(
            "INVALID_ARGUMENT",
            "No OpKernel was registered to support Op 'VarG' used by {{node v}}",
            "device='FakeGPU'",
        ),
        world=world(f"{CPU}:0"),
    ),
    Case(
        "TestMalformedDeviceSpecification",
        "feed = Feed() @/foo:bar",
        refused=("INVALID_ARGUMENT", "Malformed device specification '/foo:bar'"),
    ),
    Case(
        "TestMalformedAssignedDevice",
        "feed = Feed() !/foo:bar",
        refused=("INTERNAL", "Malformed assigned device '/foo:bar'"),
    ),
    Case(
        "TestNonUniqueAssignedDevice",
        "feed = Feed() !/job:a",
        refused=("INTERNAL", "Assigned device '/job:a' does not match any device"),
    ),
    Case("TestNonexistentGpuAllowSoftPlacement", "src = PairG() @/device:FakeGPU:11", "src = FakeGPU:0"),
    Case(
        "TestNonexistentGpuNoAllowSoftPlacement",
        "src = PairG() @/device:FakeGPU:11",
        refused=("INVALID_ARGUMENT", "/device:FakeGPU:11"),
        soft=False,
    ),
    Case(
        "TestNonexistentGpuNoAllowSoftPlacementFormatTag",
        "src = PairG() @/device:FakeGPU:11",
        refused=("INVALID_ARGUMENT", "Cannot assign a device for operation src", "{{node src}}"),
        soft=False,
    ),
    Case(
        "TestUnsupportedDeviceNoAllowSoftPlacement",
        "v = VarG() @/device:FakeCPU:0",
        refused=("INVALID_ARGUMENT", "/device:FakeCPU:0", "no supported kernel for FakeCPU devices is available"),
        soft=False,
    ),
    Case(
        "TestNonExistentDevice",
        "v = VarG() @/job:foo/replica:17",
        refused=("INVALID_ARGUMENT", "was explicitly assigned to /job:foo/replica:17", "but available devices"),
        soft=False,
    ),
    Case("TestUnsupportedDeviceAllowSoftPlacement", "feed = Feed() @/device:FakeGPU:0", "feed = FakeCPU:0"),
]

_SCALE = '[Tin=[float, resource], Tout=[resource, float], f=fn("Scale")]'
_SWAP = '[Tin=[resource, resource], Tout=[resource, resource], f=fn("Swap")]'
_SAME = '[Tin=[resource], Tout=[resource], f=fn("Same")]'
_RESOURCE_CLASH = (
    "INVALID_ARGUMENT",
    "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible resource "
    "devices: /device:FakeCPU:0 vs /device:FakeGPU:0",
)
_C, _G = "@/device:FakeCPU:0", "@/device:FakeGPU:0"


def _swapped(a: str, b: str, call: str, out: str = "") -> str:
    """Swap two arguments; the last three lines hold what comes of the call."""
    out = out or "r0 = Identity(call)\nr1 = Identity(call:1)"
    return f"a = _Arg() {a}\nb = _Arg() {b}\ncall = PartitionedCall(a, b) {_SWAP} {call}\n{out}"


def _same(name: str, source: str, device: str = "") -> str:
    return f"{name} = PartitionedCall({source}) {_SAME} {device}"


def _nested(name: str, graph: str, answer: str = "", **other: Any) -> Case:
    stripped = "\n".join(line.strip() for line in graph.splitlines())
    return Case(name, stripped, answer, world=ONE, **other)


NESTED = [
    _nested(
        "OutputOneResource",
        f"""
        a = _Arg() [T=float] {_G}
        b = _Arg() {_C}
        call = PartitionedCall(a, b) {_SCALE}
        r0 = Identity(call)
        r1 = Identity(call:1) [T=float]
        """,
        "a call r1 a_call call_r1 = FakeGPU:0; b r0 b_call call_r0 = FakeCPU:0",
    ),
    _nested(
        "OutputOneResource_ExtraIdentities",
        f"""
        a = _Arg() [T=float] {_G}
        b = _Arg() {_C}
        pass_a = Identity(a) [T=float]
        pass_b = Identity(b)
        call = PartitionedCall(pass_a, pass_b) {_SCALE}
        r0 = Identity(call)
        r1 = Identity(call:1) [T=float]
        """,
        "a pass_a call r1 pass_a_call call_r1 = FakeGPU:0; b pass_b r0 pass_b_call call_r0 = FakeCPU:0",
    ),
    _nested(
        "OutputOneResource_OverrideOutputResourceDevice",
        f"""
        a = _Arg() [T=float] {_G}
        b = _Arg() {_C}
        call = PartitionedCall(a, b) {_SCALE}
        r0 = Identity(call) {_G}
        r1 = Identity(call:1) [T=float]
        """,
        "a call r1 a_call call_r1 = FakeGPU:0; b r0 b_call call_r0 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "OutputTwoResources",
        _swapped(_C, _G, ""),
        "call = FakeGPU:0; a a_call r1 call_r1 = FakeCPU:0; b b_call r0 call_r0 = FakeGPU:0",
    ),
    _nested(
        "OutputTwoResources_PCOOnCPU",
        _swapped(_C, _G, _C),
        "call = FakeCPU:0; a a_call r1 call_r1 = FakeCPU:0; b b_call r0 call_r0 = FakeGPU:0",
    ),
    _nested(
        "OutputTwoResources_UnassignedResource",
        _swapped("", _G, _C),
        "call = FakeCPU:0; a a_call r1 call_r1 = FakeGPU:0; b b_call r0 call_r0 = FakeGPU:0",
        soft=False,
    ),
    _nested(
        "OutputTwoResources_UnassignedResource_CPU",
        _swapped("", _C, _C),
        "call = FakeCPU:0; a a_call r1 call_r1 = FakeGPU:0; b b_call r0 call_r0 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "OutputResourceConsumedByMultipleOps",
        _swapped("", _C, "", f"r0 = Identity(call)\nr1 = Identity(call)\nr2 = Identity(call:1) {_G}"),
        "call = FakeGPU:0; a a_call r2 call_r2 = FakeGPU:0; b b_call r0 r1 call_r0 call_r1 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "DuplicateInputResource",
        f"""
        a = _Arg()
        call = PartitionedCall(a, a) {_SWAP} {_G}
        r0 = Identity(call)
        r1 = Identity(call:1) {_C}
        """,
        "call = FakeGPU:0; a a_call a_call_0 r0 call_r0 r1 call_r1 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "DuplicateInputs_OutputResourceConsumedByMultipleOps",
        f"""
        a = _Arg()
        call = PartitionedCall(a, a) {_SWAP} {_G}
        r0 = Identity(call)
        r1 = Identity(call) {_C}
        r2 = Identity(call:1)
        """,
        "call = FakeGPU:0; a a_call a_call_0 r0 call_r0 r1 call_r1 r2 call_r2 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "DuplicateInputResource_Conflict",
        f"""
        a = _Arg()
        call = PartitionedCall(a, a) {_SWAP} {_G}
        r0 = Identity(call) {_G}
        r1 = Identity(call:1) {_C}
        """,
        "call = FakeGPU:0; a a_call a_call_0 r0 call_r0 r1 call_r1 = FakeCPU:0",
        soft=False,
    ),
    _nested(
        "TestDstDeviceIsIgnoredWhenConstrainedByResourceEdge",
        f"a = _Arg() {_C}\n{_same('call', 'a')}\nr0 = _Retval(call) {_G}",
        "a a_call r0 call_r0 = FakeCPU:0; call = FakeGPU:0",
    ),
    _nested(
        "TestDstDeviceIsIgnoredWhenConstrainedByResourceEdge_EvenWhenPCOIsPlaced",
        f"a = _Arg() {_C}\n{_same('call', 'a', _G)}\nr0 = _Retval(call) {_G}",
        "a a_call r0 call_r0 = FakeCPU:0; call = FakeGPU:0",
    ),
    _nested(
        "ResourceConflictInvolvingPCO",
        f"a = _Arg() {_C}\nb = _Arg() {_G}\n{_same('call', 'a')}\nsum = Add(call, b)",
        refused=_RESOURCE_CLASH,
    ),
    _nested(
        "ResourceConflictInvolvingTwoPCOs",
        f"a = _Arg() {_C}\nb = _Arg() {_G}\n{_same('one', 'a')}\n{_same('two', 'b')}\nsum = Add(one, two)",
        refused=_RESOURCE_CLASH,
    ),
    _nested(
        "DeepDeviceConstraintsPropagated",
        f"""
        a = _Arg() [T=float]
        call = PartitionedCall(a) [Tin=[float], Tout=[resource, float], f=fn("Fresh")]
        r0 = Identity(call) !{GPU}:0
        """,
        refused=("INVALID_ARGUMENT", "Could not satisfy explicit device specification"),
    ),
    _nested(
        "NestedDeepDeviceConstraintsPropagated",
        f"""
        a = _Arg() [T=float]
        call = PartitionedCall(a) [Tin=[float], Tout=[resource, float], f=fn("FreshBelow")]
        r0 = _Retval(call) !{GPU}:0
        """,
        refused=("INVALID_ARGUMENT", "Could not satisfy explicit device specification"),
    ),
    _nested(
        "TwoFunctionsBackToBack",
        f"""
        a = _Arg() {_C}
        b = _Arg() {_G}
        {_same("one", "a")}
        two = PartitionedCall(one) {_SAME}
        {_same("other", "b")}
        sum = Add(two, other)
        """,
        refused=_RESOURCE_CLASH,
    ),
    _nested(
        "NestedTwoFunctionsBackToBack",
        'call = PartitionedCall() [Tin=[], Tout=[resource], f=fn("Chain")]',
        refused=(
            "INVALID_ARGUMENT",
            "Nodes were connected by a reference or resource connection (requiring them to be on the same device), but "
            "the two nodes were assigned two different devices",
        ),
    ),
    _nested(
        "DirectRecursion",
        'a = _Arg()\ncall = PartitionedCall(a) [Tin=[resource], Tout=[resource], f=fn("Loop")]\nr0 = _Retval(call)',
        refused=(
            "UNIMPLEMENTED",
            "Recursive function calls are not supported. Node {{node again}} inside the body of {{function_node Loop}} "
            "calls function {{function_node Loop}}",
        ),
    ),
    _nested(
        "IndirectRecursion",
        'a = _Arg()\ncall = PartitionedCall(a) [Tin=[resource], Tout=[resource], f=fn("Ping")]\nr0 = _Retval(call)',
        refused=(
            "UNIMPLEMENTED",
            "Recursive function calls are not supported. Node {{node hit}} inside the body of {{function_node Pong}} "
            "calls function {{function_node Ping}} which is already present in the call stack",
            "Graph contains node {{node call}}\n  Node {{node call}} calls function {{function_node Ping}}\n  "
            "Function {{function_node Ping}} contains node {{node hit}}",
        ),
    ),
]

ALL_CASES = [*BASICS, *HEURISTICS, *REFERENCES, *COLOCATION, *FAILURES, *NESTED]


@pytest.mark.parametrize("case", ALL_CASES, ids=[case.name for case in ALL_CASES])
def test_placer_case(case: Case) -> None:
    placement = case.world.place(case.graph, soft=case.soft, default=case.default)

    if case.refused:
        _check_refusal(placement.refusal, *case.refused)
        return
    assert placement.refusal is None
    assert answer(placement) == answers(case.answer)


def test_identity_without_consumer_is_placed() -> None:
    """IdentityWithoutOutputDoesntCrash: not even the edge to the sink is there."""
    small = world(f"{B0}:FakeCPU:0 {B1}:FakeCPU:0")
    graph = small.graph(
        f"""
        arg = _Arg() [T=float] @{B1}:FakeCPU:0
        before = Identity(arg) [T=float] @{B1}:FakeCPU:0
        last = Identity(before) [T=float]
        """
    )
    kept = [edge for edge in range(len(graph.edge_src)) if graph.edge_src[edge] != graph.ids["last"]]
    columns = ("edge_src", "edge_src_slot", "edge_dst", "edge_dst_slot")
    shorter = replace(graph, **{name: [getattr(graph, name)[edge] for edge in kept] for name in columns})

    placement = small.place(shorter)

    assert answer(placement) == answers(f"arg before = {B1}:FakeCPU:0; last = {B0}:FakeCPU:0")


def _check_refusal(refusal: Refusal | None, code: str, *words: str) -> None:
    assert refusal is not None, "TensorFlow refuses this graph"
    assert refusal.code == code
    for part in words:
        assert part in refusal.message
