"""The machine a user asks for: lists, TOML files, visible GPUs."""

from dataclasses import replace

import pytest

from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import DeviceSet, make_device
from simplace.errors import DeviceSpecError
from simplace.machine.device_links import find_device_links
from simplace.machine.machine import GIB, Machine, SharedLink, Task, make_cluster
from simplace.machine.machine_file import parse_machine, parse_visible, read_machine_file

FILE = """
name = "a workstation"
cpus = 2
visible = [1, 0]

[[gpu]]
name = "T4"
count = 2
memory = "8 GiB"
virtual = ["2 GiB", "2 GiB"]
"""


def test_a_list_counts_devices():
    assert parse_machine("cpu:2,gpu:4", None, {}) == (Machine(2, 4), "devices as given: cpu:2,gpu:4")


def test_without_a_list_the_default_is_said():
    made, note = parse_machine(None, None, {})
    assert made.cpus == 1
    assert note.startswith("devices")


def test_a_file_describes_a_machine(tmp_path):
    file = tmp_path / "machine.toml"
    file.write_text(FILE)
    made, note = parse_machine(str(file), None, {})
    assert made == Machine(2, 2, 8 * GIB, ((2 * GIB, 2 * GIB),) * 2, (1, 0))
    assert made.logical_gpus == 4
    assert note == f"devices as {file} describes them: a workstation with 2 x T4, 8 GiB"


def test_a_list_of_tasks_is_a_cluster():
    two_workers = (Task("worker", 0, gpus=2), Task("worker", 1, gpus=2))
    assert parse_machine("2xworker=gpu:2", None, {})[0] == make_cluster(two_workers) == Machine(1, 2, tasks=two_workers)
    made, _ = parse_machine("/job:worker/task:0=cpu:2 /job:chief/task:0=cpu:1", None, {"CUDA_VISIBLE_DEVICES": ""})
    assert made == Machine(1, 0, tasks=(Task("chief", 0), Task("worker", 0, 2)))


def test_a_file_describes_a_cluster(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text('connected = true\nmemory = "8 GiB"\n[[task]]\njob = "ps"\n[[task]]\ncount = 2\ngpus = 1\n')
    tasks = (Task("ps", 0), Task("worker", 0, gpus=1), Task("worker", 1, gpus=1))
    assert read_machine_file(file) == (make_cluster(tasks, gpu_memory=8 * GIB, connected=True), "a cluster")


@pytest.mark.parametrize(
    ("spec", "visible", "line"),
    [
        ("worker=gpu:1+ps", None, "cannot read 'ps' in the task list .* like ps=cpu:1"),
        ("worker=gpu:1+/job:worker/task:0=cpu:1", None, "names /job:worker/task:0 twice"),
        ("99xworker=cpu:1", None, "has 99 tasks; a cluster has 1 to 64"),
        ("worker=tpu:1", None, "is not a device type"),
        ("worker=gpu:1", "0", "--visible is for one machine"),
    ],
)
def test_wrong_tasks_are_refused_in_one_line(spec, visible, line):
    with pytest.raises(DeviceSpecError, match=line):
        parse_machine(spec, visible, {})


@pytest.mark.parametrize(
    ("environment", "visible", "numbers"),
    [
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, None, (2, 0)),
        ({"CUDA_VISIBLE_DEVICES": ""}, None, ()),
        ({"CUDA_VISIBLE_DEVICES": "1,-1,0"}, None, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, "3", (3,)),
    ],
)
def test_visible_gpus_are_renumbered(environment, visible, numbers):
    made, note = parse_machine("gpu:4", visible, environment)
    assert made.visible == numbers
    assert all(f"GPU:{i} is physical GPU {number}" in note for i, number in enumerate(numbers))


@pytest.mark.parametrize("text", ["4", "0,0", "x", "-1", "1,"])
def test_an_impossible_visible_list_is_refused(text):
    with pytest.raises(DeviceSpecError, match="the numbers are 0 to 1"):
        parse_visible(text, 2, strict=True)


SHARED = """
[[gpu]]
count = 3
virtual = ["2 GiB", "2 GiB"]

[[shared_link]]
name = "switch"
bandwidth = "12.5 GB/s"
gpus = [0, 2]

[[shared_link]]
name = "port"
gpus = [0, 1, 2]
"""
CLUSTER = """
[[task]]
count = 2
gpus = 2

[[shared_link]]
name = "switch"
gpus = [0, 1]
task = "worker:1"

[[shared_link]]
name = "card"
bandwidth = "25 Gbit/s"
tasks = ["/job:worker/task:0", "worker:1"]
"""
LOCAL = "/job:localhost/replica:0/task:0/device:GPU:"


def read(text, tmp_path):
    file = tmp_path / "machine.toml"
    file.write_text(text)
    return read_machine_file(file)[0]


def test_a_file_describes_shared_links(tmp_path):
    assert read(SHARED, tmp_path).shared_links == (
        SharedLink("switch", 12_500_000_000, (0, 2)),
        SharedLink("port", 0, (0, 1, 2)),
    )
    assert read(CLUSTER, tmp_path).shared_links == (
        SharedLink("switch", 0, (0, 1), "/job:worker/task:1"),
        SharedLink("card", 3_125_000_000, tasks=("/job:worker/task:0", "/job:worker/task:1")),
    )


def test_shared_links_are_those_of_the_gpus_that_a_program_sees(tmp_path):
    made = replace(read(SHARED, tmp_path), visible=(1, 2))
    seen = {f"{LOCAL}{i}": number for i, number in enumerate(made.hardware_of_gpus)}
    assert find_device_links(made, devices(seen)) == (
        DeviceLink("switch", 12_500_000_000, (f"{LOCAL}2", f"{LOCAL}3")),
        DeviceLink("port", 0, tuple(f"{LOCAL}{i}" for i in range(4))),
        DeviceLink("PCIe of physical GPU 1", 0, (f"{LOCAL}0", f"{LOCAL}1")),
        DeviceLink("PCIe of physical GPU 2", 0, (f"{LOCAL}2", f"{LOCAL}3")),
    )
    assert find_device_links(made, devices({})) == ()


def test_the_logical_gpus_of_a_card_share_its_link():
    seen = dict(zip([f"{LOCAL}{i}" for i in range(4)], (0, 2, 2, 1), strict=True))
    one = SharedLink("card of a slow slot", 10**9, (2,))
    assert find_device_links(Machine(gpus=3), devices(seen)) == (
        DeviceLink("PCIe of physical GPU 2", 0, (f"{LOCAL}1", f"{LOCAL}2")),
    )
    assert find_device_links(Machine(gpus=3, shared_links=(one,)), devices(seen)) == (
        DeviceLink("card of a slow slot", 10**9, (f"{LOCAL}1", f"{LOCAL}2")),
    )


def test_each_task_has_cards_of_its_own():
    tasks = {f"/job:worker/replica:0/task:{task}/device:GPU:{gpu}": 0 for task in range(2) for gpu in range(2)}
    assert [(link.name, len(link.gpus)) for link in find_device_links(Machine(), devices(tasks))] == [
        ("PCIe of physical GPU 0 of worker/0", 2),
        ("PCIe of physical GPU 0 of worker/1", 2),
    ]


def devices(cards: dict[str, int]) -> DeviceSet:
    return DeviceSet(map(make_device, cards)).on_cards(cards)


def test_each_process_of_a_programs_own_cluster_has_the_links_of_the_machine(tmp_path):
    names = [f"/job:worker/replica:0/task:{task}/device:GPU:0" for task in range(2)]
    found = find_device_links(read(SHARED, tmp_path), devices(dict.fromkeys(names, 0)))
    assert [(link.name, list(link.gpus)) for link in found if "switch" in link.name] == [
        ("switch of worker/0", names[:1]),
        ("switch of worker/1", names[1:]),
    ]


def test_the_links_of_a_cluster_are_those_of_its_tasks(tmp_path):
    made = read(CLUSTER, tmp_path)
    names = [f"/job:worker/replica:0/task:{task}/device:GPU:{gpu}" for task in range(2) for gpu in range(2)]
    tasks = ("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
    assert find_device_links(made, devices({name: int(name[-1]) for name in names})) == (
        DeviceLink("switch", 0, (names[2], names[3])),
        DeviceLink("card", 3_125_000_000, tasks=tasks),
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("gpus = 2", "'gpus', which is unknown; known are cpus, gpu, name, shared_link, task, visible"),
        ("cpus = 0", "must be a whole number from 1 to 64"),
        ("cpus = true", "must be a whole number"),
        ("gpu = 3", "write each kind of GPU as a table"),
        ("[[gpu]]\nmemory = '4 apples'", "is not an amount of memory"),
        ("[[gpu]]\ncount = 65", "from 0 to 64"),
        ("[[gpu]]\nmemory = '4 GiB'\nvirtual = ['3 GiB', '2 GiB']", "need more memory than the 4096 MiB"),
        ("[[gpu]]\nmemory = '4 GiB'\n[[gpu]]\nmemory = '8 GiB'", "the same memory"),
        ("visible = [0]", "this machine has no GPU"),
        ("visible = 3", "visible = 3 must be a list"),
        ("[[gpu]]\nvirtual = 3", "virtual = 3 must be a list"),
        ("task = 3", "write each task of a cluster as a table"),
        ("task = []", "there are 0 tasks"),
        ("[[task]]\njob = 'a b'", "must be a name of letters"),
        ("[[task]]\n[[task]]\nindex = 0", "/job:worker/task:0 is listed twice"),
        ("connected = 1\n[[task]]", "must be true or false"),
        ("cpus = 1\n[[task]]", "the file of a cluster has 'cpus', which is unknown"),
        ("shared_link = 3", "write each link that is shared as a table"),
        ("[[shared_link]]\ngpus = [0]", "needs a name, such as"),
        ("[[shared_link]]\nname = 3\ngpus = [0]", "needs a name, such as"),
        (
            "[[shared_link]]\nname = 'a'\nsize = 1",
            "has 'size', which is unknown; known are bandwidth, gpus, name, task",
        ),
        ("[[shared_link]]\nname = 'a'", "'a' needs a list of either gpus or tasks"),
        ("[[shared_link]]\nname = 'a'\ngpus = [0]\ntasks = ['worker:0']", "'a' needs a list of either gpus or tasks"),
        ("[[shared_link]]\nname = 'a'\ngpus = [0]", "0 in the shared link 'a' is not the number of a GPU; there is no"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ngpus = [1]", "1 in the shared link 'a' is not .* numbers are 0 to 0"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ngpus = [true]", "True in the shared link 'a' is not the number"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ngpus = 0", "gpus of the shared link 'a' = 0 must be a list"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ngpus = []", "'a' lists nothing that shares it"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ngpus = [0, 0]", "'a' lists 0 twice"),
        ("[[gpu]]\n" + 2 * "[[shared_link]]\nname = 'a'\ngpus = [0]\n", "two shared links have the name 'a'"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\nbandwidth = '16'\ngpus = [0]", "bandwidth '16' of the shared link 'a'"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\nbandwidth = '1 Gb/s'\ngpus = [0]", '"16 GB/s", or bits as in'),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\nbandwidth = '0 GB/s'\ngpus = [0]", "'0 GB/s' of the shared link"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\nbandwidth = 16\ngpus = [0]", "bandwidth 16 of the shared link"),
        ("[[gpu]]\n[[shared_link]]\nname = 'a'\ntask = 'worker:0'\ngpus = [0]", "the file describes no cluster"),
        ("[[shared_link]]\nname = 'a'\ntasks = ['worker:0']", "the file describes no cluster"),
        ("[[task]]\n[[shared_link]]\nname = 'a'\ntasks = ['ps:0']", "'ps:0' .* is not a task .* it has worker:0"),
        ("[[task]]\n[[shared_link]]\nname = 'a'\ntasks = [0]", "0 in the shared link 'a' is not a task"),
        ("[[task]]\n[[shared_link]]\nname = 'a'\ngpus = [0]", "'a' needs the task of its gpus"),
        ("[[task]]\n[[shared_link]]\nname = 'a'\ntask = 'worker:0'\ngpus = [0]", "there is no GPU"),
        ("[[task]]\n[[shared_link]]\nname = 'a'\ntask = 'x'\ntasks = ['worker:0']", "has both task, .* and tasks"),
        ("cpus = ", "not a TOML file"),
        ("\xff\xfe", "not a TOML file"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(text, line, tmp_path):
    file = tmp_path / "machine.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(DeviceSpecError, match=line) as caught:
        read_machine_file(file)
    assert str(file) in str(caught.value)
