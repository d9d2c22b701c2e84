"""Input pipelines: what tf.data does by itself is not suggested, and what it leaves alone is."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.api.judged_step import is_input_slow, judge_step
from simplace.executor.step_options import StepOptions
from simplace.suggestions.batch_changes import find_batches
from simplace.suggestions.edits import apply_edits
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.input_changes import find_parallel_maps, find_prefetches

PROGRAM = """\
import tensorflow as tf

weight = tf.Variable(tf.ones([3072, 64]))


def augment(picture):
    picture = tf.image.random_flip_left_right(picture)
    return tf.reshape(tf.image.random_brightness(picture, 0.2), [-1])


@tf.function
def step(batch):
    return tf.reduce_sum(tf.matmul(batch, weight))


pictures = tf.data.Dataset.from_tensor_slices(tf.zeros([64, 32, 32, 3]))
for number, batch in enumerate(pictures.map(
    augment,
).batch(32)):
    step(batch)
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_function_with_state_is_called_for_one_element_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM)
    result = simplace.place("model.py", "cpu:1,gpu:1")
    placed = result.program("step")
    step = Step.of(result, placed, StepOptions())
    slowest = step.input
    assert slowest is not None
    assert (slowest.calls, slowest.is_parallel, slowest.nanoseconds) == (32, False, 32 * slowest.call_time)
    assert (step.is_input_bound, step.nanoseconds) == (True, slowest.nanoseconds)
    assert "its input takes longer, " in judge_step(result)
    assert is_input_slow(result)
    evidence = Evidence("model.py", result, placed, step.schedule)
    (parallel,), (prefetch,) = find_parallel_maps(evidence), find_prefetches(evidence)
    text = apply_edits(evidence.files[0], [*parallel.edits, *prefetch.edits])
    assert text == PROGRAM.replace("augment,", "augment, num_parallel_calls=tf.data.AUTOTUNE,").replace(
        ").batch(32)", ').batch(32).apply(tf.data.experimental.prefetch_to_device("/GPU:0"))'
    )
    assert 0 < prefetch.copied < step.schedule.trace.makespan
    Path("model.py").write_text(text)
    changed = simplace.place("model.py", "cpu:1,gpu:1")
    assert changed.agrees  # with what the iterator on the GPU calls on the CPU
    after = Step.of(changed, changed.program("step"), StepOptions()).input
    assert after is not None
    assert after.is_parallel
    assert changed.program("step").placement.program.arg_devices[0].endswith("GPU:0")


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_what_xla_compiles_waits_for_the_elements_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM.replace("@tf.function", "@tf.function(jit_compile=True)"))
    result = simplace.place("model.py", "cpu:1,gpu:1")
    step = Step.of(result, result.program("step"), StepOptions())
    assert step.input is not None
    assert (step.examples, step.input.calls, step.is_input_bound) == (32, 32, True)
    (times_four, *_) = find_batches(Evidence("model.py", result, result.program("step"), step.schedule))
    assert (times_four.before, times_four.after) == (32, 128)


IN_PYTHON = """\
import tensorflow as tf


def load(number):
    return tf.ensure_shape(tf.py_function(lambda n: tf.fill([8], float(n)), [number], tf.float32), [8])


def rows():
    yield from ([float(i)] * 8 for i in range(32))


@tf.function
def step(batch):
    return tf.reduce_sum(tf.matmul(batch, batch, transpose_b=True))


data = {data}
for batch in data:
    step(batch)
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("tf.data.Dataset.range(32).map(load).batch(16)", "map function at model.py:17 calls Python, 16 times a step"),
        ("tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([8])).batch(16)",
         "generator next function at model.py:17 calls Python, 16 times a step"),
        ("tf.data.Dataset.from_tensor_slices(tf.zeros([32, 8])).batch(16)", ""),
    ],
    ids=["map", "generator", "none"],
)  # fmt: skip
def test_what_calls_python_is_told_not_to_be_counted(
    data: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(IN_PYTHON.replace("{data}", data))
    result = simplace.place("model.py", "cpu:1,gpu:1")
    untimed = Step.of(result, result.program("step"), StepOptions()).untimed
    assert (untimed is not None) == bool(told)
    whole = f"; not counted: the dataset's {told}, and a step waits for that where it takes longer" if told else ""
    assert judge_step(result).partition("; not counted")[1:] == whole.partition("; not counted")[1:]
    assert not is_input_slow(result)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_the_step_counts_and_not_what_prepares_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM)
    result = simplace.place("model.py", "cpu:1,gpu:1")
    most = max(result.programs, key=lambda placed: placed.work)
    assert (most.placement.program.kind, result.largest().name) == ("dataset", "step")


TWO_DATASETS = """\
pictures = tf.data.Dataset.from_tensor_slices(tf.zeros([64, 32, 32, 3]))
for batch in pictures.map(augment).batch(32):
    tf.reduce_sum(tf.matmul(batch, weight))
for batch in {own}:
    step(batch)
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("[tf.zeros([32, 3072])] * 2", ""),
        ("pictures.map(lambda one: tf.reshape(one, [-1])).batch(32)", '32 calls of "map: lambda" at model.py:19'),
        ("pictures.map(augment).batch(32)", '32 calls of "map: augment" at model.py:19'),
    ],
    ids=["tensors", "another function", "the same function"],
)
def test_a_step_waits_only_for_its_own_dataset(own: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM.partition("pictures = ")[0] + TWO_DATASETS.replace("{own}", own))
    result = simplace.place("model.py", "cpu:1,gpu:1")
    assert is_input_slow(result) == bool(told)
    verdict = judge_step(result)
    assert (told in verdict, verdict.count(" at model.py:")) == (True, bool(told))
