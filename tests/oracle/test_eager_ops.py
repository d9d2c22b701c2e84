"""Eager ops under TensorFlow: what is told of each kind, and that TensorFlow places them as simplace does."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.machine.machine import TWO_TASKS, Machine
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import MadeBy, ObservedEagerOp
from tests.agreement.campaign import eager_rounds
from tests.worlds import CPU, GPU0, GPU1

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
SEED, PROGRAMS = 1160, 40  # that run op by op, on each of two machines: none of these ends the process


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what a program ran outside of functions, by line and op, and look that TensorFlow agrees."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, devices: str = "cpu:1,gpu:2") -> dict[tuple[int, str], ObservedEagerOp]:
        Path("model.py").write_text("import tensorflow as tf\n" + dedent(text))
        result = simplace.place("model.py", devices)
        assert (result.eager_agreement.differences, result.failure) == ((), None)
        gpus = int(devices.rpartition(":")[2]) if "gpu" in devices else 0
        observed = observe_script("model.py", (), Machine(gpus=gpus), Options())
        assert len(observed.eager) == result.eager_agreement.total
        return {(int(each.op.at.rpartition(":")[2]), each.op.op): each for each in observed.eager}

    return run


def devices(each: ObservedEagerOp) -> tuple[str, ...]:
    return tuple(given.device for given in each.op.inputs)


def test_an_op_has_the_devices_that_the_context_had_then(seen) -> None:
    ops = seen(
        """\
        from tensorflow.python.eager import context
        def renew(cpus):
            context._reset_context()
            host = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * cpus)
        renew(2)
        with tf.device("CPU:1"):
            print(tf.fill([2], 3).device)
        renew(1)
        with tf.device("CPU:1"):
            print(tf.fill([2], 3).device)
        """
    )
    assert [ops[line, "Fill"].device for line in (9, 12)] == [CPU.replace("CPU:0", "CPU:1"), GPU0]


def test_kinds_are_counted_with_their_copies(seen) -> None:
    ops = seen(
        """\
        with tf.device("CPU:0"):
            a = tf.ones([10, 10]) * 2.0
        for i in range(5):
            b = tf.matmul(a, a)
            with tf.device("CPU:0"):
                c = tf.nn.relu(b)
            d = tf.matmul(c, a)
            n = tf.shape(d)
        assert (d.device[-5:], n.device[-5:], n.backing_device[-5:]) == ("GPU:0", "GPU:0", "CPU:0")
        assert float(tf.reduce_sum(d)) == 80000.0 * 10 / 10
        """
    )
    first, relu, second = ops[5, "MatMul"], ops[7, "Relu"], ops[8, "MatMul"]
    assert (first.times, first.device, devices(first)) == (5, GPU0, (CPU, CPU))
    assert (sum(first.copied), sum(first.sizes)) == (1, 400), "TensorFlow keeps the copy of a"
    assert (relu.times, relu.device, relu.copied, relu.sizes) == (5, CPU, (5,), (2000,))
    assert (second.device, second.copied) == (GPU0, (5, 0))
    numbers = {key: i for i, key in enumerate(ops)}
    assert MadeBy(0, numbers[7, "Relu"], 5) in second.made_by
    assert (ops[9, "Shape"].times, ops[9, "Shape"].device) == (5, GPU0)


def test_threads_count_their_ops_as_of_one_kind(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = """\
        import threading
        import tensorflow as tf
        ready = threading.Barrier(8)
        def work():
            ready.wait()
            for i in range(50):
                tf.nn.relu(x)
        x = tf.ones([2])
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """
    path.write_text(dedent(text))
    observed = observe_script(str(path), (), Machine(gpus=1), Options())
    assert [(each.times, each.device) for each in observed.eager if each.op.op == "Relu"] == [(400, GPU0)]


def test_variables_tables_and_datasets_go_where_they_are(seen) -> None:
    ops = seen(
        """\
        with tf.device("GPU:1"):
            v = tf.Variable([1.0, 2.0])
            whole = tf.Variable([1, 2])
        v.assign_add([1.0, 1.0])
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), -1)
        assert table.lookup(tf.constant([1, 5])).numpy().tolist() == [3, -1]
        for x in tf.data.Dataset.range(3):
            x = x + 1
        assert (v.numpy().tolist(), int(x)) == ([2.0, 3.0], 3)
        """
    )
    assert ops[3, "VarHandleOp"].device == GPU1
    assert ops[4, "VarHandleOp"].device == CPU, "no GPU has a kernel for int32 variables"
    assert (ops[5, "AssignAddVariableOp"].device, ops[7, "LookupTableFindV2"].device) == (GPU1, CPU)
    assert (ops[8, "RangeDataset"].device, ops[9, "AddV2"].times, ops[9, "AddV2"].device) == (CPU, 3, GPU0)


def test_hard_placement_refuses(seen) -> None:
    ops = seen(
        """\
        x = tf.ones([2])
        tf.config.set_soft_device_placement(False)
        for scope in ("GPU:1", "GPU:7"):
            try:
                with tf.device(scope):
                    tf.strings.as_string(x)
            except tf.errors.InvalidArgumentError:
                pass
        """
    )
    refused = ops[7, "AsString"].refused
    assert refused is not None
    assert refused.code == "INVALID_ARGUMENT"


def test_ops_that_the_program_describes_wrongly(seen) -> None:
    ops = seen(
        """\
        from tensorflow.python.eager import context, execute
        def run(op, inputs, *attrs):
            return execute.execute(op, 1, inputs, attrs, context.context())[0]
        def refuse(code, *asked):
            try:
                run(*asked)
            except code as error:
                return error.message
        a = tf.constant([[3.0]])
        product = run("MatMul", [a, a], "T", tf.int32.as_datatype_enum)  # TensorFlow looks at the inputs
        assert (product.device[-5:], product.numpy().tolist()) == ("GPU:0", [[9.0]])
        assert "does not exist" in refuse(tf.errors.InvalidArgumentError, "Identity", [a], "colour", "red")
        assert "is neither a type of" in refuse(tf.errors.NotFoundError, "Colour", [a])
        """
    )
    assert (ops[4, "MatMul"].device, devices(ops[4, "MatMul"])) == (GPU0, (GPU0, GPU0))
    assert sorted(op for _, op in ops) == ["MatMul", "_EagerConst"]


def test_a_table_of_variables_is_refused_on_gpus_as_on_two_logical_cpus(seen) -> None:
    program = """\
        from tensorflow.python.ops import lookup_ops
        hosts = tf.config.list_physical_devices("CPU")
        if not tf.config.list_physical_devices("GPU"):
            tf.config.set_logical_device_configuration(hosts[0], [tf.config.LogicalDeviceConfiguration()] * 2)
        with tf.device(None if tf.config.list_physical_devices("GPU") else "CPU:1"):
            v = tf.Variable(1.0)
        with tf.device("CPU:0"):
            table = lookup_ops.DenseHashTable(tf.string, tf.resource, v.handle, "<empty>", "<deleted>")
        try:
            table.lookup("x")
        except tf.errors.InvalidArgumentError as error:
            print(error.message)
        """
    on_gpu, on_cpus = (seen(program, machine)[11, "LookupTableFindV2"].refused for machine in ("cpu:1,gpu:1", "cpu:1"))
    assert on_gpu is not None
    assert on_cpus is not None
    assert "device:GPU:0 vs /job:localhost/replica:0/task:0/device:CPU:0" in on_gpu.message
    assert on_cpus.message == on_gpu.message.replace("GPU:0", "CPU:1")


def test_the_program_ends_with_a_refusal_that_was_predicted(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(
        "import tensorflow as tf\ntf.config.set_soft_device_placement(False)\n"
        "with tf.device('GPU:0'):\n    tf.strings.as_string(1.0)\n"
    )
    result = simplace.place("model.py", "cpu:1,gpu:1")
    assert (result.failure, result.agrees) == (None, True)
    assert result.remarks == ("The program ended at the refusal, since it does not handle it.",)
    assert [each.placement.refusal.code for each in result.eager.ops if each.placement.refusal] == ["INVALID_ARGUMENT"]


def test_what_functions_and_simplace_itself_do_is_left_out(seen) -> None:
    ops = seen(
        """\
        v = tf.Variable(2.0)
        @tf.function
        def f(x):
            v.assign_add(1.0)
            return tf.py_function(lambda y: tf.nn.relu(y), [x * v], tf.float32)
        @tf.function(input_signature=[tf.TensorSpec([2])])
        def never(x):
            return x
        x = tf.tanh(tf.ones([2]))
        f(x)
        ds = tf.data.Dataset.from_generator(lambda: iter([tf.nn.relu(1.0)]), output_types=tf.float32)
        list(ds)
        """
    )
    assert not any(op in ("Relu", "AssignAddVariableOp") for _, op in ops)
    assert {line for line, op in ops if op == "Tanh"} == {10}


def test_small_integers_stay_on_the_cpu_where_the_environment_says_so(seen, monkeypatch) -> None:
    monkeypatch.setenv("TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING", "1")
    ops = seen(
        """\
        with tf.device("CPU:0"):
            a, b = tf.constant([1, 2]), tf.constant([3] * 65)
        a + a
        b + b
        """
    )
    assert (ops[4, "AddV2"].device, ops[5, "AddV2"].device) == (CPU, GPU0)


def test_an_explicit_policy_refuses_a_copy_after_placing(seen) -> None:
    ops = seen(
        """\
        with tf.device("CPU:0"):
            a = tf.ones([2, 2])
        tf.config.experimental.set_device_policy("explicit")
        try:
            tf.matmul(a, a)
        except tf.errors.InvalidArgumentError as error:
            assert "conflicting devices" in str(error)
        """
    )
    assert ops[6, "MatMul"].refused is None


def test_without_gpus(seen) -> None:
    ops = seen("print(tf.matmul([[1.0]], [[2.0]]))\n", "cpu:1")
    assert ops[2, "MatMul"].device == CPU


@pytest.mark.parametrize("machine", [Machine(gpus=2), Machine(cpus=2, gpus=0)], ids=["gpu:2", "cpu:2"])
def test_random_programs_agree_op_by_op(machine) -> None:
    batches = [batch for _, _, batch in eager_rounds(SEED, PROGRAMS, PROGRAMS, machine)]
    assert [line for batch in batches for line in batch.differences] == []
    assert sum(batch.total for batch in batches) > 100


def test_an_op_that_another_task_refuses_to_compute_is_not_refused_by_tensorflow() -> None:
    observed = observe_script("samples/towers_spread.py", (), TWO_TASKS, Options())
    assert ([each.op.op for each in observed.eager if each.refused], observed.failure) == ([], None)
