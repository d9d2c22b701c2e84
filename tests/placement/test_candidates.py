from __future__ import annotations

import pytest

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet, make_device
from simplace.placement.candidates import CandidateFinder, Candidates, Fallback, order_candidates
from simplace.placement.kernel_support import Types

TASK = "/job:localhost/replica:0/task:0/device:"
BOTH: Types = (("GPU", 0), ("CPU", 0))
NOWHERE = DeviceName()


def make(*names: str, remote: tuple[str, ...] = ()) -> DeviceSet:
    return DeviceSet(make_device(TASK + name, is_local=name not in remote) for name in names)


def ordered(devices: DeviceSet, types: Types, default: str = "") -> list[str]:
    chosen = devices.by_name[TASK + default] if default else None
    return [d.short for d in order_candidates(devices, devices, types, chosen)]


def find(
    devices: DeviceSet, soft: bool, requested: str, types: Types, assigned: str = "", resource: str = ""
) -> Candidates:
    names = [DeviceName.parse(text) or NOWHERE for text in (requested, assigned, resource)]
    return CandidateFinder(devices, None, soft).find(*names, types)


def test_types_go_by_factory_priority_and_names_as_text() -> None:
    devices = make("CPU:0", "CPU:1", "GPU:2", "GPU:10", "GPU:0")
    assert ordered(devices, BOTH) == ["GPU:0", "GPU:10", "GPU:2", "CPU:0", "CPU:1"]


def test_types_without_a_kernel_are_left_out() -> None:
    assert ordered(make("CPU:0", "GPU:0"), (("CPU", 0),)) == ["CPU:0"]


def test_kernel_priority_beats_device_type() -> None:
    assert ordered(make("CPU:0", "GPU:0"), (("CPU", 2), ("GPU", 1))) == ["CPU:0", "GPU:0"]


def test_default_device_comes_first_whatever_its_type() -> None:
    devices = make("CPU:0", "GPU:0", "GPU:1")
    assert ordered(devices, BOTH, "CPU:0") == ["CPU:0", "GPU:0", "GPU:1"]
    assert ordered(devices, (("CPU", 2), ("GPU", 1)), "GPU:1") == ["GPU:1", "CPU:0", "GPU:0"]
    assert ordered(devices, (("CPU", 0),), "GPU:1") == ["CPU:0"]


def test_local_comes_before_remote() -> None:
    assert ordered(make("GPU:0", "GPU:1", "CPU:0", remote=("GPU:0",)), BOTH) == ["GPU:1", "GPU:0", "CPU:0"]


def test_composite_device_takes_kernels_of_any_type() -> None:
    devices = DeviceSet((make_device(TASK + name) for name in ("CPU:0", "COMPOSITE:0")), {"CPU": 50, "COMPOSITE": -1})
    assert ordered(devices, (("CPU", 0),)) == ["CPU:0", "COMPOSITE:0"]


@pytest.mark.parametrize(
    ("soft", "request_", "types", "assigned", "resource", "devices", "fallback"),
    [
        (True, "/GPU:1", BOTH, "", "", ["GPU:1"], Fallback.NONE),
        (True, "/GPU:7", BOTH, "", "", ["GPU:0", "GPU:1", "CPU:0"], Fallback.REQUEST_DROPPED),
        (True, "/GPU:0", (("CPU", 0),), "", "", ["CPU:0"], Fallback.REQUEST_DROPPED),
        (True, "/CPU:0", (("GPU", 0),), "", "/CPU:0", ["GPU:0", "GPU:1"], Fallback.RESOURCE_DROPPED),
        (True, "/CPU:0", (("GPU", 0),), "/CPU:0", "", [], Fallback.NONE),
        (True, "/job:other", BOTH, "", "", [], Fallback.NONE),
        (False, "/GPU:7", BOTH, "", "", [], Fallback.NONE),
        (False, "/GPU:*", BOTH, "", "", ["GPU:0", "GPU:1"], Fallback.NONE),
    ],
)
def test_soft_placement_drops_no_more_than_it_must(
    soft: bool, request_: str, types: Types, assigned: str, resource: str, devices: list[str], fallback: Fallback
) -> None:
    found = find(make("CPU:0", "GPU:0", "GPU:1"), soft, request_, types, assigned, resource)
    assert ([d.short for d in found.devices], found.fallback) == (devices, fallback)


def test_same_constraints_are_searched_once() -> None:
    finder = CandidateFinder(make("CPU:0"), None, True)
    assert finder.find(NOWHERE, NOWHERE, NOWHERE, BOTH) is finder.find(NOWHERE, NOWHERE, NOWHERE, BOTH)


def test_a_session_lists_its_own_devices_after_those_of_other_tasks() -> None:
    devices = make("CPU:0", "GPU:0", "CPU:1", remote=("CPU:1",))
    names = [one.short for one in CandidateFinder(devices, None, soft_placement=True).devices()]
    assert names == ["CPU:1", "CPU:0", "GPU:0"]
    names = [one.short for one in CandidateFinder(devices, devices.devices[0], soft_placement=True).devices()]
    assert names == ["CPU:0", "GPU:0", "CPU:1"]
