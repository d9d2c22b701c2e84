"""Programs run under TensorFlow on emulated machines, and what comes back of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.errors import ProgramError, TargetError
from simplace.machine.machine import GIB, Machine
from simplace.oracle.observe import observe_file, observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import LoggedNode, Observation, ObservedProgram

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"
GPU1 = "/job:localhost/replica:0/task:0/device:GPU:1"
UNKNOWN = (
    "unknown is a tf.function that was never called: call it in the program, as in unknown(a, b), "
    "or give it an input_signature."
)

Observe = Callable[..., Observation]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Observe a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run_text(text: str, machine: Machine, **options: object) -> Observation:
        Path("model.py").write_text(dedent(text))
        return observe_script("model.py", ("--steps", "3"), machine, Options(**options))  # type: ignore[arg-type]

    return run_text


def log_args(program: ObservedProgram) -> tuple[str, ...]:
    """Return the argument devices that TensorFlow logged, in the order of the function's inputs."""
    logged = {line.name: line.device for line in program.log if line.op == "_Arg"}
    assert program.program.function is not None
    return tuple(logged[arg.name] for arg in program.program.graph.library[program.program.function].inputs)


def test_functions_on_two_gpus(run: Observe) -> None:
    seen = run(
        """\
        import sys
        import tensorflow as tf
        assert sys.argv == ["model.py", "--steps", "3"] and __name__ == "__main__"
        v = tf.Variable(tf.random.normal([4, 4]))
        @tf.function
        def multiply(x, n):
            with tf.device("/GPU:1"):
                y = tf.matmul(x, x)
            return y + v, n + 1
        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def never(x):
            return x * 2.0
        @tf.function
        def unknown(a, b):
            return a
        @tf.function(jit_compile=True)
        def compiled(x):
            return x * 2.0
        x = tf.random.normal([4, 4])
        y, n = multiply(x, tf.constant(3))
        assert y.device.endswith("GPU:0") and y.shape == (4, 4)
        with tf.device("GPU:1"):
            z = tf.ones([4, 4])
            assert z.device.endswith("GPU:1") and tf.identity(x).device.endswith("GPU:1")
            multiply(z, tf.constant(3))
        v.assign_add(x)
        assert float(tf.reduce_sum(v)) != 0.0
        compiled(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = multiply(x, tf.constant(3))[0]
        tape.gradient(loss, x)
        for step in range(1000):
            multiply(x, tf.constant(step))
        """,
        Machine(gpus=2),
    )
    programs = {(each.program.name, each.program.scope): each for each in seen.programs}
    assert list(programs) == [
        ("multiply", ""),
        ("multiply", GPU1),
        ("compiled", ""),
        ("multiply (forward)", ""),
        ("multiply (backward)", ""),
        ("never", ""),
    ]
    assert [each.program.arg_devices for each in seen.programs[:2]] == [(GPU0, CPU, GPU0), (GPU1, CPU, GPU0)]
    placed = [each for each in seen.programs if each.program.kind == "function"]
    assert all(each.program.arg_devices == log_args(each) for each in placed)
    first = seen.programs[0]
    assert LoggedNode("MatMul", "MatMul", GPU1) in first.log
    notes = first.program.notes[first.program.function or ""]
    assert (notes["MatMul"].at, notes["MatMul"].device_at, notes["MatMul"].shapes) == (
        "model.py:8",
        "model.py:7",
        ((4, 4),),
    )
    assert notes["x"].shapes == ((4, 4),)
    assert [device.name for device in seen.devices] == [CPU, GPU0, GPU1]
    assert seen.devices[1].description == "emulated, 16 GiB"
    assert seen.failure is None
    assert seen.remarks == (
        "never was never called by the program: it was called once with zeros for its input_signature.",
        UNKNOWN,
        "multiply was computed 11 times; 991 later calls returned the latest values (--calls all computes every one).",
    )


def test_resource_is_where_its_handle_says(run: Observe) -> None:
    """A call returns handles with the call's device, wherever what they stand for is."""
    seen = run(
        """\
        import tensorflow as tf
        @tf.function
        def make():
            return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="table")
        @tf.function
        def look_up(table):
            return tf.raw_ops.LookupTableSizeV2(table_handle=table)
        with tf.device("/GPU:1"):
            table = make()
            assert table.device.endswith("GPU:1")
            look_up(table)
        """,
        Machine(gpus=2),
    )
    program = seen.programs[-1]
    assert program.program.function is not None
    assert program.program.arg_devices == (CPU,)
    assert log_args(program) == (CPU,)


def test_uncalled_functions(run: Observe) -> None:
    seen = run(
        """\
        import tensorflow as tf
        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def never(x):
            return x * 2.0
        @tf.function
        def unknown(a, b):
            return a
        tf.ones([2])
        """,
        Machine(gpus=0, cpus=2),
    )
    assert [each.program.name for each in seen.programs] == ["never"]
    assert [device.type for device in seen.devices] == ["CPU", "CPU"]
    assert seen.eager_ops > 0
    assert seen.remarks == (
        "never was never called by the program: it was called once with zeros for its input_signature.",
        UNKNOWN,
    )


def test_refusal_that_is_caught_and_one_that_is_not(run: Observe) -> None:
    seen = run(
        """\
        import tensorflow as tf
        tf.config.set_soft_device_placement(False)
        @tf.function
        def f(x):
            with tf.device("/GPU:2"):
                return x + 1.0
        try:
            f(tf.ones([2]))
        except tf.errors.InvalidArgumentError:
            f(tf.ones([3]))
        """,
        Machine(gpus=1),
    )
    assert [(each.program.soft_placement, each.log) for each in seen.programs] == [(False, ())] * 2
    assert {each.refused.code for each in seen.programs if each.refused} == {"INVALID_ARGUMENT"}
    assert seen.remarks == ("The program ended at the refusal, since it does not handle it.",)
    assert seen.failure is None


def test_sessions(run: Observe) -> None:
    seen = run(
        """\
        import tensorflow.compat.v1 as tf
        tf.disable_eager_execution()
        turn = iter(range(100))
        def round_robin(op):
            return "/cpu:0" if "Var" in op.type else f"/gpu:{next(turn) % 2}"
        with tf.device(round_robin):
            v = tf.get_variable("v", [2, 2], initializer=tf.ones_initializer())
            x = tf.placeholder(tf.float32, [None, 2], name="x")
            y = tf.matmul(x, v)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(y, {x: [[1.0, 2.0]]}).shape == (1, 2)
            session.run(y * 2.0, {x: [[1.0, 2.0]]})
        with tf.Session() as session:
            with tf.device("/gpu:0"):
                whole = tf.Variable(3, use_resource=False, name="whole")
            try:
                session.run(whole.initializer)
            except tf.errors.InvalidArgumentError:
                pass
        """,
        Machine(gpus=2),
    )
    assert [(each.program.name, each.program.kind, each.program.soft_placement) for each in seen.programs] == [
        ("Session.run", "session", True),
        ("Session.run (2)", "session", True),
        ("Session.run (3)", "session", False),
    ]
    first, second, third = seen.programs
    assert first.program.kept_devices == {}
    assert second.program.kept_devices["v"] == CPU
    assert len(second.program.graph.nodes) > len(first.program.graph.nodes)
    assert second.program.notes[""]["MatMul"].at == "model.py:9"
    assert third.refused is not None
    assert third.refused.message.startswith("Cannot assign a device for operation whole: Could not satisfy explicit")
    assert seen.failure is None


def test_keras_fit_on_two_gpus(run: Observe) -> None:
    seen = run(
        """\
        import numpy as np
        import tensorflow as tf
        with tf.distribute.MirroredStrategy().scope():
            model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse", jit_compile=False)
        x, y = np.zeros((400, 8), "float32"), np.zeros((400, 1), "float32")
        model.fit(x, y, batch_size=8, epochs=3, verbose=0)
        model.evaluate(x, y, batch_size=8, verbose=0)
        """,
        Machine(gpus=2),
    )
    names = [each.program.name for each in seen.programs]
    assert names.count("multi_step_on_iterator") == 2  # fit, evaluate
    placed = [each for each in seen.programs if each.program.kind == "function"]
    assert all(each.program.arg_devices == log_args(each) for each in placed)
    train = seen.programs[names.index("multi_step_on_iterator")]
    assert {line.device for line in train.log if line.op == "MatMul"} == {GPU0, GPU1}
    assert (
        "The input of fit, train step was ended early at model.py:7: it was called 10 times "
        "(--calls all reads it to its end)."
    ) in seen.remarks
    assert seen.failure is None


def test_split_gpu_and_exception(run: Observe) -> None:
    seen = run(
        """\
        import tensorflow as tf
        tf.debugging.set_log_device_placement(False)
        assert len(tf.config.list_physical_devices("GPU")) == 2
        assert len(tf.config.list_logical_devices("GPU")) == 3
        @tf.function
        def f(x):
            return x + 1.0
        f(tf.ones([2]))
        def deep():
            raise ValueError("boom")
        deep()
        """,
        Machine(gpus=2, virtual_gpus=((GIB, 2 * GIB),)),
    )
    assert [device.description for device in seen.devices] == [
        "",
        "emulated, 1 GiB",
        "emulated, 2 GiB",
        "emulated, 16 GiB",
    ]
    assert [each.program.name for each in seen.programs] == ["f"]
    assert seen.failure is not None
    assert seen.failure.how == "raised"
    lines = seen.failure.text.splitlines()
    assert lines[0] == "Traceback (most recent call last, the program's own lines):"
    assert lines[1] == '  File "model.py", line 11, in <module>'
    assert lines[-1] == "ValueError: boom"


def within_some_limit(run: Observe, script: str, is_enough: Callable[[Observation], bool]) -> tuple[float, Observation]:
    """Run a program that hangs with longer and longer time limits: on a busy machine it may take long to get there."""
    for limit in (3.0, 30.0):
        with suppress(ProgramError):  # TensorFlow was not even imported
            seen = run(script, Machine(gpus=1), timeout=limit)
            if is_enough(seen):
                return limit, seen
    return 600.0, run(script, Machine(gpus=1), timeout=600.0)


def test_hang_keeps_what_was_seen(run: Observe) -> None:
    script = """\
        import time
        import tensorflow as tf
        @tf.function
        def f(x):
            return x + 1.0
        f(tf.ones([2]))
        time.sleep(1000)
        """
    limit, seen = within_some_limit(run, script, lambda seen: bool(seen.programs))
    assert [each.program.name for each in seen.programs] == ["f"]
    assert [device.name for device in seen.devices] == [CPU, GPU0]
    assert seen.failure is not None
    assert (seen.failure.how, seen.failure.text) == (
        "timed out",
        f"the program ran longer than {limit:g} s and was ended",
    )


def test_thread_that_outlives_the_program(run: Observe) -> None:
    script = """\
        import threading, time
        threading.Thread(target=time.sleep, args=(1000,)).start()
        """
    _, seen = within_some_limit(run, script, lambda seen: True)
    assert seen.failure is not None
    assert seen.failure.how == "timed out"


def test_exception_in_a_thread(run: Observe) -> None:
    seen = run(
        """\
        import threading
        def work():
            raise ValueError("boom")
        threading.Thread(target=work).start()
        """,
        Machine(),
    )
    assert seen.failure is None  # as for Python, which goes on and exits with 0
    (told,) = seen.remarks
    assert told.endswith(" ended with ValueError: boom at model.py:3.")


def test_graph_file(tmp_path: Path) -> None:
    text = 'node { name: "a" op: "Placeholder" device: "/GPU:0" attr { key: "dtype" value { type: DT_FLOAT } } }'
    (tmp_path / "graph.pbtxt").write_text(text)
    seen = observe_file(tmp_path / "graph.pbtxt", Machine(gpus=1), Options(soft_placement=True))
    (only,) = seen.programs
    assert (only.program.name, only.program.kind, only.program.soft_placement) == ("graph.pbtxt", "graph", True)
    assert only.log == (LoggedNode("a", "Placeholder", GPU0),)


def test_missing_script_is_refused() -> None:
    with pytest.raises(TargetError, match=r"nowhere\.py: no such file"):
        observe_script("nowhere.py")
