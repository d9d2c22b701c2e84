"""No kernel that computes starts on an emulated GPU, whoever asks for it, and what needs no GPU has its real values."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, check
from simplace.machine.machine import Machine
from simplace.result import Result

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

# Each would reach the driver that is not there: it asks for a CUDA stream, or computes in place, before it allocates.
FUNCTIONS = """\
    import tensorflow as tf
    x = tf.ones([4, 4]) + tf.eye(4)
    v = tf.Variable(x)
    for compute in (
        tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_prod, tf.where, tf.sort, tf.signal.rfft,
        tf.linalg.cholesky, tf.linalg.lu, tf.linalg.svd,
        lambda x: tf.reduce_all(x > 0), lambda x: tf.reduce_any(x > 0), lambda x: tf.nn.moments(x, [0]),
        lambda x: tf.nn.softmax(x[:0]), lambda x: tf.random.normal([0, 2]) + x[:1, :2],
        lambda x: tf.searchsorted(x[:, :0], x[:, :0]), lambda x: tf.debugging.check_numerics(x, "message"),
        lambda x: v.assign_add(x), tf.function(lambda x: tf.matmul(x, x), jit_compile=True),
    ):
        tf.function(lambda x: compute(x), autograph=False)(x)
"""

ELSEWHERE = """\
    import tensorflow as tf
    x = tf.ones([4, 4])
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [4, 4])
        assert session.run(tf.reduce_sum(fed), {fed: [[1.0] * 4] * 4}) == 16.0
    with tf.device("GPU:0"):
        weights = tf.ones([4, 4])
        products = tf.data.Dataset.from_tensors(x).repeat(3).map(lambda each: tf.matmul(each, weights))
        sparse = tf.raw_ops.DenseToCSRSparseMatrix(dense_input=x, indices=tf.where(x > 0))
    assert [each.shape.as_list() for each in products] == [[4, 4]] * 3
    assert sparse.device.endswith("CPU:0")
    @tf.function
    def take(iterator):
        return next(iterator)
    assert take(iter(products)).shape == [4, 4]
"""

MIRRORED = """\
    import tensorflow as tf
    strategy = tf.distribute.MirroredStrategy()
    @tf.function
    def step(x):
        return strategy.run(lambda x: tf.reduce_sum(x["b"]), args=(x,))
    batches = tf.data.Dataset.from_tensor_slices({"b": tf.ones([8, 3])}).batch(4)
    for x in strategy.experimental_distribute_dataset(batches):
        assert [each.device[-5:] for each in step(x).values] == ["GPU:0", "GPU:1"]
"""

THREADS = """\
    import threading
    import tensorflow as tf
    @tf.function
    def scale(x, by):
        return tf.reduce_sum(x) * by
    def work(size):
        for step in range(3):
            scale(tf.ones([size]) + 1.0, tf.constant(float(step)))
    threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

CANCELLED = """\
    import tensorflow as tf
    from tensorflow.python.eager import cancellation
    empty = tf.queue.FIFOQueue(1, [tf.float32], [[]])
    @tf.function
    def wait(x):
        return empty.dequeue() + x
    manager = cancellation.CancellationManager()
    manager.start_cancel()
    try:
        with cancellation.CancellationManagerContext(manager):
            wait(tf.ones([]))
        raise AssertionError("the call was cancelled")
    except tf.errors.CancelledError:
        pass
"""

REAL = """\
    import tensorflow as tf
    with tf.device("CPU:0"):
        count = tf.Variable(0)
        generator = tf.random.Generator.from_seed(1)
        numbers = iter(tf.data.Dataset.range(3))
    @tf.function
    def take():
        with tf.device("CPU:0"):
            return next(numbers), count.assign_add(1), generator.normal([])
    with tf.device("CPU:0"):
        expected = tf.random.Generator.from_seed(1)
        for step in range(3):
            number, counted, noise = take()
            assert (number, counted, noise) == (step, step + 1, expected.normal([]))
        try:
            take()
            raise AssertionError("the dataset has three elements")
        except tf.errors.OutOfRangeError:
            pass
    kept = tf.Variable([2.0, 3.0])
    @tf.function
    def swap(x):
        before = kept.read_value()
        kept.assign(x)
        return before
    assert kept.device.endswith("GPU:0")
    assert swap(tf.constant([4.0, 5.0])).numpy().tolist() == [2.0, 3.0]
    assert kept.numpy().tolist() == [4.0, 5.0]
"""


def checked(folder: Path, text: str, gpus: int) -> Result:
    path = folder / "model.py"
    path.write_text(dedent(text))
    result = check(str(path), Settings(Machine(gpus=gpus)))
    assert result.failure is None
    return result


@pytest.mark.parametrize("gpus", [1, 2])
def test_functions_are_placed_and_no_kernel_of_a_gpu_runs(tmp_path: Path, gpus: int) -> None:
    result = checked(tmp_path, FUNCTIONS, gpus)
    assert result.agrees
    assert len(list(result)) == 19


def test_nor_do_sessions_eager_ops_and_datasets_run_on_a_gpu(tmp_path: Path) -> None:
    result = checked(tmp_path, ELSEWHERE, 1)
    assert result.agrees
    assert {placed.name for placed in result} == {"Session.run", "take", "Dataset_map_lambda"}


def test_values_of_each_replica_come_back_from_a_function(tmp_path: Path) -> None:
    result = checked(tmp_path, MIRRORED, 2)
    assert result.agrees
    assert [one.name for one in result if one.placement.program.kind == "function"] == ["step"]


def test_threads_call_functions_at_once(tmp_path: Path) -> None:
    result = checked(tmp_path, THREADS, 1)
    assert result.agrees
    assert len(list(result)) == 8


def test_what_computes_nothing_on_a_gpu_runs_once_with_real_values(tmp_path: Path) -> None:
    result = checked(tmp_path, REAL, 1)
    assert result.agrees
    assert [placed.name for placed in result] == ["take", "swap"]


def test_a_program_cancels_a_call_that_is_computed_on_the_cpu(tmp_path: Path) -> None:
    result = checked(tmp_path, CANCELLED, 1)
    assert result.agrees
    assert [placed.name for placed in result] == ["wait"]
