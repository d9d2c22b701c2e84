"""What the functions that datasets call are called: what the user's line calls, and whose function it is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.result import Result

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

PROGRAM = """\
    import tensorflow as tf
    D = tf.data.Dataset
    def normalise(x):
        return tf.cast(x, tf.float32) / 255.0
    def count():
        yield from range(3)
    def walk(rows):
        return [None for _ in rows.take(3)]
    walk(D.range(5).map(normalise, num_parallel_calls=2))
    walk(D.range(5).map(lambda x: x + 1).map(lambda x: x * 2))
    walk(D.range(5).interleave(lambda x: D.from_tensors(x).map(normalise), cycle_length=2))
    D.range(5).reduce(tf.constant(0, tf.int64), lambda total, x: total + x)
    walk(D.range(8).group_by_window(lambda x: x % 2, lambda key, rows: rows.batch(2), window_size=2))
    lengths = D.range(8).map(lambda x: tf.zeros([x]))
    walk(lengths.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2]))
    walk(D.from_generator(count, output_signature=tf.TensorSpec([], tf.int32)))
    walk(D.range(6).map(tf.range).ragged_batch(2))
    for _ in D.range(4).apply(tf.data.experimental.copy_to_device("/gpu:0")):
        pass
"""
NAMES = {
    "map: normalise (model.py:9)": "Dataset_map_normalise",
    "map: lambda (model.py:10)": "Dataset_map_lambda",
    "map: lambda (model.py:10) #2": "Dataset_map_lambda",
    "interleave: lambda (model.py:11)": "Dataset_interleave_lambda",
    "map: normalise (model.py:11)": "Dataset_map_normalise",
    "reduce: lambda (model.py:12)": "reduce_lambda",
    "group_by_window: key_func (model.py:13)": "Dataset_group_by_window_key_func_wrapper",
    "group_by_window: reduce_func (model.py:13)": "Dataset_group_by_window_lambda",
    "group_by_window: window_size_func (model.py:13)": "Dataset_group_by_window_window_size_func_wrapper",
    "map: lambda (model.py:14)": "Dataset_map_lambda",
    "bucket_by_sequence_length: key_func lambda (model.py:15)": "Dataset_group_by_window_key_func_wrapper",
    "bucket_by_sequence_length: group_by_window reduce_func (model.py:15)": "Dataset_group_by_window_batching_fn",
    "bucket_by_sequence_length: group_by_window window_size_func (model.py:15)":
        "Dataset_group_by_window_window_size_func_wrapper",
    "from_generator: flat_map flat_map_fn (model.py:16)": "Dataset_flat_map_flat_map_fn",
    "from_generator: init (model.py:16)": "Dataset_from_generator_get_iterator_id_fn",
    "from_generator: next (model.py:16)": "Dataset_from_generator_generator_next_fn",
    "from_generator: finalize (model.py:16)": "Dataset_from_generator_finalize_fn",
    "map: range (model.py:17)": "Dataset_map_range",
    "ragged_batch: map function (model.py:17)": "Dataset_map_lambda",
    "copy_to_device: remote init (model.py:18)": "_remote_init_func",
    "copy_to_device: remote next (model.py:18)": "_remote_next_func",
    "copy_to_device: remote finalize (model.py:18)": "_remote_finalize_func",
}  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Check the program on one GPU."""
    path = tmp_path_factory.mktemp("names") / "model.py"
    path.write_text(dedent(PROGRAM))
    return simplace.check(str(path), "cpu:1,gpu:1")


def drop_folder(title: str) -> str:
    """Return a title with the name of the program's file alone."""
    start, _, at = title.rpartition("(")
    return f"{start}({at.rpartition('/')[2]}"


def test_each_function_is_named_by_the_users_line(result: Result) -> None:
    assert {drop_folder(placed.title): placed.name for placed in result} == NAMES
    assert result.agrees


IN_A_FUNCTION = """\
    import tensorflow as tf
    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for x in tf.data.Dataset.range(4).apply(tf.data.experimental.copy_to_device("/gpu:0")):
            result += x
        return result
    print(total())
"""
IN_A_SESSION = """\
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    rows = tf.data.Dataset.range(4)
    rows = rows.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    with tf.device("/gpu:0"):
        made = tf.data.make_initializable_iterator(rows)
    with tf.Session() as session:
        session.run(made.initializer)
"""


@pytest.mark.parametrize(
    ("program", "call", "line"), [(IN_A_FUNCTION, "copy_to_device", 5), (IN_A_SESSION, "prefetch_to_device", 4)]
)
def test_what_takes_elements_over_in_a_graph_is_named_by_the_call(
    tmp_path: Path, program: str, call: str, line: int
) -> None:
    path = tmp_path / "model.py"
    path.write_text(dedent(program))
    titles = {drop_folder(placed.title) for placed in simplace.check(str(path), "cpu:1,gpu:1")}
    assert {f"{call}: remote {part} (model.py:{line})" for part in ("init", "next", "finalize")} <= titles


def test_either_name_finds_a_function(result: Result) -> None:
    placed = result.program("reduce: lambda")
    assert [placed] * 2 == [result.program(name) for name in ("reduce_lambda", placed.title)]


def test_what_keras_makes_is_named_by_the_call(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        dedent("""\
            import keras, numpy
            model = keras.Sequential([keras.Input([4]), keras.layers.Dense(2)])
            model.compile("sgd", "mse")
            model.fit(numpy.ones([8, 4]), numpy.ones([8, 2]), batch_size=4, verbose=0)
        """)
    )
    of_datasets = [
        placed for placed in simplace.check(str(path), "cpu:1") if placed.placement.program.kind == "dataset"
    ]
    titles = [drop_folder(placed.title) for placed in of_datasets]
    assert "fit: map grab_batch (model.py:4)" in titles
    assert all(title.startswith("fit: ") for title in titles)
