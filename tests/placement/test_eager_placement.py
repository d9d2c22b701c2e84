"""Where eager ops run: each rule on a small op, with the shipped kernels and no TensorFlow."""

import pytest

from simplace.devices.device_set import local_devices, seen_from_the_first
from simplace.graph.dtypes import DataType
from simplace.pipeline import EagerPlacer
from simplace.placement.eager.execute import EagerRule, InputCopy
from simplace.placement.eager.placement_utils import is_pinned_small, pinning_resource
from simplace.program.eager_op import EagerInput, EagerOp
from tests.worlds import CPU, GPU0, GPU1, TASK, shipped

FLOAT, INT, STRING, LONG = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_STRING, DataType.DT_INT64
RESOURCE = DataType.DT_RESOURCE


def eager(op, *inputs, scope="", soft=True, **attrs):
    return EagerOp(op, "model.py:3", scope, soft, attrs, tuple(EagerInput(*each) for each in inputs))


def placed(op, gpus=2):
    return EagerPlacer(local_devices([("CPU", 1), ("GPU", gpus)]), shipped()).place(op)


def matmul(first=CPU, second=CPU, dtype=FLOAT, **settings):
    return eager("MatMul", (dtype, first), (dtype, second), T=dtype, **settings)


@pytest.mark.parametrize(
    ("op", "device", "rule"),
    [
        (matmul(), GPU0, EagerRule.BEST_KERNEL),
        (matmul(GPU1, GPU1), GPU0, EagerRule.BEST_KERNEL),  # where inputs are does not count
        (matmul(scope=GPU1), GPU1, EagerRule.REQUESTED),
        (matmul(scope=CPU), CPU, EagerRule.REQUESTED),
        (matmul(scope=TASK), GPU0, EagerRule.BEST_KERNEL),  # a scope that names no device
        (matmul(scope=f"{TASK}/device:GPU:7"), GPU0, EagerRule.SOFT_FALLBACK),
        (eager("AsString", (FLOAT, GPU1), T=FLOAT), CPU, EagerRule.BEST_KERNEL),
        (eager("AsString", (FLOAT, GPU1), T=FLOAT, scope=GPU1), CPU, EagerRule.SOFT_FALLBACK),
        (eager("ReadVariableOp", (RESOURCE, GPU1), dtype=FLOAT, scope=CPU), GPU1, EagerRule.RESOURCE),
        (eager("AddV2", (INT, CPU, True), (INT, CPU, True), T=INT, scope=GPU0), CPU, EagerRule.SMALL_INPUTS),
        (eager("AddV2", (INT, CPU, True), (INT, CPU), T=INT, scope=GPU0), GPU0, EagerRule.REQUESTED),
    ],
)
def test_the_first_rule_that_speaks_decides(op, device, rule):
    found = placed(op)
    assert (found.device, found.choice.rule, found.refusal) == (device, rule, None)


def test_without_gpus_everything_is_on_the_cpu():
    assert placed(matmul(), gpus=0).device == CPU


@pytest.mark.parametrize(
    ("op", "code", "message"),
    [
        (
            eager("AsString", (FLOAT, GPU1), T=FLOAT, scope=GPU1, soft=False),
            "INVALID_ARGUMENT",
            f"Could not satisfy device specification '{GPU1}'. enable_soft_placement=0. Supported device types [CPU]. "
            f"All available devices [{GPU0}, {GPU1}, {CPU}].",
        ),
        (matmul(dtype=STRING), "NOT_FOUND", "Could not find device for node: {{node MatMul}}"),
    ],
)
def test_an_op_without_a_device_is_refused(op, code, message):
    found = placed(op)
    assert (found.device, found.body, found.refusal.code) == ("", None, code)
    assert found.refusal.message.splitlines()[0] == message


def test_the_placer_may_refuse_what_a_device_was_chosen_for():
    """The first resource chooses the device, and another one, on another device, cannot be colocated with it."""
    two = eager(
        "ResourceApplyMomentum", (RESOURCE, GPU0), (RESOURCE, GPU1), (FLOAT, CPU), (FLOAT, CPU), (FLOAT, CPU), T=FLOAT
    )
    found = placed(two)
    assert (found.choice.device, found.device, found.refusal.code) == (GPU0, "", "INVALID_ARGUMENT")


def test_inputs_come_to_the_device_unless_the_kernel_wants_them_in_host_memory():
    tile = eager("Tile", (FLOAT, CPU), (INT, CPU), T=FLOAT, Tmultiples=INT)
    assert placed(tile).copies == (InputCopy(0, CPU, GPU0),)
    on_gpu = eager("Tile", (FLOAT, GPU1), (INT, GPU0), T=FLOAT, Tmultiples=INT)
    assert placed(on_gpu).copies == (InputCopy(0, GPU1, GPU0), InputCopy(1, GPU0, CPU))
    long = eager("Tile", (FLOAT, GPU0), (LONG, GPU0), T=FLOAT, Tmultiples=LONG)
    assert placed(long).copies == ()  # the little graph copies it
    assert placed(eager("AssignVariableOp", (RESOURCE, GPU1), (FLOAT, CPU), dtype=FLOAT)).copies == (
        InputCopy(1, CPU, GPU1),
    )
    assert placed(eager("StringLength", (STRING, CPU))).copies == ()


def nodes(op):
    return [(node.name, node.op, node.device) for node in placed(op).body.nodes]


def test_the_little_graph_of_an_op():
    assert nodes(eager("Cast", (FLOAT, CPU), SrcT=FLOAT, DstT=INT)) == [
        ("x", "_Arg", GPU0), ("Cast", "Cast", GPU0), ("y_RetVal", "_DeviceRetval", GPU0),
    ]  # fmt: skip
    assert nodes(eager("AddV2", (INT, CPU), (INT, CPU), T=INT)) == [
        ("x", "_Arg", CPU), ("y", "_Arg", CPU), ("AddV2", "AddV2", GPU0), ("z_RetVal", "_Retval", GPU0),
    ]  # fmt: skip
    assert nodes(eager("_EagerConst", (INT, CPU), T=INT)) == [
        ("input", "_Arg", CPU), ("_EagerConst", "_EagerConst", GPU0), ("output_RetVal", "_Retval", GPU0),
    ]  # fmt: skip
    assert nodes(eager("Split", (INT, CPU), (FLOAT, CPU), num_split=2, T=FLOAT)) == [
        ("split__dim", "_DeviceArg", CPU), ("value", "_Arg", GPU0), ("Split", "Split", GPU0),
        ("output_0_RetVal", "_Retval", GPU0), ("output_1_RetVal", "_Retval", GPU0),
    ]  # fmt: skip
    assert nodes(eager("IdentityN", (INT, CPU), (FLOAT, CPU), T=(INT, FLOAT)))[:2] == [
        ("input_0", "_DeviceArg", GPU0), ("input_1", "_Arg", GPU0),
    ]  # fmt: skip
    wrapped = placed(eager("Split", (INT, CPU), (FLOAT, CPU), num_split=2, T=FLOAT)).body.program
    assert wrapped.function == f"__wrapped__Split_num_split_2_device_{GPU0}"


def test_an_input_of_another_task_stays_there():
    remote = "/job:localhost/replica:0/task:1/device:CPU:0"
    both = seen_from_the_first([CPU, GPU0, remote])
    found = EagerPlacer(both, shipped()).place(eager("Identity", (FLOAT, remote), T=FLOAT))
    arg, *_ = found.body.nodes
    assert (found.device, found.refusal, arg.device) == (GPU0, None, remote)


def test_another_task_soft_places_nothing():
    remote = "/job:localhost/replica:0/task:1/device:CPU"
    both = EagerPlacer(seen_from_the_first([CPU, GPU0, f"{remote}:0"]), shipped())
    assert both.place(eager("Identity", (FLOAT, CPU), scope=f"{remote}:0", T=FLOAT)).device == f"{remote}:0"
    refusal = both.place(eager("Identity", (FLOAT, CPU), scope=f"{remote}:7", T=FLOAT)).refusal
    assert (refusal.code, refusal.message) == ("INVALID_ARGUMENT", f"{remote}:7 unknown device.")


def test_a_call_has_a_device_and_no_little_graph():
    called = placed(eager("PartitionedCall", (FLOAT, CPU), Tin=(FLOAT,), Tout=(FLOAT,)))
    assert (called.device, called.body) == (GPU0, None)


def test_ops_that_no_input_pins():
    resource = (RESOURCE, GPU1)
    assert pinning_resource(eager("IdentityN", resource, T=(RESOURCE,))) == -1
    assert pinning_resource(eager("AddV2", (FLOAT, CPU), resource)) == 1
    small = (INT, CPU, True)
    assert is_pinned_small(eager("Mul", small, small))
    assert not any(map(is_pinned_small, (eager("NoOp"), eager("RandomUniform", small), eager("XRTAllocate", small))))
