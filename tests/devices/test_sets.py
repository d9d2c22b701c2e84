from __future__ import annotations

import pytest

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet, local_devices, make_device, seen_from_the_first
from simplace.errors import DeviceSpecError
from simplace.machine.device_list import parse_counts, parse_tasks

TASK = "/job:localhost/replica:0/task:0/device:"


def test_devices_of_other_tasks_are_remote():
    names = [f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (1, 0, 1)]
    devices = seen_from_the_first([*names[:2], "/job:ps/replica:0/task:1/device:GPU:0"])
    assert [d.is_local for d in devices] == [True, False, False]
    assert str(devices.home) == "/job:worker/replica:0/task:1"
    assert seen_from_the_first([]).home == DeviceName()


@pytest.mark.parametrize("text", ["", "worker", "0xworker=cpu:1", "worker=", "/job:worker=cpu:1"])
def test_tasks_that_cannot_be_read_are_refused(text):
    with pytest.raises(DeviceSpecError, match=r"tasks|device list"):
        parse_tasks(text)


def test_types_go_by_factory_priority_then_name() -> None:
    devices = DeviceSet(make_device(TASK + name) for name in ("CPU:0", "XLA_CPU:0", "GPU:0", "ABC:0", "GPU:1"))
    assert devices.types == ("GPU", "CPU", "ABC", "XLA_CPU")


def test_factory_priorities_are_data() -> None:
    devices = DeviceSet((make_device(TASK + name) for name in ("Slow:0", "Fast:0")), {"Fast": 51, "Slow": 50})
    assert devices.types == ("Fast", "Slow")


def test_matching_keeps_the_order_of_the_set() -> None:
    devices = local_devices([("GPU", 2), ("CPU", 1)])
    assert [d.short for d in devices.matching(DeviceName())] == ["CPU:0", "GPU:0", "GPU:1"]
    assert [d.short for d in devices.matching(DeviceName(type="GPU"))] == ["GPU:0", "GPU:1"]
    assert devices.matching(DeviceName(job="worker")) == ()


def test_find_takes_any_spelling_of_a_full_name() -> None:
    devices = local_devices([("GPU", 1), ("CPU", 1)])
    found = devices.find("/gpu:0/task:0/job:localhost/replica:0")
    assert found is devices.by_name[TASK + "GPU:0"]
    assert devices.find("/gpu:0") is None
    assert devices.find("nonsense") is None


def test_host_is_the_first_cpu() -> None:
    assert local_devices([("GPU", 1), ("CPU", 2)]).host.short == "CPU:0"


def test_composite_device_counts_as_any_type() -> None:
    composite, gpu = make_device(TASK + "COMPOSITE:0"), make_device(TASK + "GPU:0")
    assert composite.counts_as("GPU")
    assert gpu.counts_as("GPU")
    assert not gpu.counts_as("CPU")


def test_short_name_tells_tasks_apart() -> None:
    assert make_device(TASK + "GPU:1").short == "GPU:1"
    assert make_device("/job:worker/replica:0/task:1/device:CPU:0").short == "worker/1/CPU:0"


@pytest.mark.parametrize("text", ["/device:GPU:0", "/job:a/replica:0/task:0/device:GPU", "gpu:0", ""])
def test_partial_name_is_no_device(text: str) -> None:
    with pytest.raises(DeviceSpecError, match="is not a full device name; one looks like"):
        make_device(text)


def test_device_twice_is_refused() -> None:
    with pytest.raises(DeviceSpecError, match="is listed twice; each device needs a name of its own"):
        DeviceSet([make_device(TASK + "CPU:0"), make_device(TASK + "CPU:0")])


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("cpu:1,gpu:2", [("CPU", 1), ("GPU", 2)]),
        ("GPU", [("CPU", 1), ("GPU", 1)]),
        (" gpu:0 , cpu:3 ", [("CPU", 3), ("GPU", 0)]),
    ],
)
def test_counts_are_read(text: str, counts: list[tuple[str, int]]) -> None:
    assert sorted(parse_counts(text)) == counts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read '' in the device list ''; write a type and how many there are of it, such as cpu:1,gpu:2"),
        ("gpu:two", "cannot read 'gpu:two'"),
        ("gpu:-1", "cannot read 'gpu:-1'"),
        ("cpu:1,", "cannot read ''"),
        (
            "tpu:1",
            "'tpu' in the device list 'tpu:1' is not a device type that simplace can emulate; the types are cpu, gpu",
        ),
        ("gpu:1,GPU:2", "names 'GPU' twice; give their sum"),
        ("cpu:0,gpu:1", "CPU"),
    ],
)
def test_counts_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(DeviceSpecError) as caught:
        parse_counts(text)
    assert words.lower() in str(caught.value).lower()
