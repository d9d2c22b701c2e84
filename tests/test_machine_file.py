"""The machine a user asks for: lists, TOML files, visible GPUs."""

import pytest

from simplace.errors import DeviceSpecError
from simplace.machine.machine import GIB, Machine, Task, make_cluster
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("gpus = 2", "'gpus', which is unknown; known are cpus, gpu, name, task, visible"),
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
