"""What real programs do beside computing: each goes on as it would, and is placed as TensorFlow places it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, check
from simplace.machine.machine import Machine
from simplace.result import Result

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

V1 = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
V2 = "import tensorflow as tf\n"
TWO_GPUS = Machine(gpus=2)


def checked(tmp_path: Path, text: str, head: str = V2, machine: Machine = TWO_GPUS) -> Result:
    """Run a program to its end, on two emulated GPUs where no machine is given, and compare with TensorFlow."""
    path = tmp_path / "model.py"
    path.write_text(head + dedent(text))
    result = check(str(path), Settings(machine, timeout=900.0))
    assert result.failure is None
    assert result.agrees
    return result


def names(result: Result) -> list[str]:
    return [placed.name for placed in result]


def test_a_perceptron_of_tensorflow_1(tmp_path: Path) -> None:
    text = """\
    import numpy as np
    def dense(x, units, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            kernel = tf.get_variable("kernel", [x.get_shape()[-1].value, units])
            bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
            return tf.matmul(x, kernel) + bias
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    with tf.device("/gpu:1"):
        logits = dense(tf.nn.relu(dense(x, 8, "hidden")), 3, "logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer().minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        shown = tf.identity(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value, _ = session.run([shown, train], {x: np.ones([5, 4]), labels: np.zeros([5])})
        assert float(value) > 0.0 and value.shape == ()
    """
    (placed,) = checked(tmp_path, text, V1)
    devices = {node.name: node.device[-5:] for node in placed.placement.nodes}
    assert (devices["logits/kernel"], devices["logits/MatMul"]) == ("GPU:1", "GPU:1")
    assert placed.placement.program.notes[""]["x"].shapes == ((5, 4),)  # as it was fed


def test_a_summary_is_fetched_as_a_string(tmp_path: Path) -> None:
    text = """\
    import os
    y = tf.reduce_mean(tf.random_uniform([3]))
    tf.summary.scalar("y", y)
    writer = tf.summary.FileWriter(os.path.dirname(__file__))
    with tf.Session() as session:
        summary, number, text = session.run([tf.summary.merge_all(), y, tf.strings.as_string(y)])
        assert isinstance(summary, bytes) and isinstance(text, bytes) and number.dtype == "float32"
        writer.add_summary(summary, 0)
    """
    assert names(checked(tmp_path, text, V1)) == ["Session.run"]


def test_a_saved_model_of_functions_that_are_gone(tmp_path: Path) -> None:
    text = """\
    import os
    class Model(tf.Module):
        def __init__(self):
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, words):
            return self.table.lookup(words)
    folder = os.path.join(os.path.dirname(__file__), "saved")
    tf.saved_model.save(Model(), folder)  # with functions that make, fill and delete the table
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        (words,), (found,) = signature.inputs.values(), signature.outputs.values()
        assert session.run(found.name, {words.name: ["a", "b"]}).tolist() == [7, -1]
    """
    assert "Session.run" in names(checked(tmp_path, text))


def test_the_flag_that_logs_placements_is_the_program_s(tmp_path: Path) -> None:
    text = """\
    flags = [tf.debugging.get_log_device_placement()]
    tf.ones([2]) + 1.0
    for flag in (True, False):
        tf.debugging.set_log_device_placement(flag)
        flags.append(tf.debugging.get_log_device_placement())
    assert flags == [False, True, False], flags
    """
    assert checked(tmp_path, text).eager_agreement is not None


def test_errors_that_a_program_prints(tmp_path: Path) -> None:
    text = """\
    import builtins, traceback
    assert __builtins__ is builtins
    @tf.function
    def pick(x):
        return tf.gather(x, [9])
    def run_each():
        yield "[Op:Add] name: ", lambda: tf.constant("a") + 1
        yield "[Op:Reshape] name: wide", lambda: tf.reshape(tf.ones([3]), tf.constant([2, 2]), name="wide")
        yield "[Op:Reshape]", lambda: tf.reshape(tf.ones([3]), [2, 2], name="wide")  # TensorFlow's slow path
        yield "_pick_", lambda: pick(tf.range(3))
    for ending, call in [*run_each()] * 2:  # an op whose like has run takes another way
        try:
            call()
        except tf.errors.InvalidArgumentError as error:
            message, stack = str(error), traceback.format_exc()
        assert message.endswith(ending) if "[Op" in ending else ending in message, message
        assert __file__ in stack and "oracle/child" not in stack and "<string>" not in stack, stack
    assert "in pick" in message
    """
    checked(tmp_path, text)


def test_a_report_that_no_variable_lacks_a_value(tmp_path: Path) -> None:
    text = """\
    doubled = tf.get_variable("v", [2]) * 2.0
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession() as session:
        session.run(doubled)
    """
    assert names(checked(tmp_path, text, V1))[0] == "Session.run"


def test_a_queue_that_nothing_was_put_into(tmp_path: Path) -> None:
    text = """\
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[2]])
    put = queue.enqueue([tf.random_uniform([2])])
    result = tf.identity(queue.dequeue()) + 1.0
    with tf.Session() as session:
        session.run(put)
        assert session.run(result).shape == (2,)
        session.run(put)
        session.run(queue.close())
    """
    result = checked(tmp_path, text, V1)
    assert all(placed.copy_agreement is not None for placed in result)


def test_a_staging_area_that_nothing_was_put_into(tmp_path: Path) -> None:
    text = """\
    from tensorflow.python.ops import data_flow_ops
    area = data_flow_ops.StagingArea([tf.float32], shapes=[[2]])
    put, got = area.put([tf.random_uniform([2])]), area.get()
    with tf.Session() as session:
        session.run(put)
        assert session.run(got)[0].shape == (2,)
    """
    checked(tmp_path, text, V1)


def test_an_accumulator_that_nothing_was_put_into(tmp_path: Path) -> None:
    text = """\
    gathered = tf.ConditionalAccumulator(tf.float32, shape=[2])
    put, taken = gathered.apply_grad(tf.random_uniform([2]), 0), gathered.take_grad(1)
    with tf.Session() as session:
        session.run(put)
        assert session.run(taken).shape == (2,)
    """
    checked(tmp_path, text, V1)


def test_collectives_of_a_session_whose_members_are_in_its_graph(tmp_path: Path) -> None:
    text = """\
    sizes, reduced = (2, 3), []  # three are to take part in the second one
    for key, size in enumerate(sizes):
        for i in range(2):
            with tf.device(f"GPU:{i}"):
                given = dict(group_key=size, instance_key=key, merge_op="Add", final_op="Id", subdiv_offsets=[0])
                reduced.append(tf.raw_ops.CollectiveReduce(input=tf.ones([3]), group_size=size, **given))
    with tf.Session() as session:
        assert session.run(reduced[:2])[1].tolist() == [2.0, 2.0, 2.0]
        assert session.run(reduced[2:])[1].tolist() == [0.0, 0.0, 0.0]  # and not waited for
    """
    checked(tmp_path, text, V1)


def test_threads_that_run_a_session_for_the_first_time_at_once(tmp_path: Path) -> None:
    """As queue runners do; making a session takes a while here, so that all of them want it meanwhile."""
    text = """\
    import threading, time
    from tensorflow.python.client import session as session_module
    create = session_module.tf_session.TF_NewSessionRef
    def create_slowly(*args):
        time.sleep(0.3)
        return create(*args)
    session_module.tf_session.TF_NewSessionRef = create_slowly
    results = [tf.constant(float(i)) * 2.0 for i in range(4)]
    with tf.Session() as session:
        start, values = threading.Barrier(4), {}
        def work(i):
            start.wait()
            values[i] = session.run(results[i])
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert values == {i: 2.0 * i for i in range(4)}, values
    """
    (placed,) = checked(tmp_path, text, V1)
    assert sorted(run.run.fetches for run in placed.placement.program.runs) == [
        ("mul:0",), ("mul_1:0",), ("mul_2:0",), ("mul_3:0",),
    ]  # fmt: skip


def test_control_flow_of_a_session_with_one_thread_stays_functional(tmp_path: Path) -> None:
    text = """\
    tf.enable_control_flow_v2()
    result = tf.while_loop(lambda x: x < 1000, lambda x: x + 1, [tf.constant(0)])
    for executor in ("SINGLE_THREADED_EXECUTOR", ""):
        config = tf.ConfigProto()
        config.experimental.executor_type = executor
        with tf.Session(config=config) as session:
            assert session.run(result) == 1000
    """
    functional, lowered = ({node.op for node in placed.placement.nodes} for placed in checked(tmp_path, text, V1))
    assert [{"StatelessWhile", "Merge"} & ops for ops in (functional, lowered)] == [{"StatelessWhile"}, {"Merge"}]


def test_calls_that_a_session_inlines(tmp_path: Path) -> None:
    text = """\
    from tensorflow.python.framework import function
    @function.Defun(tf.float32)
    def double(x):
        return x + x
    @function.Defun(tf.float32, func_name="four_times")
    def four_times(x):
        return double(double(x))
    result = four_times(tf.placeholder_with_default(tf.ones([2]), [2]))
    for inlining in (True, False):
        options = tf.OptimizerOptions(do_function_inlining=inlining)
        config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
        with tf.Session(config=config) as session:
            session.run(result)
    """
    inlined, not_inlined = checked(tmp_path, text, V1)
    assert "four_times" in {node.op for node in not_inlined.placement.nodes}
    assert [node.op for node in inlined.placement.nodes].count("AddV2") == 2


def test_a_result_has_as_many_rows_as_the_argument(tmp_path: Path) -> None:
    text = """\
    v = tf.Variable(tf.ones([4, 3]))
    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def f(x):
        repeated = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
        return x @ v, tf.reduce_sum(x, 1), tf.reshape(x, [tf.shape(x)[0], 2, 2]), tf.concat([x, x], 0), repeated
    for rows in (10, 7):
        shapes = [result.shape.as_list() for result in f(tf.ones([rows, 4]))]
        assert shapes == [[rows, 3], [rows], [rows, 2, 2], [2 * rows, 4], [rows, 4]], shapes
    """
    assert names(checked(tmp_path, text)) == ["f"]


def test_a_context_that_is_made_anew(tmp_path: Path) -> None:
    text = """\
    from tensorflow.python.eager import context
    for turn in range(2):
        @tf.function
        def f(x):
            with tf.device("/gpu:1"):
                return x + 1.0
        f(tf.ones([2]))
        assert len(tf.config.list_logical_devices("GPU")) == 2
        context._reset_context()
    """
    result = checked(tmp_path, text)
    assert names(result) == ["f", "f"]
    assert [len(placed.placement.nodes) for placed in result] == [5, 5]


def test_copies_are_compared_whatever_the_program_says_of_grappler(tmp_path: Path) -> None:
    text = """\
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False, "min_graph_nodes": -1})
    @tf.function
    def f(x):
        with tf.device("/gpu:0"):
            c = tf.constant([1.0, 2.0]) * tf.constant([3.0, 4.0])
        with tf.device("/gpu:1"):
            return x + c, tf.identity(tf.identity(x)) + 0.0
    f(tf.ones([2]))
    """
    (placed,) = checked(tmp_path, text)
    assert placed.copy_agreement is not None


def test_a_wrong_argument_is_rejected_and_no_refusal(tmp_path: Path) -> None:
    text = """\
    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def f(x):
        return tf.sin(x)
    traced = f.get_concrete_function()
    for argument in (tf.constant([1, 2]), tf.ones([2]), tf.ones([2], tf.float64), tf.constant([1, 2])):
        try:
            traced(argument)
        except tf.errors.InvalidArgumentError as error:
            assert argument.dtype != tf.float32 and "was expected to be a float tensor" in error.message
        else:
            assert argument.dtype == tf.float32
    """
    result = checked(tmp_path, text)
    assert {placed.agreement.refusals for placed in result if placed.agreement} == {("", "")}


def test_what_a_program_starts_has_the_user_s_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    text = """\
    import multiprocessing, os, subprocess, sys

    SEEN = "CUDA_VISIBLE_DEVICES", "ADDED", "TF_CPP_VMODULE", "TF_DUMP_GRAPH_PREFIX", "SIMPLACE_GPU_COUNT"
    WANTED = ("1", "here", None, None, None)
    TOLD = f"import os; print(tuple(map(os.environ.get, {SEEN})))"

    def tell(queue):
        queue.put(tuple(map(os.environ.get, SEEN)))

    if __name__ == "__main__":
        os.environ["ADDED"] = "here"
        assert subprocess.check_output([sys.executable, "-c", TOLD], text=True) == f"{WANTED}\\n"
        assert os.popen(f'{sys.executable} -c "{TOLD}"').read() == f"{WANTED}\\n"
        ended = os.system("test -z $TF_CPP_VMODULE && test $ADDED = here && exit 3")
        assert os.waitstatus_to_exitcode(ended) == 3
        assert os.spawnl(os.P_WAIT, "/bin/sh", "sh", "-c", "test -z $TF_CPP_VMODULE && exit 4") == 4
        assert subprocess.run(["env"], env={"ONLY": "this"}, stdout=subprocess.PIPE).stdout == b"ONLY=this\\n"
        processes = multiprocessing.get_context("spawn")
        queue = processes.Queue()
        process = processes.Process(target=tell, args=(queue,))
        process.start()
        assert queue.get(timeout=60) == WANTED
        process.join()
        tf.constant(1) + 1
    """
    checked(tmp_path, text)


def test_what_a_program_sees_of_its_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    text = """\
    import os, warnings
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["TF_CPP_MIN_LOG_LEVEL"]) == ("1", "2")
    assert "TF_CPP_VMODULE" not in os.environ
    (gpu,) = tf.config.list_physical_devices("GPU")  # the other one is hidden, as CUDA hides it
    assert len(tf.config.list_logical_devices("GPU")) == 1

    def old(): warnings.warn("old", DeprecationWarning, 2)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    assert [os.path.basename(each.filename) for each in caught] == ["model.py", "dense.py"]
    path = os.path.join(os.path.dirname(__file__), "saved.keras")
    model.save(path)  # Keras asks each layer for its parameters
    assert tf.keras.models.load_model(path).count_params() == 3

    @tf.function
    def f(x): return model(x)
    assert f(tf.ones([1, 2])).shape == (1, 1)
    try:
        f("text")
    except Exception as error:
        assert "in user code" in str(error) and os.path.join("simplace", "oracle") not in str(error)
    else:
        assert False

    @tf.function
    def leak(x):
        leaked.append(x + 1.0)
        return x
    leaked = []
    leak(tf.ones([2]))
    for use in (lambda x: x + 1.0, leak):
        try:
            use(leaked[0])
        except TypeError as error:
            assert "out of scope" in str(error)
        else:
            assert False
    """
    result = checked(tmp_path, text, machine=Machine(gpus=2, visible=(1,)))
    assert {node.device[-5:] for placed in result for node in placed.placement.nodes} == {"GPU:0"}


def test_a_program_that_replaces_its_streams(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = """\
    import os, sys, tempfile
    @tf.function
    def f(x):
        tf.print("native", output_stream=sys.stdout)
        tf.print("error")
        return x + x
    kept = tempfile.TemporaryFile()
    saved = os.dup(1), os.dup(2)
    os.dup2(kept.fileno(), 1)
    os.dup2(kept.fileno(), 2)
    doubled = f(tf.constant(2.0))
    print("python", doubled.numpy(), flush=True)
    os.dup2(saved[0], 1)
    os.dup2(saved[1], 2)
    kept.seek(0)
    assert kept.read() == b"native\\nerror\\npython 4.0\\n"
    f(tf.constant([1.0]))
    print("shown")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # quiet to its end
    print("hidden")
    """
    checked(tmp_path, text)
    shown = capfd.readouterr()
    assert shown.out.splitlines() == ["native", "shown"]
    assert [line for line in shown.err.splitlines() if "error" in line or "simplace: " in line] == ["error"]


def test_python_native_code_and_commands_print_in_their_order(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = """\
    import os, subprocess, sys
    @tf.function
    def f(x):
        tf.print("in", x, output_stream=sys.stdout)
        return x + 1.0
    for i in range(2):
        print("before", i)
        f(tf.constant(float(i)))
        tf.print("after", end=": ", output_stream=sys.stdout)
        print(i)
        os.system("echo by a shell")
        subprocess.run([sys.executable, "-c", "print('by a process')"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.print("of a session", output_stream=sys.stdout))
    tf.print("to the end", end="", output_stream=sys.stdout)
    """
    checked(tmp_path, text)
    rounds = [f"before {i}\nin {i}\nafter: {i}\nby a shell\nby a process\n" for i in range(2)]
    assert capfd.readouterr().out == "".join(rounds) + "of a session\nto the end"
