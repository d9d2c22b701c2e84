"""Which physical GPUs share a link, where a program chooses, hides or splits GPUs itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.api import Placements, Settings, place
from simplace.machine.machine import GIB, Machine, SharedLink, Task, make_cluster

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

LINK = SharedLink("switch", 0, (1, 2))
STEP = """\
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(3.0))
"""
OF_A_SESSION = """\
import tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default():
    y = tf.constant(3.0) * 2.0
    with v1.Session(config=v1.ConfigProto(gpu_options=v1.GPUOptions(visible_device_list="2,0"))) as session:
        session.run(y)
"""


def shown(text: str, machine: Machine, tmp_path: Path) -> Placements:
    path = tmp_path / "model.py"
    path.write_text(text)
    result = place(str(path), Settings(machine))
    assert result.failure is None
    return result


def sharers(text: str, machine: Machine, tmp_path: Path) -> list[tuple[str, int]]:
    """List the GPUs behind the switch in the largest program, by short name with the physical one."""
    devices = shown(text, machine, tmp_path).largest().placement.devices
    sharing = [devices.by_name[name] for link in devices.links if link.name == LINK.name for name in link.gpus]
    return [(device.short, device.card) for device in sharing]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("", [("GPU:1", 1), ("GPU:2", 2)]),
        ("tf.config.set_visible_devices(gpus[2], 'GPU')", [("GPU:0", 2)]),
        ("tf.config.set_visible_devices(gpus[0], 'GPU')", []),
        (
            "tf.config.set_logical_device_configuration(gpus[1], 2 * [tf.config.LogicalDeviceConfiguration(1024)])",
            [("GPU:1", 1), ("GPU:2", 1), ("GPU:3", 2)],
        ),
    ],
)
def test_gpus_that_a_program_hides_or_splits(lines: str, found: list[tuple[str, int]], tmp_path: Path) -> None:
    text = f"import tensorflow as tf\ngpus = tf.config.list_physical_devices('GPU')\n{lines}\n{STEP}"
    assert sharers(text, Machine(gpus=3, shared_links=(LINK,)), tmp_path) == found


def test_gpus_that_the_machine_hides_and_splits(tmp_path: Path) -> None:
    machine = Machine(gpus=3, virtual_gpus=((), (), (GIB, GIB)), visible=(2, 0), shared_links=(LINK,))
    assert sharers(f"import tensorflow as tf\n{STEP}", machine, tmp_path) == [("GPU:0", 2), ("GPU:1", 2)]


def test_gpus_that_a_program_hides_before_tensorflow_starts(tmp_path: Path) -> None:
    text = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '2,1'\nimport tensorflow as tf\n{STEP}"
    machine = Machine(gpus=3, shared_links=(LINK,))
    assert sharers(text, machine, tmp_path) == [("GPU:0", 2), ("GPU:1", 1)]


def test_logical_gpus_share_the_link_of_their_card(tmp_path: Path) -> None:
    split = "tf.config.set_logical_device_configuration(gpus[1], 2 * [tf.config.LogicalDeviceConfiguration(1024)])"
    text = f"import tensorflow as tf\ngpus = tf.config.list_physical_devices('GPU')\n{split}\n{STEP}"
    devices = shown(text, Machine(gpus=2), tmp_path).largest().placement.devices
    names = [device.name for device in devices if device.type == "GPU"]
    assert [(link.name, link.gpus) for link in devices.links] == [("PCIe of physical GPU 1", tuple(names[1:]))]
    assert devices.cards == {names[0]: (names[0],), names[1]: tuple(names[1:]), names[2]: tuple(names[1:])}


def test_gpus_that_a_session_chooses(tmp_path: Path) -> None:
    assert sharers(OF_A_SESSION, Machine(gpus=3, shared_links=(LINK,)), tmp_path) == [("GPU:0", 2)]


def test_links_of_a_cluster(tmp_path: Path) -> None:
    links = (SharedLink("switch", 0, (0, 1), "/job:worker/task:1"), SharedLink("card", tasks=("/job:worker/task:0",)))
    tasks = tuple(Task("worker", i, gpus=2) for i in range(2))
    machine = make_cluster(tasks, connected=True, shared_links=links)
    devices = shown(f"import tensorflow as tf\n{STEP}", machine, tmp_path).largest().placement.devices
    found = [(link.name, [devices.by_name[name].card for name in link.gpus], link.tasks) for link in devices.links]
    assert found == [("switch", [0, 1], ()), ("card", [], ("/job:worker/replica:0/task:0",))]
    assert all("task:1" in name for name in devices.links[0].gpus)


def test_other_tasks_have_split_cards_too(tmp_path: Path) -> None:
    text = """\
import tensorflow as tf
server = tf.distribute.Server.create_local_server()
tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({"worker": [server.target.partition("//")[2]]}))
@tf.function
def step(x):
    with tf.device("/job:worker/device:GPU:1"):
        return x * 2.0
step(tf.constant(3.0))
"""
    machine = Machine(gpus=1, virtual_gpus=((GIB, GIB),))
    devices = shown(text, machine, tmp_path).largest().placement.devices
    found = [(device.short, device.card, device.memory) for device in devices if device.type == "GPU"]
    assert found == [(f"{task}GPU:{i}", 0, GIB) for task in ("", "worker/0/") for i in range(2)]
