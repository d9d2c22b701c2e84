"""Calls that other calls may wait for are computed however often they come, and runners of queues feed every step."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, place
from simplace.machine.machine import Machine
from simplace.result import Result

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

LIMIT = 120.0  # seconds, far more than any of the programs takes
SESSION = """\
import threading, time
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import data_flow_ops
tf.disable_v2_behavior()
queue = tf.queue.FIFOQueue(20, tf.float32, shapes=[[8]])
x = tf.placeholder(tf.float32, [8])
ones = np.ones(8, "float32")
"""
PAIRS = """\
enqueue, total = queue.enqueue(x), tf.reduce_sum(queue.dequeue_many(2))
with tf.Session() as session:
    for _ in range(12):
        session.run(enqueue, {x: ones})
    assert [session.run(total) for _ in range(6)] == 6 * [16.0]
"""
CALLABLE = """\
enqueue, total = queue.enqueue(x), tf.reduce_sum(queue.dequeue_many(2))
with tf.Session() as session:
    made = session.make_callable(enqueue, [x])
    for _ in range(12):
        made(ones)
    assert [session.run(total) for _ in range(6)] == 6 * [16.0]
"""
IN_A_FUNCTION = """\
@function.Defun(tf.float32)
def put(value):
    with tf.control_dependencies([queue.enqueue(value)]):
        return tf.identity(value)
@function.Defun(tf.float32)
def put_twice(value):
    return put(value) + put(value)
done, total = put_twice(x), tf.reduce_sum(queue.dequeue_many(4))
with tf.Session() as session:
    for _ in range(12):
        threading.Thread(target=session.run, args=(done, {x: ones})).start()
    assert [session.run(total) for _ in range(6)] == 6 * [32.0]
"""
STAGED = """\
area = data_flow_ops.StagingArea([tf.float32], [[8]], capacity=2)
put, total = area.put([x]), tf.reduce_sum(area.get()[0])
with tf.Session() as session:
    for step in range(30):
        session.run(put, {x: step * ones})
        assert session.run(total) == 8 * step
"""
SUMMED = """\
sums = tf.ConditionalAccumulator(tf.float32, shape=[8])
add, mean = sums.apply_grad(x, local_step=100), sums.take_grad(12)
with tf.Session() as session:
    for step in range(36):
        session.run(add, {x: step * ones})
        if step % 12 == 11:
            assert session.run(mean)[0] == step - 5.5
"""
BARRIER = """\
barrier = data_flow_ops.Barrier(tf.float32, shapes=[[8]])
key = tf.placeholder(tf.string, [1])
insert, taken = barrier.insert_many(0, key, x[None]), barrier.take_many(12)[2][0]
with tf.Session() as session:
    for step in range(12):
        session.run(insert, {x: ones, key: [str(step)]})
    assert session.run(taken).shape == (12, 8)
"""
WATCHED = """\
enqueue, size, total = queue.enqueue(x), queue.size(), tf.reduce_sum(queue.dequeue_many(20))
def fill(session):
    for _ in range(20):
        time.sleep(0.05)
        session.run(enqueue, {x: ones})
with tf.Session() as session:
    threading.Thread(target=fill, args=(session,)).start()
    while session.run(size) < 20:
        time.sleep(0.01)
    assert session.run(total) == 160.0
"""
FUNCTIONS = """\
import tensorflow as tf
queue = tf.queue.FIFOQueue(5, tf.float32, shapes=[[8]])
@tf.function
def inner(x):
    queue.enqueue(x)
@tf.function
def put(x):
    inner(x)
@tf.function
def take():
    return tf.reduce_sum(queue.dequeue())
for step in range(30):
    put(tf.fill([8], float(step)))
    assert take() == 8.0 * step
"""
FED = """\
import threading
import tensorflow as tf
queue = tf.queue.FIFOQueue(5, tf.float32, shapes=[[]])
data = iter(tf.data.Dataset.from_tensor_slices(tf.ones([40])))
@tf.function
def feed():
    queue.enqueue(next(data))
@tf.function
def take():
    return tf.reduce_sum(queue.dequeue_many(8))
threading.Thread(target=lambda: [feed() for _ in range(40)]).start()
assert [float(take()) for _ in range(5)] == 5 * [8.0]
"""
WAITING = {
    "pairs": SESSION + PAIRS,
    "callable": SESSION + CALLABLE,
    "in a function": SESSION + IN_A_FUNCTION,
    "staged": SESSION + STAGED,
    "summed": SESSION + SUMMED,
    "barrier": SESSION + BARRIER,
    "watched": SESSION + WATCHED,
    "functions": FUNCTIONS,
    "fed by a function": FED,
}

INPUT = """\
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
example, = tf.train.slice_input_producer([np.random.rand(128, 20).astype("float32")])
{batch}
w = tf.get_variable("w", [20, 1])
loss = tf.reduce_mean(tf.matmul(batch, w) ** 2)
count = tf.train.get_or_create_global_step()
step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=count)
"""
BATCHES = {
    "batch": "batch = tf.train.batch([example], batch_size=32)",
    "shuffled": "batch = tf.train.shuffle_batch([example], 32, 200, 64, num_threads=2)",
    "chosen": "batch = tf.train.maybe_batch([example], example[0] > 0.5, 32)",
}
COORDINATED = """\
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    for _ in range({steps}):
        session.run([step, loss])
        print(session.run(count))
    coordinator.request_stop()
    coordinator.join(threads)
print("end")
"""
MONITORED = """\
with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook({steps})]) as session:
    while not session.should_stop():
        print(session.run([count, step])[0])
print("end")
"""
STAGED_STEPS = """\
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import data_flow_ops
tf.disable_v2_behavior()
data = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(tf.ones([4, 8])).repeat()).get_next()
area = data_flow_ops.StagingArea([tf.float32], [[4, 8]])
put = area.put([data])
w = tf.get_variable("w", [8, 1])
loss = tf.reduce_mean(tf.matmul(area.get()[0], w) ** 2)
step = tf.group(tf.train.GradientDescentOptimizer(0.1).minimize(loss), put)
with tf.Session() as session:
    session.run([w.initializer, put])
    while True:
        session.run(step)
"""
ITERATED = """\
import tensorflow as tf
data = iter(tf.data.Dataset.range(100))
@tf.function
def take():
    return next(data)
for _ in range(100):
    take()
"""
LAST_LINES = ("        session.run([step, loss])", "        session.run(step)", "    take()")


def run(folder: Path, text: str, gpus: int = 1, timeout: float = LIMIT) -> Result:
    path = folder / "model.py"
    path.write_text(text)
    return place(str(path), Settings(Machine(gpus=gpus), timeout=timeout))


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("text", WAITING.values(), ids=WAITING)
def test_what_others_wait_for_is_computed_however_often_it_comes(tmp_path: Path, text: str, gpus: int) -> None:
    result = run(tmp_path, text, gpus)
    assert (result.failure, result.ending, result.agrees) == (None, "", True)
    assert not any("--calls all" in remark for remark in result.remarks)


@pytest.mark.parametrize("steps", [COORDINATED, MONITORED], ids=["coordinated", "monitored"])
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_runners_of_queues_feed_every_step(tmp_path: Path, batch: str, steps: str, capfd) -> None:
    result = run(tmp_path, INPUT.format(batch=batch) + steps.format(steps=3))
    assert capfd.readouterr().out.splitlines()[-1] == "end"
    assert (result.failure, result.ending, result.agrees) == (None, "", True)
    assert not any("--calls all" in remark for remark in result.remarks)


def test_steps_that_runners_feed_end_early(tmp_path: Path, capfd) -> None:
    text = INPUT.format(batch=BATCHES["batch"]) + MONITORED.format(steps=10**9)
    result = run(tmp_path, text)
    assert capfd.readouterr().out.splitlines()[-1] == "end"
    assert result.failure is None
    path, line = tmp_path / "model.py", len(text.splitlines()) - 1
    assert result.remarks == (
        f"The input of Session.run was ended early at {path}:{line}: it was called 10 times "
        "(--calls all reads it to its end).",
    )


@pytest.mark.parametrize(
    "text", [INPUT.format(batch=BATCHES["batch"]) + COORDINATED.format(steps=10**9), STAGED_STEPS, ITERATED]
)
def test_a_program_that_ends_with_its_input_says_where(tmp_path: Path, text: str) -> None:
    result = run(tmp_path, text)
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each in LAST_LINES)
    assert (result.failure, result.ending) == (None, "")
    assert (
        f"The program ended at {tmp_path / 'model.py'}:{line}, since its input had been ended "
        "(--calls all reads it to its end)."
    ) in result.remarks


def test_the_time_limit_names_what_was_not_computed(tmp_path: Path) -> None:
    text = """\
        import tensorflow as tf
        count = tf.Variable(0.0)
        @tf.function
        def add():
            return count.assign_add(1.0)
        @tf.function
        def double(x):
            return 2.0 * x
        while True:
            double(add())
    """
    limit = 15.0
    assert str(run(tmp_path, dedent(text), timeout=limit).failure) == (
        f"{tmp_path / 'model.py'}: the program ran longer than {limit:g} s and was ended; only some calls of add and 1 "
        "more were computed, which --calls all changes; --timeout gives it more"
    )
