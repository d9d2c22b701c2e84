"""Sizes that a graph leaves open: those of the first call, as TensorFlow infers them from what came."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.api import Placements
from simplace.partition.shapes import TensorSizes
from simplace.views.text.summary import describe_given_shapes

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Write a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("model.py").write_text(dedent(text))


def place_whole_program() -> Placements:
    """Place the program that was written, on one GPU; it must come to its end."""
    result = simplace.place("model.py", "gpu:1")
    assert result.failure is None
    return result


def shapes(placed) -> dict[str, object]:
    """Map the last part of each node's name to the shape of its first output."""
    sizes, graph = TensorSizes(placed.placement.placed), placed.placement.graph
    return {graph.names[i].rpartition("/")[2]: sizes.shape(i, 0) for i in graph.op_ids if graph.out_types[i]}


def test_arguments_iterators_calls_and_branches(write) -> None:
    write("""\
        import tensorflow as tf
        w = tf.Variable(tf.ones([4, 8]))
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def inner(x):
            return tf.matmul(x, w, name="product")
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def called(x):
            y = inner(x)
            z = tf.cond(tf.reduce_sum(x) > 1.0, lambda: tf.nn.relu(y, name="yes"), lambda: tf.negative(y, name="no"))
            with tf.device("CPU:0"):
                z = tf.transpose(z, name="turned")
            return z
        @tf.function
        def taken(iterator):
            x, y = next(iterator)
            return tf.matmul(x, w, name="product"), tf.strings.length(y, name="length")
        for rows in (10, 3):
            assert called(tf.ones([rows, 4])).shape == (8, rows)
        pairs = tf.data.Dataset.from_tensor_slices((tf.ones([7, 4]), ["a"] * 7)).batch(5)
        product, length = taken(iter(pairs))
        assert product.shape == (5, 8) and length.shape == (5,)
    """)
    result = place_whole_program()
    called, taken = result
    assert {name: shapes(called)[name] for name in ("product", "yes", "no", "turned")} == {
        "product": (10, 8), "yes": (10, 8), "no": (10, 8), "turned": (8, 10)
    }  # fmt: skip
    assert {name: shapes(taken)[name] for name in ("IteratorGetNext", "product", "length")} == {
        "IteratorGetNext": (5, 4), "product": (5, 8), "length": (5,)
    }  # fmt: skip
    text = "sizes that the graph leaves open are those of the first call:"
    assert describe_given_shapes(called) == f"{text} x [10,4]"
    assert describe_given_shapes(taken) == f"{text} IteratorGetNext [5,4], IteratorGetNext:1 [5]"
    assert {copy.size for copy in called.crossing} == {10 * 8 * 4}
    assert result.agrees


def test_a_loop_has_what_is_the_same_in_every_round(write) -> None:
    write("""\
        import tensorflow as tf
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def loop(x):
            def body(i, same, grown):
                return i + 1, tf.tanh(same, name="tanh"), tf.concat([grown, grown], 0, name="twice")
            return tf.while_loop(
                lambda i, same, grown: i < 3, body, (0, x, x),
                shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4]), tf.TensorShape([None, 4])),
            )
        assert [each.shape[:1] for each in loop(tf.ones([6, 4]))] == [(), (6,), (48,)]
    """)
    (loop,) = place_whole_program()
    assert {name: shapes(loop)[name] for name in ("tanh", "twice")} == {"tanh": (6, 4), "twice": (-1, 4)}


def test_what_a_loop_keeps_for_its_gradient_has_the_size_of_a_round(write) -> None:
    write("""\
        import tensorflow as tf
        w = tf.Variable(tf.ones([4, 4]))
        @tf.function(input_signature=[tf.TensorSpec([None, None, 4])])
        def unroll(x):
            with tf.GradientTape() as tape:
                state = tf.zeros([tf.shape(x)[0], 4])
                kept = tf.TensorArray(tf.float32, size=tf.shape(x)[1])
                for i in tf.range(tf.shape(x)[1]):
                    state = tf.tanh(x[:, i] + tf.matmul(state, w))
                    kept = kept.write(i, state)
                stacked = tf.identity(kept.stack(), name="stacked")
                loss = tf.reduce_sum(stacked)
            return tf.transpose(stacked, [1, 0, 2], name="turned"), tape.gradient(loss, w)
        assert unroll(tf.ones([6, 5, 4]))[0].shape == (6, 5, 4)
    """)
    (unroll,) = place_whole_program()
    found = shapes(unroll)
    assert {name: found[name] for name in ("stacked", "turned", "Tanh")} == {
        "stacked": (5, 6, 4), "turned": (6, 5, 4), "Tanh": (6, 4)
    }  # fmt: skip
    assert [name for name, shape in found.items() if name.startswith("TanhGrad")] == ["TanhGrad"]
    assert found["TanhGrad"] == (6, 4)


def test_an_array_that_grows_is_as_long_as_its_loop_has_rounds(write) -> None:
    write("""\
        import tensorflow as tf
        w = tf.Variable(tf.ones([4, 4]))
        @tf.function
        def grow(x):
            with tf.GradientTape() as tape:
                kept, state = tf.TensorArray(tf.float32, size=0, dynamic_size=True), x[0]
                for i in tf.range(0, tf.shape(x)[0], 2):
                    state = tf.tanh(x[i] + state @ w)
                    kept = kept.write(i // 2, state)
                for i in range(2):
                    kept = kept.write(3 + i, state)
                stacked = tf.identity(kept.stack(), name="stacked")
                loss = tf.reduce_sum(tf.square(stacked))
            return tf.transpose(stacked, [1, 0, 2], name="turned"), tape.gradient(loss, w)
        @tf.function
        def stop(x):
            kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(9):
                if tf.reduce_sum(x) > 1e4:
                    break
                kept = kept.write(i, x)
                x *= 10.0
            return tf.identity(kept.stack(), name="stacked")
        assert grow(tf.ones([6, 5, 4]))[0].shape == (5, 5, 4)
        assert stop(tf.ones([4])).shape == (4, 4)
    """)
    grow, stop = place_whole_program()
    found = shapes(grow)
    assert {name: found[name] for name in ("stacked", "turned", "Square", "Tile")} == {
        "stacked": (5, 5, 4), "turned": (5, 5, 4), "Square": (5, 5, 4), "Tile": (5, 5, 4)
    }  # fmt: skip
    assert shapes(stop)["stacked"] == (-1, 4)  # the data tell


def test_rows_of_a_variable_that_calls_branches_and_loops_read(write) -> None:
    """The shape of what is read by rows follows from the variable's: its handle is handed on."""
    write("""\
        import tensorflow as tf
        table, other = tf.Variable(tf.ones([30, 8])), tf.Variable(tf.ones([20, 8]))
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def inner(rows):
            return tf.gather(table, rows, name="called") + tf.gather_nd(table, rows[..., None], name="nd")
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def step(rows):
            y = tf.gather(table, rows, name="read")
            y += tf.cond(tf.size(rows) > 1, lambda: tf.gather(table, rows, name="yes"),
                         lambda: tf.gather(other, rows, name="no"))
            _, z = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z + tf.gather(other, rows, name="round")),
                                 [0, tf.zeros_like(y)])
            return tf.add(inner(rows), y + z, name="sum")
        step(tf.ones([4, 5], tf.int32))
    """)
    (step,) = place_whole_program()
    found = shapes(step)
    names = ("read", "called", "nd", "yes", "no", "round", "sum")
    assert {name: found[name] for name in names} == dict.fromkeys(names, (4, 5, 8))


def test_a_list_of_ragged_rows(write) -> None:
    write("""\
        import tensorflow as tf
        rows = tf.ragged.constant([[3, 1, 4], [], [1, 5]])
        @tf.function
        def each(x):
            def largest(row):
                return tf.reduce_max(row) if tf.size(row) > 0 else 0
            found = tf.map_fn(largest, x, fn_output_signature=tf.int32)
            return tf.identity(found, name="largest"), tf.map_fn(lambda row: row[:1] * 2, x)
        largest, firsts = each(rows)
        assert largest.numpy().tolist() == [4, 0, 5] and firsts.to_list() == [[6], [], [2]]
    """)
    result = place_whole_program()
    (each,) = result
    assert shapes(each)["largest"] == (3,)


def test_what_is_called_in_two_shapes_stays_open(write) -> None:
    write("""\
        import tensorflow as tf
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def inner(x):
            return tf.tanh(x, name="tanh")
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def outer(x):
            return tf.concat([inner(x), inner(x[:2])], 0, name="both")
        outer(tf.ones([6, 4]))
    """)
    (outer,) = place_whole_program()
    assert (shapes(outer)["tanh"], shapes(outer)["both"]) == ((-1, 4), (8, 4))


def test_each_run_of_a_session_has_its_copies(write) -> None:
    write("""\
        import numpy as np
        import tensorflow.compat.v1 as tf
        tf.disable_eager_execution()
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.get_variable("w", [4, 2])
        with tf.device("GPU:0"):
            product = tf.matmul(x, w, name="product")
        with tf.device("CPU:0"):
            soft = tf.nn.softmax(product, name="soft")
            never = tf.nn.relu(product, name="never")
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(w.initializer)
            for rows in (5, 3):
                assert session.run(soft, {x: np.ones([rows, 4])}).shape == (rows, 2)
            session.run(product, {x: np.ones([5, 4])})
    """)
    result = simplace.check("model.py", "gpu:1")
    (session,) = result
    found = [(run.run.at, [(c.tensor, c.target[-5:], c.size) for c in run.copies]) for run in session.runs]
    assert found == [
        ("model.py:12", []),
        ("model.py:14", [("x:0", "GPU:0", 80), ("product:0", "CPU:0", 40)]),
        ("model.py:15", [("x:0", "GPU:0", 80), ("product:0", "CPU:0", 40)]),
    ]
    assert [(c.tensor, [session.placement.graph.names[i] for i in c.consumers]) for c in session.copies] == [
        ("product:0", ["soft"])
    ]
    assert session.copy_agreement.total == sum(len(run.copies) for run in session.runs)
    assert result.agrees
    (report,) = (program for program in result.to_json()["programs"] if program["kind"] == "session")
    assert [(run["fetches"], len(run["copies"])) for run in report["runs"]] == [
        ([], 0),
        (["soft:0"], 2),
        (["product:0"], 2),
    ]


def test_a_session_has_the_sizes_of_its_first_element(write) -> None:
    write("""\
        import numpy as np
        import tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
        rows = tf.data.Dataset.from_tensor_slices((np.ones([7, 4], "f"), ["a"] * 7)).batch(5)
        x, words = tf.data.make_one_shot_iterator(rows).get_next()
        product = tf.matmul(x, tf.ones([4, 3]), name="product")
        with tf.Session() as session:
            print(session.run([product, tf.strings.length(words, name="length")])[0].shape)
            assert session.run(product).shape == (2, 3)
    """)
    (session,) = place_whole_program()
    found = shapes(session)
    assert (found["IteratorGetNext"], found["product"], found["length"]) == ((5, 4), (5, 3), (5,))


def test_elements_that_a_branch_takes_are_not_asked_for(write) -> None:
    write("""\
        import numpy as np
        import tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
        tf.disable_control_flow_v2()
        rows = tf.data.Dataset.from_tensor_slices(np.ones([8, 4], "f")).repeat()
        first, second = (tf.data.make_one_shot_iterator(rows.batch(size)) for size in (2, 3))
        is_first = tf.placeholder(tf.bool, [])
        taken = tf.shape(tf.cond(is_first, first.get_next, second.get_next))[0]
        with tf.Session() as session:
            assert [session.run(taken, {is_first: each}) for each in (True, False)] == [2, 3]
    """)
    (session,) = place_whole_program()
    assert shapes(session)["IteratorGetNext"] == (-1, 4)


def test_what_does_not_fit_leaves_the_sizes_open_and_fails_as_it_would(write) -> None:
    write("""\
        import numpy as np
        import tensorflow as tf
        @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])])
        def multiply(x, y):
            return tf.matmul(x, y)
        try:
            multiply(tf.ones([2, 3]), tf.ones([4, 5]))
        except tf.errors.InvalidArgumentError:
            print("no product")
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            x, y = v1.placeholder(tf.float32, [None, None]), v1.placeholder(tf.float32, [None, None])
            product = tf.matmul(x, y)
            try:
                session.run(product, {x: np.ones([2, 3]), y: np.ones([4, 5])})
            except tf.errors.InvalidArgumentError:
                print("no product here either")
    """)
    result = simplace.check("model.py", "cpu:1")
    assert result.failure is None
    assert [shapes(one).get("MatMul") for one in result] == [(-1, -1), (-1, -1)]
