"""What `memory` makes of programs: what they say of the GPU memory that they take, and what holds it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.analysis.memory_at_start import list_start_memory

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
SESSION = """\
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    x = tf.placeholder(tf.float32, [None, 8])
    v = tf.get_variable("v", [8, 4])
    train = tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.nn.relu(x @ v)))
    with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions({options}))) as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {{x: np.ones((3, 8))}})
    """


def memory_of(folder: Path, options: str, **chosen: object):
    script = folder / "model.py"
    script.write_text(dedent(SESSION).format(options=options))
    return simplace.place(script, "cpu:1,gpu:1").memory(gpu="t4", **chosen)


def test_a_session_takes_the_fraction_that_it_asks_for(tmp_path) -> None:
    memory = memory_of(tmp_path, "per_process_gpu_memory_fraction=0.4")
    (start,) = list_start_memory(memory.schedule, grows=memory.grows)
    whole = simplace.place(tmp_path / "model.py", "cpu:1,gpu:1").memory(gpu="t4", gpu_memory_fraction=1.0)
    (all_of_it,) = list_start_memory(whole.schedule, grows=False)
    assert (start.fraction, start.at_start, all_of_it.fraction) == (0.4, int(0.4 * all_of_it.at_start), 1.0)
    assert "visible: 40% of its memory, as set" in str(memory)


def test_a_fraction_above_one_is_told_and_the_reserve_counts(tmp_path) -> None:
    memory = memory_of(tmp_path, "per_process_gpu_memory_fraction=1.5")
    (start,) = list_start_memory(memory.schedule, grows=memory.grows)
    reserve = memory_of(tmp_path, "")
    assert (start.fraction, start.at_start) == (0.0, list_start_memory(reserve.schedule, grows=False)[0].at_start)
    note = "a session's per_process_gpu_memory_fraction of 1.5 (model.py:7) is not simulated"
    assert note in " ".join(str(memory).replace(f"{tmp_path}/", "").split())
    assert "not simulated" not in str(reserve)


def test_a_fraction_that_is_given_wins(tmp_path) -> None:
    memory = memory_of(tmp_path, "per_process_gpu_memory_fraction=0.4", gpu_memory_fraction=0.0)
    (start,) = list_start_memory(memory.schedule, grows=False)
    assert (start.fraction, memory.fraction) == (0.0, None)


def test_a_schedule_has_the_limit_of_the_session(tmp_path) -> None:
    memory = memory_of(tmp_path, "per_process_gpu_memory_fraction=0.4")
    schedule = simplace.place(tmp_path / "model.py", "cpu:1,gpu:1").schedule(gpu="t4")
    assert schedule.execution.limits == memory.schedule.execution.limits


@pytest.mark.parametrize(
    ("before", "fraction"),
    [
        ("tf.Session().close()", None),
        ("tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))).close()", None),
        ("tf.Session(config=tf.ConfigProto(device_count={'GPU': 0})).close()", 0.4),
    ],
)
def test_the_first_session_with_gpus_holds_for_the_process(tmp_path, before, fraction) -> None:
    script = tmp_path / "model.py"
    text = dedent(SESSION).format(options="per_process_gpu_memory_fraction=0.4")
    script.write_text(text.replace("with tf.Session", f"{before}\nwith tf.Session"))
    memory = simplace.place(script, "cpu:1,gpu:1").memory(gpu="t4")
    assert (memory.fraction and memory.fraction.value, memory.grows) == (fraction, "allow_growth" in before)


@pytest.mark.parametrize(("before", "fraction"), [("", 0.4), ("tf.constant(1.0) + 1.0", None)])
def test_eager_ops_before_a_session_take_the_memory(tmp_path, before, fraction) -> None:
    script = tmp_path / "model.py"
    text = dedent(SESSION).format(options="per_process_gpu_memory_fraction=0.4")
    script.write_text(
        text.replace("tf.disable_eager_execution()", f"{before}\ngraph = tf.Graph().as_default()\ngraph.__enter__()")
    )
    memory = simplace.place(script, "cpu:1,gpu:1").memory(gpu="t4")
    assert (memory.fraction and memory.fraction.value) == fraction


def test_the_memory_of_a_session_may_grow(tmp_path) -> None:
    memory = memory_of(tmp_path, "allow_growth=True")
    assert [one.at_start for one in list_start_memory(memory.schedule, grows=memory.grows)] == [0]


def test_what_an_optimizer_keeps_is_told_from_weights(tmp_path) -> None:
    kinds = {one["kind"]: one["bytes"] for one in memory_of(tmp_path, "").to_json()["devices"][-1]["kinds"]}
    assert (kinds["variable"], kinds["state"]) == (256, 4 * 256)  # v; its two moments, and the powers of both betas


COMPILED = """\
    import tensorflow as tf
    v = tf.Variable(tf.ones([8, 64]))
    @tf.function(jit_compile=True)
    def inner(x):
        with tf.name_scope("first"):
            h = tf.exp(x @ v)
        with tf.name_scope("second"):
            return tf.reduce_sum(tf.matmul(h, h, transpose_b=True) @ h)
    @tf.function
    def step(x):
        return inner(x) + 1.0
    step(tf.ones([32, 8]))
    """


def test_what_a_compiled_call_holds_is_told_by_scope(tmp_path) -> None:
    script = tmp_path / "model.py"
    script.write_text(dedent(COMPILED))
    memory = simplace.place(script, "cpu:1,gpu:1").memory("step", gpu="t4")
    inside = {one["scope"].rpartition("/")[2]: one["bytes"] for one in memory.to_json()["devices"][-1]["inside"]}
    assert inside == {"first": 32 * 64 * 4, "second": 32 * 32 * 4 + 32 * 64 * 4}  # h; its square, and that times h
    assert "inside of calls by scope" in str(memory)
