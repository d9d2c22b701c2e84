"""Programs on emulated GPUs run to their own end with the values that a CPU computes; each asserts what it got."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, check, place
from simplace.machine.machine import Machine
from simplace.result import Result

pytestmark = pytest.mark.tf
Ask = Callable[[str, Settings], Result]

LOOPS = """\
    import tensorflow as tf
    w = tf.Variable([[1.0], [2.0]])
    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x @ w)
        w.assign_sub(tape.gradient(loss, w))
        return loss
    @tf.function
    def test_step(x):
        return x @ w
    for epoch in range(2):
        for step in range(3):
            loss = train_step(tf.ones([1, 2]))
        for step in range(2):
            result = test_step(tf.ones([1, 2]))
    assert (float(loss), float(result[0, 0])) == (-7.0, -9.0)
    assert w.device.endswith("GPU:0") and result.device.endswith("GPU:0")
"""

KINDS = """\
    import tensorflow as tf
    generator = tf.random.Generator.from_seed(1)
    with tf.device("CPU:0"):
        expected = tf.random.Generator.from_seed(1).normal([2])
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
    @tf.function
    def draw():
        return generator.normal([2])
    assert bool(tf.reduce_all(draw() == expected))
    @tf.function
    def collect(x):
        found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        while tf.reduce_sum(x) < 100.0:
            x = x * 2.0
            found = found.write(found.size(), tf.reduce_sum(x))
        ragged = tf.RaggedTensor.from_row_lengths(x, [1, 2])
        return found.stack(), tf.strings.as_string(x), ragged, tf.sparse.from_dense(x)
    sums, text, ragged, sparse = collect(tf.constant([1.0, 0.0, 3.0]))
    assert sums.numpy().tolist() == [8.0, 16.0, 32.0, 64.0, 128.0]
    assert text.numpy().tolist() == [b"32.000000", b"0.000000", b"96.000000"]
    assert ragged.to_list() == [[32.0], [0.0, 96.0]] and sparse.indices.numpy().tolist() == [[0], [2]]
    @tf.function
    def look_up(words):
        return table.lookup(words)
    assert look_up(tf.constant(["a", "b"])).numpy().tolist() == [7, -1]
    @tf.function
    def square(x):
        return x * x
    with tf.GradientTape() as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = square(x)
    assert float(tape.gradient(y, x)) == 6.0
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def add_up(rows):
        return tf.reduce_sum(rows, 1)
    assert add_up(tf.ones([10, 2])).shape == [10] and add_up(tf.ones([3, 2])).shape == [3]
"""

REPLICAS = """\
    import tensorflow as tf
    strategy = tf.distribute.MirroredStrategy()
    @tf.function
    def step():
        def replica():
            context = tf.distribute.get_replica_context()
            one = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
            return context.all_reduce("SUM", one), context.all_reduce("MEAN", one * 2.0)
        return tuple(strategy.experimental_local_results(each) for each in strategy.run(replica))
    sums, means = step()
    assert [float(each) for each in sums] == [3.0, 3.0] and [float(each) for each in means] == [3.0, 3.0]
    assert [each.device[-5:] for each in sums] == ["GPU:0", "GPU:1"]
"""

# Indexed slices are gathered in a branch of each replica, those of one length or padded to one.
GATHERED = """\
    import tensorflow as tf
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        table = tf.Variable(tf.ones([5, 2]))
    @tf.function
    def step(ids):
        def replica(ids):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, ids) ** 2)
            gradient = tape.gradient(loss, table)
            assert isinstance(gradient, tf.IndexedSlices)
            gradient = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
            table.assign_sub(0.1 * tf.convert_to_tensor(gradient))
            return loss
        return strategy.reduce("SUM", strategy.run(replica, args=(ids,)), axis=None)
    ids = tf.data.Dataset.from_tensor_slices([0, 1, 1, 2, 4, 4, 4]).batch(4)
    losses = [float(step(each)) for each in strategy.experimental_distribute_dataset(ids)]
    assert losses == [8.0, 6.0], losses
    for copy in strategy.experimental_local_results(table):
        assert [round(float(row[0]), 5) for row in copy] == [0.8, 0.6, 0.8, 1.0, 0.4], copy
"""

# Keras uses CudnnRNNV3 where it sees a GPU, which no CPU has.
RECURRENT = """\
    import keras
    import tensorflow as tf
    x = tf.random.stateless_normal([4, 5, 3], [1, 2])
    mask = tf.sequence_mask([5, 3, 1, 2])
    for kind in (keras.layers.LSTM, keras.layers.GRU):
        for options in ({}, {"go_backwards": True, "return_sequences": True}):
            one, other = kind(4, **options), kind(4, use_cudnn=False, **options)
            for layer in (one, other):
                layer.build(x.shape)
            other.set_weights(one.get_weights())
            @tf.function
            def differentiate(layer, x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = layer(x, mask=mask)
                    loss = tf.reduce_sum(y * y)
                return y, *tape.gradient(loss, [x, *(each.value for each in layer.trainable_variables)])
            found, expected = differentiate(one, x), differentiate(other, x)
            assert all(float(tf.reduce_max(abs(a - b))) < 1e-5 for a, b in zip(found, expected)), (found, expected)
            assert float(tf.reduce_sum(abs(found[0]))) > 0.1
            graph = differentiate.get_concrete_function(one, x).graph
            assert "CudnnRNNV3" in {op.type for op in graph.get_operations()}
"""

# What ReduceDataset calls is placed on a GPU, in a function and outside.
REDUCED = """\
    import tensorflow as tf
    ones = tf.data.Dataset.from_tensors(tf.ones([2, 2])).repeat(3)
    assert int(tf.data.Dataset.range(5).reduce(0, lambda total, each: total + tf.cast(each, tf.int32))) == 10
    assert float(ones.reduce(0.0, lambda total, each: total + tf.reduce_sum(each))) == 12.0
    @tf.function
    def add_up():
        total = 0.0
        for each in ones:
            total += tf.reduce_sum(each)
        return total
    assert float(add_up()) == 12.0
"""

# What such a walk does beside its value is done once for each element, and it may read variables of a GPU.
REDUCED_WITH_EFFECTS = """\
    import tensorflow as tf
    count, weight = tf.Variable(0), tf.Variable(2.0)
    def add(total, each):
        count.assign_add(1)
        return total + tf.cast(each, tf.float32) * weight
    numbers = tf.data.Dataset.range(10)
    assert float(numbers.reduce(0.0, add)) == 90.0
    assert int(count) == 10
    @tf.function
    def add_up():
        return numbers.reduce(0.0, add)
    assert float(add_up()) == 90.0
    assert int(count) == 20
    @tf.function
    def train(numbers):
        for each in numbers:
            count.assign_add(1)
            weight.assign_sub(0.1 * tf.cast(each, tf.float32))
        return "trained"
    train(numbers)
    assert int(count) == 30
    assert round(float(weight), 3) == -2.5
"""

# TensorFlow's fast path takes a tensor where an op wants a list; so are the states of iterators joined.
TENSORS_FOR_LISTS = """\
    import numpy as np
    import tensorflow as tf
    assert tf.strings.join(tf.constant(["a", "b"]), "-").numpy() == b"a-b"
    assert tf.raw_ops.AddN(inputs=np.ones([3, 2], np.float32)).numpy().tolist() == [3.0, 3.0]
    numbers = tf.data.Dataset.range(10).shuffle(5, seed=1, reshuffle_each_iteration=False).as_numpy_iterator()
    next(numbers)
    for wrong in (3, "ab", tf.constant("ab")):
        try:
            tf.strings.join(wrong)
            raise SystemExit(f"{wrong} was taken for a list")
        except TypeError as error:
            assert "Expected list" in str(error), error
    if hasattr(numbers, "save"):
        state = numbers.save()
        expected = [next(numbers) for _ in range(3)]
        numbers.restore(state)
        assert [next(numbers) for _ in range(3)] == expected
"""

ITERATOR_IN_LOOP = """\
    import tensorflow as tf
    strategy = tf.distribute.MirroredStrategy()
    numbers = tf.data.Dataset.from_tensor_slices(tf.range(12, dtype=tf.float32)).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(numbers))
    @tf.function
    def add_up(iterator, n):
        total = tf.constant(0.0)
        if n > 1:
            for _ in tf.range(n):
                total += strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(next(iterator),)), axis=None)
        return total
    assert float(add_up(iterator, tf.constant(2))) == 6.0
"""

SESSION = """\
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.matmul(x, w))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=step)
    elements = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
    element = elements.get_next()
    numbers = iter(range(5))
    (folded,) = tf.py_func(lambda: next(numbers), [], [tf.int64], stateful=False)
    with tf.Session() as session:
        assert (session.run(folded), session.run(folded)) == (0, 0)
        session.run(tf.global_variables_initializer())
        losses = [float(session.run([loss, train], {x: [[1.0, 1.0]]})[0]) for _ in range(3)]
        assert losses == [2.0, 0.0, -2.0] and session.run(step) == 3
        for epoch in range(2):
            session.run(elements.initializer)
            seen = []
            try:
                while True:
                    seen.append(int(session.run(element)))
            except tf.errors.OutOfRangeError:
                assert seen == [0, 1, 2]
"""


AROUND_CALLS = """\
    import tensorflow as tf
    from tensorflow.python.eager import context
    v1 = tf.compat.v1
    queue = tf.queue.FIFOQueue(10, [tf.float32], shapes=[[2]])
    @tf.function
    def put(x):
        queue.enqueue(x * 2.0)
    put(tf.ones([2]))
    assert queue.dequeue().numpy().tolist() == [2.0, 2.0]
    @tf.function
    def double(x):
        return x * 2.0
    traced = double.get_concrete_function(tf.TensorSpec([2], tf.float32))
    try:
        traced(tf.constant([1, 2]))
        raise SystemExit("an int32 was taken for a float")
    except tf.errors.InvalidArgumentError:
        pass
    add_up = tf.function(tf.reduce_sum)
    with tf.GradientTape() as tape:
        x = tf.ones([3])
        tape.watch(x)
        y = add_up(x) * 2.0
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0, 2.0]
    with tf.Graph().as_default(), v1.Session() as session:
        rows = v1.placeholder(tf.float32, [None, 2])
        assert session.run(rows * 2.0, {rows: [[1.0, 2.0]] * 5}).shape == (5, 2)
        assert session.run(tf.unique(tf.constant([1, 2, 2, 3])).y).tolist() == [1, 2, 3]
        v1.summary.scalar("one", tf.constant(1.0))
        assert type(session.run(v1.summary.merge_all())) is bytes
    context._reset_context()
    @tf.function
    def triple(x):
        return x * 3.0
    assert triple(tf.ones([2])).numpy().tolist() == [3.0, 3.0]
"""

LIFETIMES = """
    import gc, weakref
    import tensorflow as tf
    double = tf.function(lambda x: x * 2.0)
    compiled = tf.function(lambda x: x * 3.0, jit_compile=True)
    def use(compute):
        variable = tf.Variable([1.0, 2.0])
        try:
            compute(tf.square(variable))
        except tf.errors.InvalidArgumentError:
            pass
        return weakref.ref(variable)
    outside = tf.function(lambda x: tf.gather(x, 9 + tf.size(x)))
    for compute in (tf.reduce_sum, tf.sort, double, compiled, outside, lambda x: tf.reshape(x, [3])):
        gc.collect()
        gc.disable()
        known = use(compute)  # a function is traced
        gc.collect()
        assert use(compute)() is None, compute
        gc.enable()
"""

DELETED = """
    import gc, weakref
    import tensorflow as tf
    def use(refusal):
        variable = tf.Variable([1.0, 2.0])
        known = weakref.ref(variable)
        double = tf.function(lambda: variable * 2.0)
        try:
            double()
        except refusal:
            pass
        del variable, double
        gc.collect()
        return known()  # before the frame ends
    assert use(ValueError) is None
"""

NOT_INLINED = """
    import tensorflow as tf
    with tf.device("GPU:0"):
        variable = tf.Variable(3.0)
    @tf.function(experimental_attributes={"_noinline": True})
    def increase(taken):
        taken.assign_add(2.0)
        return taken * 2.0, taken.handle
    @tf.function
    def call_on_cpu(taken):
        with tf.device("CPU:0"):
            return increase(taken)
    doubled, handle = call_on_cpu(variable)
    tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.constant(1.0))  # that of the variable, and no copy's
    assert (float(doubled), float(variable)) == (10.0, 6.0)
    @tf.function(experimental_attributes={"_noinline": True})
    def double_on_gpu(x):
        with tf.device("GPU:0"):
            return x * 2.0
    with tf.device("CPU:0"):
        assert float(tf.function(lambda x: double_on_gpu(x))(tf.constant(2.0))) == 4.0
"""

FUNCTIONS_GO = """
    import gc
    import tensorflow as tf
    from tensorflow.python.eager import context
    def use():
        inner = tf.function(lambda x: x * 2.0)
        outer = tf.function(lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: inner(x), lambda: x))
        elements = tf.data.Dataset.range(3).map(lambda x: inner(tf.cast(x, tf.float32)))
        assert (float(outer(tf.constant(2.0))), [float(each) for each in elements]) == (4.0, [0.0, 2.0, 4.0])
    use()
    gc.collect()
    before = set(context.context().list_function_names())
    use()
    gc.collect()
    left = set(context.context().list_function_names()) - before
    assert not left, left
"""

EXECUTORS = """
    import tensorflow as tf
    increase = tf.function(lambda x: x + 5.0)
    def call(executor):
        with tf.experimental.function_executor_type(executor):
            return float(increase(tf.constant(1.0)))
    assert [call(executor) for executor in ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")] == [6.0] * 3
    try:
        call("NO_SUCH_EXECUTOR")
    except tf.errors.NotFoundError as error:
        assert "NO_SUCH_EXECUTOR" in error.message
    else:
        raise AssertionError
"""

INTS_OF_GPUS = """
    import tensorflow as tf
    @tf.function
    def double(x):
        return x * 2, tf.cast(x, tf.float32), tf.shape(x)
    for _ in range(2):  # TensorFlow places the first call
        results = double(tf.constant([1, 2]))
        assert [result.numpy().tolist() for result in results] == [[2, 4], [1.0, 2.0], [2]]
        assert [result.backing_device[-5:] for result in results] == ["CPU:0", "GPU:0", "CPU:0"]
        assert all(result.device.endswith("GPU:0") for result in results)
        results = double(results[0])
        assert results[0].numpy().tolist() == [4, 8]
"""

COLLECTIVES_OF_CPUS = """
    import tensorflow as tf
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        parts, keys = [], {"group_size": 2, "group_key": 1, "instance_key": 1}
        for i in range(2):
            with tf.device(f"CPU:{i}"):
                parts.append(tf.compat.v1.get_variable(f"v{i}", initializer=float(i + 1)))
        session.run(tf.compat.v1.global_variables_initializer())  # before the graph has a collective
        reduced = []
        for i in range(2):
            with tf.device(f"CPU:{i}"):
                reduced.append(tf.raw_ops.CollectiveReduceV2(
                    input=parts[i], merge_op="Add", final_op="Id", **keys, ordering_token=[]
                ))
        assert session.run(reduced) == [3.0, 3.0]
"""

ITERATOR_ON_GPU = """
    import tensorflow as tf
    strategy = tf.distribute.OneDeviceStrategy("/GPU:0")
    elements = tf.data.Dataset.from_tensor_slices(tf.range(5.0)).batch(2)
    distributed = iter(strategy.experimental_distribute_dataset(elements))
    @tf.function
    def take(iterator):
        element = next(iterator)
        return tf.reduce_sum(element), tf.shape(element), tf.rank(element), tf.size(element)
    found = [[value.numpy().tolist() for value in take(distributed)] for _ in range(3)]
    assert found == [[1.0, [2], 1, 2], [5.0, [2], 1, 2], [4.0, [1], 1, 1]], found
"""

THREADS = """
    from concurrent.futures import ThreadPoolExecutor
    import tensorflow as tf
    count = tf.Variable(0.0)
    @tf.function
    def increase():
        return count.assign_add(1.0)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: increase(), range(40)))
    assert float(count) == 40.0, float(count)
    @tf.function
    def reset():
        count.assign(100.0)
        with tf.control_dependencies([tf.py_function(lambda: increase(), [], tf.float32)]):
            return count.read_value()
    assert float(reset()) == float(count) == 101.0, float(count)
"""

PY_FUNCTIONS = """\
    from concurrent.futures import ThreadPoolExecutor
    from time import sleep
    import tensorflow as tf
    tf.config.threading.set_inter_op_parallelism_threads(2)
    def tile(n):
        with tf.device("GPU:0"):
            sleep(0.01)  # so that all threads of the pool are here
            assert tf.constant([1.0]).device.endswith("GPU:0")
            made = tf.tile(tf.reshape(tf.range(tf.cast(n, tf.float32)), [-1, 1]), tf.stack([2, n]))
            return tf.reduce_sum(made), tf.linalg.trace(tf.eye(n))
    @tf.function
    def tiled(n):
        return tf.py_function(tile, [n], [tf.float32, tf.float32])
    expected = [[float(n * n * (n - 1)), float(n)] for n in range(1, 9)]
    with ThreadPoolExecutor(4) as threads:
        found = [list(map(float, sums)) for sums in threads.map(tiled, map(tf.constant, range(1, 9)))]
    assert found == expected, found
    call = lambda n: tf.py_function(tile, [tf.cast(n, tf.int32)], [tf.float32, tf.float32])
    elements = tf.data.Dataset.range(1, 9).map(call, num_parallel_calls=4)
    found = [list(map(float, sums)) for sums in elements]
    assert found == expected, found
"""

# A dataset's py_function makes constants, whose device nobody names, while the loop does so, too.
CONSTANTS_OF_TWO_THREADS = """\
    import tensorflow as tf
    def last_of(rows):
        return tf.concat((rows, [rows[-1]]), axis=0)
    def generate():
        for i in range(200):
            yield [[i, 1, 2], [i, 3, 4]]
    rows = tf.data.Dataset.from_generator(generate, output_types=tf.int32, output_shapes=(2, 3))
    total = tf.zeros([0, 3], tf.int32)
    for each in rows.map(lambda rows: tf.py_function(last_of, [rows], tf.int32)).prefetch(4):
        total = tf.concat((total, each, [each[-1]]), axis=0)
    assert total.shape == (800, 3), total.shape
    assert int(tf.reduce_sum(total)) == 4 * sum(range(200)) + 200 * 24, int(tf.reduce_sum(total))
"""

# Two threads run ops whose integers are in host memory, beside one whose ops and iterators end with errors.
EAGER_THREADS = """\
    import threading
    import tensorflow as tf
    counter, done, found = tf.Variable(0), threading.Event(), []
    def fail():
        while not done.is_set():
            for _ in tf.data.Dataset.range(2):
                pass
            try:
                with tf.device("CPU:0"):
                    tf.strings.to_number(tf.constant("no"))
            except tf.errors.InvalidArgumentError:
                pass
    def work(k):
        try:
            for i in range(100):
                numbers = tf.constant([k, i, k + i])
                found.append(tf.concat([numbers, numbers], 0).numpy().tolist() == 2 * [k, i, k + i])
                found.append(int(tf.unique(tf.reshape(numbers, [3])).y[0]) == k)
                counter.assign_add(1)
        except Exception as error:
            found.append(error)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(200, 202)]
    failing = threading.Thread(target=fail)
    for thread in (failing, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    failing.join()
    assert (len(found), int(counter)) == (400, 200), (found[-2:], int(counter))
    assert set(found) == {True}, set(found)
"""

DERIVATIVES = """
    import tensorflow as tf
    def differentiate(function):
        def derivative(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            return tape.gradient(y, x)
        return derivative
    @tf.function
    def cosine(x):
        return tf.cos(x)
    one = tf.constant(1.0)
    function, traced = cosine, tf.function(cosine)
    for expected in (tf.cos(one), -tf.sin(one), -tf.cos(one)):
        for each in (function, traced, tf.function(function)):
            assert abs(float(each(one) - expected)) < 1e-6
        function, traced = differentiate(function), tf.function(differentiate(traced))
"""

ASYNCHRONOUS = """\
    import tensorflow as tf
    from tensorflow.python.ops import data_flow_ops
    tf.config.experimental.set_synchronous_execution(False)
    lock, v = tf.CriticalSection(), tf.Variable(tf.ones([2, 2]))
    @tf.function
    def square():
        return lock.execute(lambda: v.assign(tf.matmul(v, v)) + 0.0)
    assert float(tf.reduce_sum(square())) == 8.0
    lock.execute(lambda: v.assign_add(tf.ones([2, 2])))
    assert float(tf.reduce_sum(v)) == 12.0
    with tf.device("GPU:0"):
        queue = data_flow_ops.GPUCompatibleFIFOQueue(2, tf.float32)
        queue.enqueue((tf.matmul(v, v),))
        taken = queue.dequeue()
        assert (taken.device[-5:], float(taken[0][0])) == ("GPU:0", 18.0)
"""

GPUS_OF_A_SESSION = """\
    import tensorflow as tf
    from tensorflow.python.framework import function
    from tensorflow.python.ops import functional_ops
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        v = tf1.get_variable("v", [], initializer=tf1.ones_initializer(), aggregation=tf1.VariableAggregation.MEAN)
        def step():
            context = tf.distribute.get_replica_context()
            total = context.all_reduce("sum", tf.cast(context.replica_id_in_sync_group + 1, tf.float32) * v)
            return total, v.assign_add(total)
        steps = [strategy.experimental_local_results(each) for each in strategy.run(step)]
    gathered = []
    for i in range(2):  # on two logical CPUs TensorFlow gathers the same
        with tf.device(f"/GPU:{i}"):
            keys = {"group_key": 70, "instance_key": 90, "communication_hint": "ring", "ordering_token": []}
            x = tf.constant([1.0, 2.0]) * (i + 1.0)
            gathered.append(tf.raw_ops.CollectiveGatherV2(input=x, group_size=2, **keys))
    @function.Defun(tf.float32)
    def twice(x):
        return x + x
    gpu = "/job:localhost/replica:0/task:0/device:GPU:1"
    called = functional_ops.remote_call(args=[tf.constant(4.0)], Tout=[tf.float32], f=twice, target=gpu)[0]
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(steps) == [(3.0, 3.0), (4.0, 4.0)]
        assert (session.run(steps), session.run(v)) == ([(12.0, 12.0), (16.0, 16.0)], 16.0)
        assert [each.tolist() for each in session.run(gathered)] == [[1.0, 2.0, 2.0, 4.0]] * 2
        assert session.run(called) == 8.0
"""

EAGER_COLLECTIVES = """\
    import json, os
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})
    import tensorflow as tf
    from concurrent.futures import ThreadPoolExecutor
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        local = {"synchronization": tf.VariableSynchronization.ON_READ}
        total = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM, **local)
        mean = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN, **local)
    def replica():
        number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        total.assign(number + 1.0)
        mean.assign(number * 3.0)
        return tf.reshape(number, [1])
    parts = strategy.run(replica)  # outside of a function: each collective is an eager op in a thread of its replica
    assert (total.numpy(), mean.numpy(), strategy.gather(parts, 0).numpy().tolist()) == (3.0, 1.5, [0.0, 1.0])
    def combine(number):  # on two logical CPUs TensorFlow returns the same
        with tf.device(f"/GPU:{number}"):
            x = tf.constant([number + 1, 5 - number])
            keys = {"input": x, "group_size": 2, "group_key": 70, "ordering_token": []}
            ways = enumerate([("Max", "Id"), ("Min", "Id"), ("Mul", "Id"), ("Add", "Div")])
            reduced = [
                tf.raw_ops.CollectiveReduceV2(instance_key=i, merge_op=merge, final_op=final, **keys).numpy().tolist()
                for i, (merge, final) in ways
            ]
            return reduced, tf.raw_ops.CollectiveGatherV2(instance_key=9, **keys)
    with ThreadPoolExecutor(2) as pool:
        for number, (reduced, gathered) in enumerate(pool.map(combine, range(2))):
            assert reduced == [[2, 5], [1, 4], [2, 20], [1, 4]]
            assert (gathered.numpy().tolist(), gathered.device[-5:]) == ([1, 5, 2, 4], f"GPU:{number}")
"""

PACKED = """\
    import tensorflow as tf
    from tensorflow.python.distribute.packed_distributed_variable import PackedDistributedVariable
    variables = []
    for i in range(2):
        with tf.device(f"GPU:{i}"):
            variables.append(tf.Variable(i + 1.0))
    packed = PackedDistributedVariable(variables)
    @tf.function
    def update():
        with tf.device("GPU:0"):
            packed.assign_add(3.0)
            first = packed.value()
        with tf.device("GPU:1"):
            packed.assign_sub(4.0)
            return first, packed.value()
    assert [float(each) for each in (*update(), *variables)] == [4.0, -2.0, 4.0, -2.0]
"""

PROGRAMS = {
    "asynchronous": (ASYNCHRONOUS, 1),
    "derivatives": (DERIVATIVES, 1),
    "threads": (THREADS, 1),
    "threads of eager ops": (EAGER_THREADS, 1),
    "Python functions": (PY_FUNCTIONS, 1),
    "constants of two threads": (CONSTANTS_OF_TWO_THREADS, 1),
    "iterator on a GPU": (ITERATOR_ON_GPU, 1),
    "lifetimes": (LIFETIMES, 1),
    "deleted": (DELETED, 1),
    "ints of GPUs": (INTS_OF_GPUS, 1),
    "functions go": (FUNCTIONS_GO, 1),
    "executors": (EXECUTORS, 1),
    "not inlined": (NOT_INLINED, 1),
    "collectives of CPUs": (COLLECTIVES_OF_CPUS, 1),
    "around calls": (AROUND_CALLS, 1),
    "loops": (LOOPS, 1),
    "kinds": (KINDS, 1),
    "replicas": (REPLICAS, 2),
    "gathered": (GATHERED, 2),
    "recurrent": (RECURRENT, 1),
    "reduced": (REDUCED, 1),
    "reduced with effects": (REDUCED_WITH_EFFECTS, 1),
    "tensors for lists": (TENSORS_FOR_LISTS, 1),
    "iterator in loop": (ITERATOR_IN_LOOP, 1),
    "session": (SESSION, 1),
    "packed variable": (PACKED, 2),
    "GPUs of a session": (GPUS_OF_A_SESSION, 2),
    "collectives of eager ops": (EAGER_COLLECTIVES, 2),
}


def run(folder: Path, text: str, gpus: int, calls: int = 10) -> Result:
    path = folder / "model.py"
    path.write_text(dedent(text))
    return place(str(path), Settings(Machine(gpus=gpus), calls=calls))


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(("text", "gpus"), PROGRAMS.values(), ids=PROGRAMS)
def test_values_are_those_of_a_cpu(tmp_path: Path, text: str, gpus: int) -> None:
    found = run(tmp_path, text, gpus, calls=-1)
    assert found.failure is None
    assert found.agrees


@pytest.mark.usefixtures("forked")
def test_after_some_calls_the_latest_values_stand_and_the_program_goes_on(tmp_path: Path) -> None:
    text = """\
        import tensorflow as tf
        count = tf.Variable(0.0)
        @tf.function
        def train_step():
            return count.assign_add(1.0)
        @tf.function
        def test_step():
            return count * 2.0
        for _ in range(1000):
            last = train_step()
        assert float(last) == 10.0
        assert float(test_step()) == 20.0
    """
    found = run(tmp_path, text, 1)
    assert found.failure is None
    assert [placed.name for placed in found] == ["train_step", "test_step"]
    assert found.remarks == (
        "train_step was computed 10 times; 990 later calls returned the latest values "
        "(--calls all computes every one).",
    )


@pytest.mark.usefixtures("forked")
def test_an_error_after_calls_that_were_not_computed_says_so(tmp_path: Path) -> None:
    text = """\
        import tensorflow as tf
        count = tf.Variable(0.0)
        @tf.function
        def train_step():
            return count.assign_add(1.0)
        for _ in range(12):
            train_step()
        assert float(count) == 12.0
    """
    assert str(run(tmp_path, text, 1).failure).endswith(
        "AssertionError at {}:8; only some calls of train_step were computed, which --calls all changes".format(
            tmp_path / "model.py"
        )
    )
    assert run(tmp_path, text, 1, calls=-1).failure is None


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("calls", [10, -1])
def test_a_small_function_may_be_traced_at_each_call(tmp_path: Path, calls: int) -> None:
    text = """\
        import tensorflow as tf
        for size in range(60):
            tf.function(lambda x: x * 2.0)(tf.ones([size]))
    """
    found = run(tmp_path, text, 1, calls)
    assert (found.ending, len(found.programs)) == ("", 60)


@pytest.mark.usefixtures("forked")
def test_what_the_program_would_raise_it_raises(tmp_path: Path) -> None:
    text = """\
        import tensorflow as tf
        @tf.function
        def invert(x):
            return tf.linalg.inv(x)
        invert(tf.zeros([2, 2]))
    """
    failure = run(tmp_path, text, 1).failure
    assert failure is not None
    assert "Input is not invertible" in str(failure)
    assert str(failure).endswith("model.py:5")
    assert "simplace_cpu" not in str(failure)


ERRORS = """\
    import tensorflow as tf
    total, count = tf.Variable(0.0), tf.Variable(0.0)
    @tf.function
    def take(iterator):
        for _ in tf.range(2):
            total.assign_add(next(iterator))
    @tf.function
    def check(x):
        count.assign_add(1.0)
        tf.debugging.assert_positive(x)
    iterator, seen = iter(tf.data.Dataset.from_tensor_slices([1.0, 2.0, 4.0])), []
    for step, value in ((take, iterator), (take, iterator), (check, tf.constant(1.0)), (check, tf.constant(-1.0))):
        try:
            step(value)
        except (tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError) as error:
            seen.append(type(error).__name__)
    assert seen == ["OutOfRangeError", "InvalidArgumentError"]
    assert [float(total), float(count)] == [7.0, 2.0], [float(total), float(count)]
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_what_was_assigned_before_an_error_stays(tmp_path: Path, gpus: int) -> None:
    result = run(tmp_path, ERRORS, gpus)
    assert result.failure is None


SESSIONS = """\
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [2])
    y = [tf.identity(tf.add_n([x * 3e38, x * 3e38]) * 0.1), tf.exp(x) - 1.0]
    without = tf.ConfigProto()
    without.graph_options.rewrite_options.disable_meta_optimizer = True
    def run(config):
        with tf.Session(config=config) as session:
            made, handle = session.make_callable(y, [x]), session.partial_run_setup(y, [x])
            found = [session.run(y, {x: [1.0, 2.0]}), made([1.0, 2.0]), session.partial_run(handle, y, {x: [1.0, 2.0]})]
        return [str(values[0][0]) for values in found]
    def turn_off():
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return run(None)
    assert [run(None), run(without), turn_off()] == [3 * ["6e+37"], 3 * ["inf"], 3 * ["inf"]]  # Grappler adds by 2 * x
"""


@pytest.mark.parametrize(("ask", "gpus"), [(place, 0), (place, 1), (check, 0), (check, 1)])
def test_sessions_compute_with_grappler_where_the_program_has_it(tmp_path: Path, ask: Ask, gpus: int) -> None:
    plain = subprocess.run([sys.executable, "-c", dedent(SESSIONS)], capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    path = tmp_path / "model.py"
    path.write_text(dedent(SESSIONS))
    result = ask(str(path), Settings(Machine(gpus=gpus)))
    assert (result.failure, result.agrees) == (None, True)


CALLED_IN_A_GRAPH = """\
    import sys
    import tensorflow as tf
    def prune():
        tf.print("not needed", output_stream="file://" + sys.argv[1])
        return tf.constant(7)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        pruned = tf.compat.v1.wrap_function(prune, [])
        assert session.run(pruned()) == 7
    open(sys.argv[1], "a").write("end")
    assert open(sys.argv[1]).read() == "end"
"""


@pytest.mark.parametrize(("ask", "gpus"), [(place, 0), (place, 1), (check, 0), (check, 1)])
def test_what_grappler_prunes_in_a_called_function_never_runs(tmp_path: Path, ask: Ask, gpus: int) -> None:
    printed = tmp_path / "printed"
    command = [sys.executable, "-c", dedent(CALLED_IN_A_GRAPH), str(printed)]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    printed.unlink()
    path = tmp_path / "model.py"
    path.write_text(dedent(CALLED_IN_A_GRAPH))
    result = ask(str(path), Settings(Machine(gpus=gpus), arguments=(str(printed),)))
    assert (result.failure, result.agrees) == (None, True)


LONG_SESSION = """\
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [])
    count = tf.Variable(0.0)
    train, test = tf.assign_add(count, x), tf.identity(count, name="test")
    dataset = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
    element = dataset.get_next()
    for _ in range(2):
        with tf.Session() as session:
            session.run([count.initializer, dataset.initializer])
            made = session.make_callable(train, [x])
            for _ in range(30):
                session.run(train, {x: 1.0}), made(1.0)
            assert session.run(test) > 0
            try:
                while True:
                    session.run(element)
            except tf.errors.OutOfRangeError:
                print("end", session.run(test) == session.run(count))
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_session_with_many_runs_goes_on_to_the_programs_end(tmp_path: Path, capfd, gpus: int) -> None:
    path = tmp_path / "model.py"
    path.write_text(dedent(LONG_SESSION))
    result = place(str(path), Settings(Machine(gpus=gpus)))
    assert capfd.readouterr().out == "end True\nend True\n"
    assert (result.failure, result.ending, result.agrees) == (None, "", True)
    assert any(each.startswith("Session.run was computed ") for each in result.remarks)
