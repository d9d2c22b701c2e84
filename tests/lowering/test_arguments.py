"""Devices of a function's arguments and results before placement."""

import pytest

from simplace.devices.device_set import seen_from_the_first
from simplace.errors import TargetError
from simplace.lowering.pin_args_and_rets import refuse_unseen
from simplace.program.status import Refused
from tests.lowering.worlds import GPU1, call_program, function, prepared, same


def test_results_follow_what_their_producers_ask_for():
    f = function(
        "f(x: float, v: resource) -> a: float, b: float, c: float, d: float, e: float",
        """
        free = Relu(x)
        gpu = Relu(x) @/device:GPU:1
        through = Identity(gpu:activations:0)
        any = Relu(x) @/device:GPU:*
        tied = Relu(x) @/device:GPU:1 {_class=(b'loc:@free', b'loc:@gpu')}
        """,
        {
            "a": "x",
            "b": "free:activations:0",
            "c": "through:output:0",
            "d": "any:activations:0",
            "e": "tied:activations:0",
        },
    )
    assert same(
        prepared(call_program(f, devices=(GPU1, GPU1))),
        """
        x = _Arg() !GPU:1
        v = _Arg() !GPU:1
        free = Relu(x)
        gpu = Relu(x) @/device:GPU:1
        through = Identity(gpu)
        any = Relu(x) @/device:GPU:*
        tied = Relu(x) @/device:GPU:1 [loc:@free, loc:@gpu]
        a_RetVal = _Retval(x) !GPU:1
        b_RetVal = _Retval(free)
        c_RetVal = _Retval(through) !GPU:1
        d_RetVal = _Retval(any)
        e_RetVal = _Retval(tied) [loc:@free]
        """,
    )


def test_resource_of_a_call_is_left_to_the_placer():
    g = function("g(v: resource) -> w: resource", "", {"w": "v"}, attrs={"_noinline": True})
    f = function(
        "f(v: resource) -> w: resource",
        "k = PartitionedCall(v) @/device:GPU:1 {f=fn('g'), Tin=(resource,), Tout=(resource,)}",
        {"w": "k:output:0"},
    )
    assert same(
        prepared(call_program(f, g)),
        """
        v = _Arg() !CPU:0
        k = PartitionedCall(v_k) @/device:GPU:1
        w_RetVal = _Retval(k_w_RetVal)
        v_k = Identity(v)
        k_w_RetVal = Identity(k)
        """,
    )


def test_unparsable_device_is_refused_as_in_tensorflow():
    f = function("f(x: float) -> y: float", "a = Relu(x) @gpu1", {"y": "a:activations:0"})
    with pytest.raises(Refused) as error:
        prepared(call_program(f))
    assert str(error.value) == "Failed to parse explicit device specification gpu1"


def test_wrong_number_of_argument_devices():
    with pytest.raises(TargetError, match="function 'f' takes 1 arguments, but devices are given for 2"):
        prepared(call_program(function("f(x: float) -> y: float", "", {"y": "x"}), devices=(GPU1, GPU1)))


def test_an_argument_on_a_task_out_of_sight_is_refused():
    home, other = "/job:a/replica:0/task:0/device:CPU:0", "/job:b/replica:0/task:0/device:CPU:0"
    refuse_unseen((home, other, ""), seen_from_the_first([home, other]))
    with pytest.raises(Refused, match="task:0/device:CPU:0 unknown device"):
        refuse_unseen(("/job:c/replica:0/task:0/device:CPU:0",), seen_from_the_first([home, other]))
    refuse_unseen((other,), seen_from_the_first([home]))  # there the placer misses the device
