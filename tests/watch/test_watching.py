"""What `simplace.watch` sees of a real process on logical CPUs, and that the program runs as if nobody watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from simplace.api import Settings, place
from simplace.machine.machine import Machine
from tests.warm_processes import RUN_SCRIPT, WarmProcesses

pytestmark = pytest.mark.tf
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "tests/watch/watched_program.py"


Run = Callable[..., tuple[str, list[str]]]


@pytest.fixture(scope="module")
def run_script(warm: WarmProcesses) -> Run:
    """Return `run(*words)`: what a Python program prints, and simplace's lines among those on standard error."""

    def run(*words: str, folder: Path = ROOT) -> tuple[str, list[str]]:
        ran = warm.run_tensorflow(RUN_SCRIPT, *words, folder=folder, COLUMNS="120", TF_CPP_MIN_LOG_LEVEL="3")
        assert ran.returncode == 0, ran.stderr
        return ran.stdout, [line for line in ran.stderr.splitlines() if line.startswith("simplace")]

    return run


@pytest.fixture(scope="module")
def found(made_once: Callable[[str, Callable[[], str]], str]) -> dict[str, Any]:
    """Return what the program found out when it watched itself, before and after it imported TensorFlow."""

    def run_program() -> str:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    facts: dict[str, Any] = json.loads(made_once("watched.json", run_program))
    assert "unexpected" not in facts
    return facts


def test_a_block_is_told_in_one_line(found):
    assert found["graph"]["told"] == (
        f"simplace: 5 ops on CPU:1, 3 on CPU:0: StringJoin ({PROGRAM}:31), MatMul ({PROGRAM}:24), Fill ({PROGRAM}:33); "
        f"2 on CPU:2: Relu ({PROGRAM}:29), AddV2 ({PROGRAM}:29); 4 copies a step, 256 B\n"
    )


def test_the_result_agrees_and_explains_with_the_lines_of_the_program(found):
    graph = found["graph"]
    assert graph["agrees"]
    assert graph["summary"].endswith(
        "agrees with TensorFlow 2.21.0: 24/24 nodes, 5/5 eager ops".replace("2.21.0", _version())
    )
    assert graph["relu"].splitlines()[:2] == [
        f"Relu (Relu) runs on CPU:2 at {PROGRAM}:29.",
        f"  1. The device /device:CPU:2 was requested by the line {PROGRAM}:28.",
    ]
    assert graph["devices"] == ["0", "1", "2"]


def test_the_program_configures_tensorflow_inside_of_the_block(found):
    assert found["graph"]["functions"] == [3, True]
    assert found["graph"]["weight"] == 11.0


def test_a_function_that_ran_before_is_asked_by_a_copy_that_never_runs(found):
    before = found["called before"]
    assert (before["runs"], before["runs after the result"]) == (4, 4)
    assert not [name for key in ("functions added", "functions added for the result") for name in before[key]
                if "simplace" in name]  # fmt: skip
    assert (before["agrees"], before["agreement"]) == (True, "9/9 nodes")
    assert before["line"] == f"simplace: 1 op on CPU:0, 1 on CPU:2: Mul ({PROGRAM}:79); 3 copies a step, 192 B"


@pytest.mark.parametrize("case", ["refused", "eager refused", "failed"])
def test_exceptions_are_those_of_a_program_that_nobody_watches(found, case):
    assert found[case]["watched"] is not None
    assert found[case]["watched"] == found[case]["plain"]


def test_a_refusal_is_predicted(found):
    assert (found["refused"]["agrees"], found["refused"]["code"]) == (True, "INVALID_ARGUMENT")
    assert found["refused"]["own line"]


def test_what_fails_as_it_runs_was_placed(found):
    assert found["failed"]["agrees"]


def test_functions_that_xla_compiles_are_counted_by_their_ops(found):
    assert found["xla"] == {"agrees": True, "line": "simplace: 7 ops on CPU:0; no copies", "ops": [5, 10]}


def test_other_devices_of_arguments_are_another_placement_once(found):
    assert found["argument devices"] == [["CPU:0", "5/5 nodes"], ["CPU:1", "5/5 nodes"]]


def test_nested_blocks_and_threads_see_what_runs_in_them(found):
    assert found["nested"] == {
        "outer": ["double", "triple", "triple"],
        "inner": ["double", "triple"],
        "agrees": [True, True],
        "entry points": True,
    }


def test_graphs_that_the_program_records_stay_its_own(found):
    assert found["recorded by the program"] == {
        "line": "simplace: nothing is known of what ran. Functions that ran while the program had TensorFlow record "
        "graphs for itself (tf.summary) are not counted",
        "graphs": 1,
        "agrees later": True,
    }


def test_many_eager_ops_are_looked_at_in_samples(found):
    many = found["many eager ops"]
    assert [op for op, _ in many["ops"]] == ["Relu", "Sin"]
    assert [abs(times - real) < 50 for (_, times), real in zip(many["ops"], (2000, 200), strict=True)] == [True, True]
    assert many["line"] == (
        "simplace: 2 ops on CPU:0; no function was called. Eager ops were sampled: "
        "how often each ran is an estimate, and rare ones may be missing"
    )
    assert many["agrees"]


def test_after_a_while_most_eager_ops_do_not_pass_simplace_and_are_counted_by_tensorflow(found):
    very_many = found["very many eager ops"]
    ((op, times),) = very_many["ops"]
    assert (op, very_many["agrees"], very_many["without simplace"] > 10_000) == ("Relu", True, True)
    assert abs(times - 30_000) < 1_000


def test_runs_of_sessions_are_counted_and_compared(found):
    session = found["session"]
    assert session["line"] == (
        f"simplace: 2 ops on CPU:2, 1 on CPU:1: MatMul ({PROGRAM}:254); 3 copies a step, ≥ 20 B. "
        "Runs of sessions with options of their own (1) are not counted"
    )
    assert (session["values"], session["error"]) == ([31.0, 31.0, 31.0, "caught", True, 0], "None")
    assert session["agrees"]
    assert session["summary"].endswith(f"agrees with TensorFlow {_version()}: 5/5 nodes")
    assert session["product"] == [
        f"MatMul (MatMul) runs on CPU:1 at {PROGRAM}:254.",
        f"  1. The device /device:CPU:1 was requested by the line {PROGRAM}:253.",
    ]


def test_an_error_of_simplace_is_told_and_reaches_nothing(found):
    own = found["own error"]
    assert (own["result"], own["error"], own["later"]) == ([2.0, 4.0, 6.0], "None", True)
    assert own["line"] == own["said"]
    assert own["line"].startswith("simplace: watching failed, which the program did not notice: ZeroDivisionError: ")


def test_what_is_asked_for_too_early_or_of_nothing(found):
    assert found["too early"] == "nothing was watched yet: ask for the result after the block in which TensorFlow runs"
    assert found["idle"] == "simplace: TensorFlow ran no op while it was watched"
    assert found["idle result"] == "TensorFlow ran no op while it was watched"


KERAS = """\
    import sys
    import simplace
    import numpy as np
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    tf.keras.utils.set_random_seed(1)
    IS_WATCHED = sys.argv[1] == "watched"
    x, y = np.random.rand(64, 8).astype("float32"), np.random.rand(64, 1).astype("float32")

    def make():
        layers = [tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)]
        return tf.keras.Sequential([tf.keras.Input((8,)), *layers])

    def callbacks():
        watches.append(simplace.watch())
        return watches[-1:] if IS_WATCHED else []

    class Stops(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError("the user's own")

    watches = []
    model = make()
    model.compile("adam", "mse", metrics=["mae"])
    print(model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_data=(x, y), callbacks=callbacks()).history)
    print(model.evaluate(x, y, verbose=0, callbacks=callbacks()))
    print(model.predict(x, verbose=0, callbacks=callbacks())[0])
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        mirrored = make()
        mirrored.compile("sgd", "mse")
    print(mirrored.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=callbacks()).history)
    try:
        model.fit(x, y, verbose=0, callbacks=[*callbacks(), Stops()])
    except RuntimeError as error:
        print(error)
    watches[-1].stop()
    print(model.predict(x, verbose=0, callbacks=watches[-1:] if IS_WATCHED else [])[1])
    if IS_WATCHED:
        print("RESULTS")
        for each in watches:
            print(each.result.agrees, sorted({placed.name for placed in each.result}))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, run_script, made_once) -> dict[str, tuple[str, list[str]]]:
    def train() -> str:
        folder = tmp_path_factory.mktemp("keras")
        (folder / "train.py").write_text(dedent(KERAS))
        return json.dumps({how: run_script("train.py", how, folder=folder) for how in ("watched", "plain")})

    return json.loads(made_once("trained.json", train))


def test_keras_prints_the_same_digits_under_a_callback(trained):
    assert trained["watched"][0].partition("RESULTS\n")[0] == trained["plain"][0]


def test_a_callback_tells_each_run_of_keras(trained):
    results = trained["watched"][0].partition("RESULTS\n")[2].splitlines()
    steps = "multi_step_on_iterator"
    assert [line.partition(" ")[0] for line in results] == ["True"] * 5
    assert steps in results[0]
    assert steps in results[3]
    told = trained["watched"][1]
    assert len(told) == 6
    assert [line.endswith("; no copies") for line in told] == [True, True, True, False, True, True]
    assert " on CPU:1: " in told[3]


BEFORE = """\
import sys
sys.path.insert(0, sys.argv[1])
import simplace
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""


@pytest.fixture
def run_text(tmp_path: Path, run_script: Run) -> Run:
    """Return `run(text)`: what a program on two logical CPUs prints, and simplace's lines; its text is indented."""

    def run(text: str) -> tuple[str, list[str]]:
        script = tmp_path / "program.py"
        script.write_text(BEFORE + dedent(text))
        return run_script(str(script), str(ROOT))

    return run


def test_functions_without_anything_to_run_and_custom_devices_are_watched(run_text):
    printed, told = run_text("""\
        from tensorflow.experimental import dtensor

        @tf.function
        def nothing(x):
            print("traced")

        with simplace.watch() as watched:
            nothing(1)
            kept = []
            tf.function(lambda x: kept.append(x))(tf.constant(1.0))
            try:
                tf.function(lambda x: x + kept[0])(tf.constant(1.0))
            except TypeError as error:
                print(type(error).__name__)
            mesh = dtensor.create_mesh([("x", 2)], devices=["CPU:0", "CPU:1"])
            ones = dtensor.call_with_layout(tf.ones, dtensor.Layout(["x"], mesh), [4])
            print(tf.reduce_sum(ones + 1.0).numpy())
        print(str(watched.result).splitlines()[-1])
        """)
    assert printed.splitlines() == ["traced", "TypeError", "8.0", f"agrees with TensorFlow {_version()}: 1/1 nodes"]
    unseen = "What ran on a custom device, such as DTensor's, is not counted"
    assert told == [f"simplace: nothing is known of what ran. {unseen}"]


def test_loops_with_branches_and_arguments_that_are_gone_are_watched(run_text):
    printed, told = run_text("""\

        @tf.function
        def iterate(x, steps):
            for _ in tf.range(steps):
                with tf.device("CPU:1"):
                    x = tf.matmul(x, x)
                if tf.reduce_max(x) > 1e3:
                    x = x / tf.norm(x)
                else:
                    x = x + 1.0
            return x

        @tf.function
        def count(items):
            return tf.raw_ops.TensorListLength(input_handle=items)

        def make_list():
            return tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=tf.float32)

        with simplace.watch(quiet=True) as watched:
            print(iterate(tf.eye(4), tf.constant(3)).shape)
            with tf.device("CPU:1"):
                print(int(count(make_list())))
        placed = watched.result.program("count")
        print(*(node.device[-5:] for node in placed.placement.nodes if node.op == "_Arg"))
        print(str(watched.result).splitlines()[-1])
        """)
    assert printed.splitlines() == [
        "(4, 4)",
        "0",
        "CPU:1",
        f"agrees with TensorFlow {_version()}: 123/123 nodes, 3/3 eager ops",
    ]
    assert told == []


def test_functions_of_deleted_variables_and_defuns_are_watched(run_text):
    printed, told = run_text("""\
        from tensorflow.python.framework import function

        @function.Defun(tf.float32)
        def twice(x):
            return x * 2.0

        def make_step():
            weight = tf.Variable(3.0)
            step = tf.function(lambda x: twice(x) * weight)
            print(float(step(tf.constant(2.0))))

        with simplace.watch() as watched:
            make_step()
        print(str(watched.result).splitlines()[-1])
        """)
    assert printed.splitlines() == ["12.0", f"agrees with TensorFlow {_version()}: 13/13 nodes, 2/2 eager ops"]
    assert told == ["simplace: 4 ops on CPU:0; no copies"]


def test_simplace_show_of_a_program_that_watches_itself(tmp_path, capfd, forked):
    script = tmp_path / "program.py"
    script.write_text(
        dedent("""\
        import simplace
        import tensorflow as tf
        @tf.function
        def step(x):
            return x * 2.0
        with simplace.watch() as watched:
            print("it prints", float(step(tf.constant(2.0))))
        try:
            watched.result
        except simplace.errors.SimplaceError as error:
            print(error)
        """)
    )
    assert place(str(script), Settings(Machine(gpus=1))).agrees
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "it prints 4.0",
        "simplace.watch does nothing under `simplace show`, whose own result has it all",
    ]
    assert "simplace:" not in err


def test_simplace_show_of_a_program_that_does_not_handle_what_simplace_answers_it(tmp_path, capfd, forked):
    script = tmp_path / "program.py"
    script.write_text(
        dedent("""\
        import simplace
        import tensorflow as tf
        with simplace.watch() as watched:
            tf.add(1.0, 2.0)
        print(watched.result)
        """)
    )
    failure = place(str(script), Settings(Machine(gpus=1))).failure
    assert failure.status == 1
    assert str(failure) == (
        f"{script}: the program stopped with simplace.errors.ProgramError: simplace.watch does nothing under "
        f"`simplace show`, whose own result has it all at {script}:5"
    )
    assert failure.details.splitlines()[1:3] == [f'  File "{script}", line 5, in <module>', "    print(watched.result)"]


def _version() -> str:
    from simplace.kernels.installed import installed_version

    return str(installed_version())
