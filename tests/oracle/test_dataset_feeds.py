"""Which functions of datasets make what a program is given: by the very tensors, not by lines or by their order."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.analysis.schedule import Schedule
from simplace.executor.step_options import StepOptions
from simplace.suggestions.step_feeds import find_feeds

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

SETUP = """\
import numpy as np
import tensorflow as tf

weight = tf.Variable(tf.ones([8, 2]))


def one(row):
    return row + 1.0


def two(row):
    return row * 2.0


@tf.function
def step(batch):
    return tf.matmul(batch, weight)


def walk(data):
    for batch in data:
        step(batch)


rows = tf.data.Dataset.from_tensor_slices(tf.zeros([8, 8]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def list_feeds(text: str, program: str = "step", machine: str = "cpu:1,gpu:1") -> list[str]:
    """Name the functions that feed a program after some setup; "batched" tells that batches are made of the results."""
    Path("model.py").write_text(SETUP + text)
    result = simplace.place("model.py", machine)
    schedule = Schedule.of(result.program(program).placement, StepOptions())
    return sorted(
        name.removeprefix("__inference_").rpartition("_")[0] + " batched" * is_batched
        for name, is_batched in find_feeds(result, schedule).items()
    )


FED = {
    "elements": ("walk(rows.map(one).batch(4))", ["Dataset_map_one batched"]),
    "of another loop": (
        "for batch in rows.map(one).batch(4):\n    tf.matmul(batch, weight)\nwalk(rows.map(two).batch(4))",
        ["Dataset_map_two batched"],
    ),
    "arrays, no dataset": (
        "for batch in rows.map(one).batch(4):\n    tf.matmul(batch, weight)\nstep(np.ones((4, 8), 'f'))",
        [],
    ),
    "batched before": ("walk(rows.batch(4).map(one))", ["Dataset_map_one"]),
    "another dataset makes batches": (
        "walk(rows.batch(4).map(one))\nlist(rows.map(two).batch(4))",
        ["Dataset_map_one"],
    ),
    "both, zipped": (
        "for a, b in tf.data.Dataset.zip((rows.map(one), rows.map(two))).batch(4):\n    step(a + b)",
        ["Dataset_map_one batched", "Dataset_map_two batched"],
    ),
    "both, one after the other": (
        "for data in rows.map(one), rows.map(two):\n    walk(data.batch(4))",
        ["Dataset_map_one batched", "Dataset_map_two batched"],
    ),
    "through ops and functions": (
        "half = tf.function(lambda x: x / 2.0)\nfor batch in rows.map(one).batch(4):\n    step(half(tf.abs(batch)))",
        ["Dataset_map_one batched"],
    ),
    "a mean of another": (
        "mean = sum(rows.map(one)) / 8.0\nfor batch in rows.map(two).batch(4):\n    step(batch - mean)",
        ["Dataset_map_two batched"],
    ),
    "a mean of another, captured": (
        "mean = sum(rows.map(one)) / 8.0\nwalk(rows.map(two).map(lambda row: row - mean).batch(4))",
        ["Dataset_map_lambda batched", "Dataset_map_two batched"],
    ),
    "a weight that another has trained": (
        "for batch in rows.map(one).batch(4):\n    weight.assign_add(tf.transpose(batch)[:, :2])\n"
        "walk(rows.map(two).batch(4))",
        ["Dataset_map_two batched"],
    ),
    "only once": ("step(next(iter(rows.map(one).batch(4))))", ["Dataset_map_one batched"]),
    "a dataset in a dataset": (
        "walk(tf.data.Dataset.range(2).flat_map(lambda i: rows.map(one)).batch(4))",
        ["Dataset_flat_map_lambda batched", "Dataset_map_one batched"],
    ),
    "through NumPy": (
        "for batch in rows.map(one).batch(4).as_numpy_iterator():\n    step(batch)",
        ["Dataset_map_one batched"],
    ),
    "through NumPy and on": (
        "list(rows.map(two))\nfor batch in rows.map(one).batch(4):\n    step(batch.numpy() / 2)\n"
        "    step(np.ones((2, 8), 'f'))",
        ["Dataset_map_one batched"],
    ),
    "arrays after a dataset": (
        "for batch in rows.map(one).batch(4):\n    step(np.ones((4, 8), 'f'))\nfor _ in range(3):\n"
        "    step(np.ones((4, 8), 'f'))",
        [],
    ),
    "batches in a dataset": (
        "walk(tf.data.Dataset.range(2).flat_map(lambda i: rows.map(one).batch(4).map(two)))",
        ["Dataset_flat_map_lambda", "Dataset_map_one batched", "Dataset_map_two"],
    ),
}


@pytest.mark.parametrize(("text", "feeds"), FED.values(), ids=FED)
def test_a_step_is_fed_by_the_dataset_of_its_arguments(text: str, feeds: list[str]) -> None:
    assert list_feeds(text) == feeds


INSIDE = """\
@tf.function
def pull(iterator):
    return tf.matmul(next(iterator), weight)


@tf.function
def whole(data):
    for batch in data.map(two):
        tf.matmul(batch, weight)


list(rows.map(two))
iterator = iter(rows.map(one).batch(4))
pull(iterator)
pull(iterator)
whole(rows.map(one).batch(4))
"""


@pytest.mark.parametrize(
    ("program", "feeds"),
    [
        ("pull", ["Dataset_map_one batched"]),
        ("whole", ["Dataset_map_one batched", "Dataset_map_two", "Dataset_scan_scan_body", "reduce_reduce_body"]),
    ],
)
def test_a_function_takes_the_elements_itself(program: str, feeds: list[str]) -> None:
    assert list_feeds(INSIDE, program) == feeds


KERAS = """\
with tf.distribute.MirroredStrategy().scope() if {replicas} > 1 else tf.name_scope("alone"):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    model.compile("sgd", "mse")
list(rows.map(two).batch(4))
model.fit({data})
"""


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(
    ("data", "own"),
    [
        ("np.ones((8, 8), 'f'), np.ones((8, 2), 'f')", []),
        ("rows.map(one).map(lambda x: (x, x[:2])).batch(4)", ["Dataset_map_lambda batched", "Dataset_map_one batched"]),
    ],
    ids=["arrays", "dataset"],
)
def test_fit_is_fed_by_what_it_is_given(replicas: int, data: str, own: list[str]) -> None:
    text = KERAS.format(replicas=replicas, data=data)
    found = list_feeds(text, "multi_step_on_iterator", f"cpu:1,gpu:{replicas}")
    of_users = [name for name in found if name.startswith(("Dataset_map_one", "Dataset_map_two", "Dataset_map_lambda"))]
    assert of_users == own


SESSION = """\
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()


def one(row):
    return row + 1.0


def two(row):
    return row * 2.0


rows = v1.data.Dataset.from_tensor_slices(tf.zeros([8, 8]))
first = v1.data.make_initializable_iterator(rows.map(one).batch(4))
second = v1.data.make_initializable_iterator(rows.batch(4).map(two))
small = tf.reduce_sum(first.get_next())
large = second.get_next()
for _ in range(40):  # more than it takes to make the datasets
    large = tf.tanh(large)
with v1.Session() as session:
    session.run([first.initializer, second.initializer])
    session.run(small)
    session.run(large)
"""


def test_a_run_of_a_session_is_fed_by_the_iterators_that_it_reads() -> None:
    Path("model.py").write_text(SESSION)
    result = simplace.place("model.py", "cpu:1,gpu:1")
    placed = result.largest()
    schedule = Schedule.of(placed.placement, StepOptions())
    assert schedule.run is not None
    (fed,) = find_feeds(result, schedule).items()
    assert ("_two" in fed[0], fed[1]) == (True, False)
