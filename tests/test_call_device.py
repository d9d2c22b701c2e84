"""The device of a function call, on one machine and in a cluster."""

import pytest

from simplace.devices.device_set import seen_from_the_first
from simplace.placement.default_device import call_device
from simplace.program.status import Refused

FIRST, SECOND = "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
DEVICES = seen_from_the_first([
    f"{FIRST}/device:CPU:0", f"{FIRST}/device:CPU:1", f"{SECOND}/device:CPU:0", f"{SECOND}/device:GPU:0",
])  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "device"),
    [
        ("", f"{FIRST}/device:CPU:0"),
        (f"{SECOND}/device:GPU:0", f"{SECOND}/device:GPU:0"),
        (SECOND, f"{SECOND}/device:GPU:0"),
        (f"{FIRST}/device:GPU:0", f"{FIRST}/device:CPU:0"),
    ],
)
def test_a_call_stays_on_the_task_that_it_names_or_else_at_home(scope, device):
    assert call_device(scope, DEVICES, True).name == device


def test_a_call_on_a_missing_task_is_refused():
    with pytest.raises(Refused, match="/job:worker/replica:0/task:7"):
        call_device("/job:worker/replica:0/task:7", DEVICES, True)
