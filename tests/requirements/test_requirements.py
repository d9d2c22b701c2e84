"""Requirements on a placement: what they mean, and what does not meet them."""

import pytest

from simplace.checks.requirements import find_violations, parse_requirement
from simplace.devices.device_set import local_devices
from simplace.errors import RequirementError
from simplace.result import Placed, Result
from tests.worlds import constant, node, place


def result(*nodes, **settings):
    placement = place(*nodes, **settings)
    return Result("g.pb", "2.21.0", "shipped", placement.devices, (Placed(placement),))


WORLD = (
    constant("a", (2, 3), device="/CPU:0"),
    node("dense/MatMul", "MatMul", "a", "a"),
    node("MatMul_1", "MatMul", "a", "a", device="/GPU:1"),
    node("text", "AsString", "a", device="/GPU:0"),
)


def unmet(*texts, world=WORLD, **settings):
    found = find_violations(result(*world, **settings), [parse_requirement(text) for text in texts])
    return [(v.requirement.text, v.node, v.device) for v in found]


@pytest.mark.parametrize(
    "text",
    [
        "MatMul*=gpu:*", "MatMul*=GPU", "op:MatMul=gpu:0|gpu:1", "dense/*=/device:GPU:0", "*=*", "MatMul_1=/gpu:1",
        "op:AsString=cpu:0", "op:MatMul!=cpu:*", "op:MatMul=!cpu", "dense/MatMul=/job:localhost/task:0/device:GPU:0",
        "dense/MatMul=localhost/0/gpu:0",
    ],
)  # fmt: skip
def test_met(text):
    assert unmet(text) == []


def test_unmet_names_each_node():
    assert unmet("MatMul*=gpu:1", "a!=cpu") == [
        ("MatMul*=gpu:1", "dense/MatMul", "GPU:0"),
        ("a!=cpu", "a", "CPU:0"),
    ]


def test_a_violation_says_why():
    (found,) = find_violations(result(*WORLD), [parse_requirement("op:AsString=gpu")])
    assert found.because == (
        "It requested /GPU:0, but AsString has no kernel there for its data types; soft placement chose CPU:0 instead."
    )


def test_a_glob_that_means_no_node_is_unmet():
    (found,) = find_violations(result(*WORLD), [parse_requirement("MatMull=gpu")])
    assert found.because == "No node name matches 'MatMull'; the closest are MatMul_1, dense/MatMul."
    (found,) = find_violations(result(*WORLD), [parse_requirement("op:Matmul=gpu")])
    assert found.because == "No op type matches 'Matmul'; the closest are MatMul."


def test_a_device_that_is_not_there_is_named():
    (found,) = find_violations(result(*WORLD), [parse_requirement("MatMul_1=gpu:7")])
    assert found.because.endswith("No device here has that name; there are CPU:0, GPU:0, GPU:1.")


def test_a_refused_placement_meets_nothing():
    (found,) = find_violations(result(*WORLD, soft=False), [parse_requirement("op:AsString=gpu")])
    assert found.device == ""
    assert found.because.startswith("TensorFlow refuses to place this graph: Cannot assign a device")


@pytest.mark.parametrize("text", ["", "MatMul", "=gpu", "MatMul=", "!=gpu", "op:=gpu"])
def test_half_a_requirement_is_refused(text):
    with pytest.raises(RequirementError, match="cannot read the requirement"):
        parse_requirement(text)


def test_no_device_is_refused():
    with pytest.raises(RequirementError, match="cannot read the device 'gpu0:x'"):
        parse_requirement("a=gpu0:x")


def test_devices_are_those_of_the_world():
    assert str(result(*WORLD).devices) == str(local_devices([("CPU", 1), ("GPU", 2)]))
