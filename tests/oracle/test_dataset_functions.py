"""The functions of datasets beside TensorFlow, which places them when something walks through the dataset."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.checks.verdicts import of_agreement
from simplace.graph.function_names import shown_name
from simplace.machine.machine import Machine
from simplace.oracle.observe import observe_script
from simplace.views.text.summary import agreement_line, coverage_line, write_title

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Write a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("model.py").write_text(dedent(text))


def devices(result, name: str) -> dict[str, str]:
    return {node.name: node.device[-5:] for node in result.program(name).placement.nodes}


def test_the_functions_of_a_pipeline(write) -> None:
    write("""\
        import tensorflow as tf
        v = tf.Variable(2.0)
        def scale(x):
            return tf.cast(x, tf.float32) * v
        def positive(x):
            return x > 0.0
        numbers = tf.data.Dataset.range(4).map(scale)
        for each in numbers.filter(positive).batch(2):
            pass
        unread = numbers.map(lambda x: x + 1.0)
        numbers.reduce(0.0, lambda total, x: total + x)
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert [write_title(placed) for placed in result] == [
        "map: scale (model.py:7): function of a dataset, Dataset_map_scale to TensorFlow, 9 nodes, soft placement on",
        "filter: positive (model.py:8): function of a dataset, Dataset_filter_positive to TensorFlow, 6 nodes, "
        "soft placement on",
        "reduce: lambda (model.py:11): function of a dataset, reduce_lambda to TensorFlow, 5 nodes, soft placement on",
        "map: lambda (model.py:10): function of a dataset, Dataset_map_lambda to TensorFlow, 6 nodes, "
        "soft placement on",
    ]
    assert devices(result, "Dataset_map_scale") == {
        "args_0": "CPU:0", "mul_readvariableop_resource": "GPU:0", "Cast": "CPU:0", "mul/ReadVariableOp": "GPU:0",
        "mul": "CPU:0", "NoOp": "CPU:0", "Identity": "CPU:0", "FakeSink0": "CPU:0", "identity_RetVal": "CPU:0",
    }  # fmt: skip
    assert devices(result, "reduce_lambda")["add"] == "GPU:0"
    assert [placed.agreement is None for placed in result] == [False, False, False, True]
    assert result.agrees
    assert agreement_line(result).endswith("; 1 function not compared, as this run did not instantiate it")
    alone = agreement_line(result.only("Dataset_map_lambda"))
    assert alone.endswith(" rules: 1 function not compared, as this run did not instantiate it")


def test_elements_that_a_function_computes_on_a_gpu_have_their_values(write) -> None:
    write("""\
        import tensorflow as tf
        count = tf.data.Dataset.range(8)
        def on_gpu(x):
            with tf.device("/GPU:0"):
                return tf.cast(x, tf.float32) * 2
        def listed(dataset):
            return [element.tolist() for element in dataset.as_numpy_iterator()]
        doubled = count.map(on_gpu, num_parallel_calls=2).prefetch(1)
        assert listed(doubled.take(3)) == [0, 2, 4]
        assert [listed(doubled.skip(4).batch(3)) for _ in range(2)] == 2 * [[[8, 10, 12], [14]]]
        assert listed(count.flat_map(lambda x: tf.data.Dataset.range(x).map(on_gpu)).take(4)) == [0, 0, 2, 0]
        assert listed(count.window(4).map(lambda x: x.reduce(tf.constant(0, tf.int64), tf.add))) == [6, 22]
        assert doubled.reduce(0.0, tf.add).numpy() == 56
        iterator = iter(tf.data.Dataset.zip(count, doubled))
        assert [each.numpy() for each in next(iterator)] == [0, 0]
        assert [each.numpy() for each in next(iterator)] == [1, 2]
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert devices(result, "Dataset_map_on_gpu")["mul"] == "GPU:0"
    assert (result.agrees, result.failure, result.remarks) == (True, None, ())
    assert result.coverage.missing == ()


def test_elements_follow_the_variables_of_a_gpu_that_their_functions_read(write) -> None:
    write("""\
        import tensorflow as tf
        count = tf.data.Dataset.range(4)
        one_by_one = tf.data.Options()
        one_by_one.experimental_optimization.apply_default_optimizations = False
        scale, seen = tf.Variable(2.0), tf.Variable(0.0)
        table = tf.Variable([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
        random = tf.random.Generator.from_seed(1)
        def listed(dataset):
            return [element.tolist() for element in dataset.as_numpy_iterator()]
        def take_row(i):
            return tf.gather(table, i) * scale
        rows = count.map(take_row).batch(2).with_options(one_by_one)
        assert listed(rows) == [[[0, 2], [4, 6]], [[8, 10], [12, 14]]]
        scale.assign(3.0)
        assert listed(rows.take(1)) == [[[0, 3], [6, 9]]]
        noted = count.map(lambda i: seen.assign_add(scale)).with_options(one_by_one)
        for element in noted:
            assert element.numpy() == seen.numpy()
        assert seen.numpy() == 12
        @tf.function
        def total(rows):
            found = tf.zeros([2])
            for row in rows:
                found += tf.reduce_sum(row, axis=0)
            return found
        assert total(rows).numpy().tolist() == [36, 48]
        @tf.function
        def step(iterator):
            return tf.reduce_sum(next(iterator)) + scale
        iterator = iter(rows)
        assert step(iterator).numpy() == 21
        scale.assign(1.0)
        assert step(iterator).numpy() == 23
        begun = random.state.numpy()[0]
        listed(count.map(lambda i: random.uniform([])))
        assert random.state.numpy()[0] - begun == 4 * 256
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert "GPU:0" in devices(result, "Dataset_map_take_row").values()
    assert (result.agrees, result.failure, result.remarks) == (True, None, ())
    assert result.coverage.missing == ()


def test_datasets_that_shuffle_take_their_seeds_as_without_gpus(write) -> None:
    write("""\
        import tensorflow as tf
        def on_gpu(x):
            with tf.device("/GPU:0"):
                return tf.cast(x, tf.float32) * 2
        def listed(dataset):
            return [int(element) for element in dataset]
        def make():
            return tf.data.Dataset.range(6).shuffle(6, seed=3)
        plain, shuffled = make(), make()
        doubled = shuffled.map(on_gpu)
        expected = [listed(plain) for _ in range(6)]
        assert expected[0] != expected[1]
        orders = [listed(doubled), listed(doubled), listed(shuffled), listed(doubled)]
        assert [[each // 2 for each in order] for order in (orders[0], orders[1], orders[3])] == [
            expected[0], expected[1], expected[3],
        ]
        assert orders[2] == expected[2]
        digits = doubled.reduce(0.0, lambda digits, x: digits * 10 + x / 2)
        assert f"{digits.numpy():06.0f}" == f"{float(''.join(map(str, expected[4]))):06.0f}"
        doubled.save("saved")
        assert sorted(listed(tf.data.Dataset.load("saved"))) == [0, 2, 4, 6, 8, 10]
        assert doubled.take(1).get_single_element().numpy() in range(0, 12, 2)
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert devices(result, "Dataset_map_on_gpu")["mul"] == "GPU:0"
    assert (result.agrees, result.failure, result.remarks) == (True, None, ())
    assert result.coverage.missing == ()


NESTED = """\
    import tensorflow as tf
    count = tf.data.Dataset.range
    def same(x):
        return tf.identity(x)
    def inner(x):
        batches = count(4).skip(0).map(lambda y: y + x).batch(2).take(-1)
        more = count(4).map(lambda y: y + 1, num_parallel_calls=2).batch(2, drop_remainder=True).map(same).repeat(1)
        return tf.data.Dataset.zip((batches, more.map(lambda y: y * 2).batch(1).prefetch(2)))
    def shuffled(x):
        return count(3).shard(1, 0).shuffle(3, seed=1).repeat(2).map(lambda y: y + x).padded_batch(2, padded_shapes=[])
    def deep(x):
        return count(2).interleave(lambda y: count(y).map(lambda z: z + x).batch(2))
    def run(dataset):
        for _ in dataset:
            pass
    run(count(2).flat_map(inner))
    run(count(2).interleave(shuffled, num_parallel_calls=2))
    run(count(3).flat_map(deep))
    run(count(4).window(2).flat_map(lambda window: window.map(lambda y: y + 1).batch(2)))
    def flat(x):
        return count(3).map(lambda y: y + x).batch(2).unbatch()
    strategy = tf.distribute.MirroredStrategy()
    run(strategy.experimental_distribute_dataset(count(4).interleave(flat).batch(4)))  # rewritten twice
    as_they_are = tf.data.Options()
    as_they_are.experimental_optimization.map_and_batch_fusion = False
    run(count(2).flat_map(lambda x: count(2).skip(0).map(lambda y: y + x).batch(2)).with_options(as_they_are))
"""


@pytest.mark.parametrize("machine", ["cpu:1", "cpu:1,gpu:1"])
def test_datasets_in_functions_of_datasets_are_fused_as_tensorflow_does(write, machine) -> None:
    write(NESTED)
    result = simplace.check("model.py", machine)
    differences = [d for placed in result if placed.agreement for d in placed.agreement.differences]
    assert differences == []
    assert (result.agrees, result.failure) == (True, None)
    assert result.coverage.missing == ()
    ops = {op for placed in result for op in placed.placement.graph.ops}
    assert {"MapAndBatchDataset", "ShuffleAndRepeatDatasetV2"} <= ops


def test_what_walks_of_a_function_call_is_compared_wherever_it_computes(write) -> None:
    write("""\
        import tensorflow as tf
        w = tf.Variable(tf.ones([2, 1]))
        rows = tf.data.Dataset.from_tensor_slices(tf.ones([6, 2])).batch(2)
        @tf.function
        def train(rows):
            total = tf.reduce_sum(tf.matmul(tf.ones([1, 2]), w))
            for each in rows:
                total += tf.reduce_sum(tf.matmul(each, w))
                w.assign_add(tf.ones([2, 1]))
            return total
        for _ in range(3):
            train(rows)
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert devices(result, "Dataset_scan_scan_body")["MatMul"] == "GPU:0"
    assert [placed.agreement is None for placed in result] == [False, False, False]
    assert result.agrees


def test_without_gpus_a_function_that_walks_through_a_dataset_is_computed_as_it_is(write) -> None:
    write("""\
        import tensorflow as tf
        def add_up(n):
            found = tf.constant(0, tf.int64)
            for each in tf.data.Dataset.range(n + 1).map(lambda x: x + 1).batch(2):
                found += tf.reduce_sum(each)
            return found
        @tf.function
        def total():
            found = tf.constant(0, tf.int64)
            for each in tf.data.Dataset.range(3).map(add_up):
                found += each
            return found
        assert total().numpy() == 10
    """)
    result = simplace.check("model.py", "cpu:1")
    assert {placed.agreement is None for placed in result} == {False}
    assert (result.agrees, result.failure, result.coverage.missing) == (True, None, ())


EVERY_OP = """\
    import tensorflow as tf
    v = tf.Variable(2.0)
    count = tf.data.Dataset.range
    def run(dataset):
        for element in dataset.take(2):
            pass
    def on_gpu(x):
        with tf.device("/GPU:0"):
            return tf.cast(x, tf.float32) * v
    @tf.function
    def triple(x):
        return x * 3
    run(count(9).map(on_gpu))
    run(count(9).map(lambda x: x - 1, num_parallel_calls=2))
    run(count(9).flat_map(lambda x: count(x).map(lambda y: y + x)))
    run(count(9).interleave(lambda x: count(3).filter(lambda y: y > x), num_parallel_calls=2))
    run(count(9).scan(tf.constant(0, tf.int64), lambda state, x: (state + x, state)))
    run(count(9).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=2))
    run(count(9).take_while(lambda x: x < 5))
    run(tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32)))
    plain = tf.data.Options()
    plain.experimental_optimization.apply_default_optimizations = False
    plain.autotune.enabled = False
    run(count(4).map(lambda x: x * 5).with_options(plain))
    run(count(9).map(lambda x: tf.py_function(lambda a: a + 1, [x], tf.int64)))
    run(count(9).map(lambda x: triple(x) + triple(x)))
    run(count(9).map(lambda x: tf.identity(x + 1, name="FakeSink0")))
    run(count(9).map(lambda x: tf.cond(x > 2, lambda: x, lambda: -x)))
    @tf.function
    def inside(n):
        total = tf.constant(0, tf.int64)
        for element in count(n).map(lambda x: x * 7):
            total += element
        return total
    with tf.device("/CPU:0"):
        inside(tf.constant(3, tf.int64))
    @tf.function
    def noted(x):
        tf.debugging.assert_non_negative(x)
        return x + 1, x * 2
    noted(tf.constant(3, tf.int64))  # placed for this call, and once more for the dataset
    run(count(3).map(noted))
"""


@pytest.mark.parametrize("machine", ["cpu:1", "cpu:2,gpu:2"])
def test_every_op_that_calls_functions(write, machine) -> None:
    write(EVERY_OP)
    result = simplace.check("model.py", machine)
    differences = [d for placed in result if placed.agreement for d in placed.agreement.differences]
    assert differences == []
    assert (result.agrees, result.failure) == (True, None)
    assert result.coverage.missing == ()
    programs = [placed.placement.program for placed in result]
    assert {program.caller.role for program in programs if program.kind == "dataset"} == {
        "map function", "flat map function", "interleave function", "filter function", "scan function",
        "take while function", "reduce function", "group by window key function", "group by window reduce function",
        "group by window window size function", "generator init function", "generator next function",
        "generator finalize function",
    }  # fmt: skip


def test_what_a_kernel_runs_whole_is_on_its_device_and_not_placed(write) -> None:
    write("""\
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        rows = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(tf.ones([8, 2])).batch(4))
        for each in rows:
            print(strategy.experimental_local_results(each)[1].shape)
    """)
    observed = observe_script("model.py", (), Machine(gpus=2))
    logged = {shown_name(graph.function) for graph in observed.logged.graphs}
    assert {"_remote_init_func", "_remote_next_func", "_remote_finalize_func"} & logged == {
        "_remote_init_func", "_remote_finalize_func",
    }  # fmt: skip
    result = simplace.check("model.py", "cpu:1,gpu:2")
    unplaced = [placed for placed in result if placed.placement.program.runs_unplaced]
    alone = agreement_line(result.only(unplaced[0].title))
    assert alone.endswith(" rules: what is shown runs on its device, without placement")
    assert [placed.title for placed in unplaced] == [
        "iter: remote next (model.py:4)", "iter: remote next (model.py:4) #2",
    ]  # fmt: skip
    assert [set(devices(result, placed.title).values()) for placed in unplaced] == [{"GPU:0"}, {"GPU:1"}]
    assert write_title(unplaced[0]).endswith("8 nodes on its device, without placement, soft placement on")
    assert (result.agrees, result.coverage.missing) == (True, ())
    assert unplaced[0].title not in {verdict.program for verdict in of_agreement(result)}


@pytest.mark.parametrize("machine", ["cpu:1", "cpu:1,gpu:2"])
def test_a_dataset_that_a_strategy_shards_is_rewritten_twice(write, machine) -> None:
    write("""\
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        rows = tf.data.Dataset.range(16).map(lambda x: (x + 1, x)).batch(8)
        for each in strategy.experimental_distribute_dataset(rows):
            pass
    """)
    result = simplace.check("model.py", machine)
    sinks = {node: device for node, device in devices(result, "Dataset_map_lambda").items() if "FakeSink" in node}
    assert sinks == dict.fromkeys(("FakeSink0", "FakeSink1", "FakeSink0/_7", "FakeSink1/_8"), "CPU:0")
    assert (result.agrees, result.coverage.missing) == (True, ())


def test_all_that_a_run_logs_is_accounted_for(write) -> None:
    write("""\
        import tensorflow as tf
        @tf.function(jit_compile=True)
        def compiled(x):
            return x * 2.0
        @tf.function
        def step(x):
            return tf.reduce_sum(compiled(x))
        for x in tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).map(lambda x: x + 1.0):
            step(x)
        compiled(x)
    """)
    result = simplace.check("model.py", "cpu:1,gpu:1")
    assert coverage_line(result) == "accounts for 14 of 14 lines of TensorFlow's log"
    assert result.agrees


def test_a_map_that_hands_on_its_elements_calls_no_function(write) -> None:
    write("""\
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        for each in strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)):  # which maps them
            pass
        rows = tf.data.Dataset.range(4).map(lambda x: x)
        kept = tf.data.Options()
        kept.experimental_optimization.noop_elimination = False
        for each in (*rows, *rows.with_options(kept)):
            pass
    """)
    observed = observe_script("model.py", (), Machine(gpus=2))
    logged = [shown_name(graph.function) for graph in observed.logged.graphs]
    assert logged.count("Dataset_map_lambda") == 1
    assert "Dataset_map_normalize" not in logged
    result = simplace.check("model.py", "cpu:1,gpu:2")
    assert (result.agrees, result.coverage.missing) == (True, ())
    assert [
        placed.title for placed in result if placed.is_uncalled and not placed.placement.program.runs_unplaced
    ] == []


@pytest.mark.parametrize("machine", ["cpu:1", "cpu:1,gpu:1", "cpu:1,gpu:2"])
def test_what_datasets_call_that_the_elements_of_a_dataset_are_made_of(write, capfd, machine: str) -> None:
    write("""\
        import tensorflow as tf
        def twice(x):
            with tf.device("/GPU:0"):
                return x * 2
        def up_to(i):
            return tf.data.Dataset.range(i).map(twice).filter(lambda x: x > 0)
        with tf.device("/GPU:0"):
            v = tf.Variable(3, dtype=tf.int64)
        @tf.function
        def total():
            sum = tf.constant(0, tf.int64)
            for x in tf.data.Dataset.range(3).flat_map(lambda i: tf.data.Dataset.range(i).map(twice)):
                sum += x
            return sum
        def read(text):
            print("python", text)
            return text
        numbers = tf.data.Dataset.range(4)
        print([int(x) for x in numbers.flat_map(lambda i: up_to(i).flat_map(up_to))])
        print([int(x) for x in numbers.interleave(lambda i: tf.data.Dataset.range(i).map(lambda x: x * v))])
        print([x.numpy().tolist() for x in numbers.window(2).flat_map(lambda w: w.batch(2).map(twice))])
        print(int(numbers.flat_map(up_to).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)), int(total()))
        texts = tf.data.Dataset.from_tensors("a").flat_map(
            lambda t: tf.data.Dataset.from_tensors(tf.numpy_function(read, [t], tf.string, stateful=False)).map(
                lambda t: twice(tf.strings.length(t))
            )
        )
        print([int(x) for x in texts])
    """)
    result = simplace.check("model.py", machine)
    assert capfd.readouterr().out.splitlines() == [
        "[2, 2, 2, 4, 6]", "[0, 0, 3, 0, 3, 6]", "[[0, 2], [4, 6]]", "8 2", "python b'a'", "[2]",
    ]  # fmt: skip
    assert (result.agrees, result.coverage.missing) == (True, ())
    of_python = 1 if "gpu" in machine else 0
    assert len([placed for placed in result if placed.is_uncalled]) == of_python, agreement_line(result)


SESSION = """\
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    D = v1.data.Dataset
    def branch(x):
        with tf.device("/GPU:0"):
            a, b = x * 2, x + 3
        return tf.cond(x > 1, lambda: b * 5, lambda: a + 1) + a
    table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(
        tf.constant(["a", "b"]), tf.constant([0, 1], tf.int64)), 1)
    count = v1.placeholder(tf.int64, [])
    once = v1.data.make_one_shot_iterator(D.range(4).map(lambda x: x * 3).filter(lambda x: x > 0)).get_next()
    makers = [
        v1.data.make_initializable_iterator(rows)
        for rows in (D.range(4).map(branch).batch(2), D.range(count).shuffle(3, seed=1).map(lambda x: x - 1),
                     D.from_tensor_slices(["a", "b", "c"]).map(table.lookup).prefetch(1))
    ]
    rows = [maker.get_next() for maker in makers]
    weight = v1.get_variable("w", initializer=tf.constant(3, tf.int64), use_resource=True)
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        session.run([maker.initializer for maker in makers], {count: 4})
        call = session.make_callable(once)
        for _ in range(2):
            print(*(each.tolist() for each in session.run([weight * rows[0], *rows])), call())
"""


@pytest.mark.parametrize("machine", ["cpu:1", "cpu:1,gpu:1", "cpu:1,gpu:2"])
def test_datasets_of_sessions_are_placed_where_their_iterators_are_made(write, capfd, machine: str) -> None:
    write(SESSION)
    result = simplace.check("model.py", machine)
    assert capfd.readouterr().out == "[3, 15] [1, 5] 0 0 3\n[87, 108] [29, 36] 2 1 6\n"
    assert (result.agrees, result.coverage.missing) == (True, ()), agreement_line(result) + coverage_line(result)
    assert [each for each in of_agreement(result) if each.skipped] == []
    names = {placed.placement.program.name for placed in result}
    assert names >= {"Dataset_map_branch", "Dataset_filter_lambda", "Dataset_map_StaticVocabularyTable.lookup"}


def test_a_branch_that_grappler_optimizes_as_any_function_is_not_compared(write, capfd) -> None:
    write("""\
        import tensorflow as tf
        v1 = tf.compat.v1
        v1.disable_eager_execution()
        def branch(x):
            return tf.cond(x > 1, lambda: tf.identity(x * 5) * 1 * 3, lambda: x - x)
        once = v1.data.make_one_shot_iterator(v1.data.Dataset.range(4).map(branch)).get_next()
        with v1.Session() as session:
            print(*(session.run(once) for _ in range(4)))
    """)
    result = simplace.check("model.py", "cpu:1")
    assert capfd.readouterr().out == "0 0 30 45\n"
    assert result.agrees
    told = "; 1 function not compared, as Grappler's meta_optimizer is not replayed"
    assert agreement_line(result).endswith(told)


def test_a_variant_that_a_function_captures_is_on_the_device_of_its_op(write) -> None:
    write("""\
        import tensorflow as tf
        v1 = tf.compat.v1
        with tf.Graph().as_default():
            rows = tf.data.Dataset.range(10).apply(tf.data.experimental.copy_to_device("/cpu:1"))
            with tf.device("/cpu:1"):
                element = v1.data.make_one_shot_iterator(rows).get_next()
            with v1.Session() as session:
                print(session.run(element))
    """)
    result = simplace.check("model.py", "cpu:2")
    assert devices(result, "_remote_init_func")["remotecall_wrapdatasetvariant"] == "CPU:1"
    assert result.agrees
