"""Programs that name a cluster: every task is there, with the devices that the user gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.machine.machine import TWO_TASKS, Machine, Task, make_cluster
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import Observation

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

Observe = Callable[..., Observation]
TWO_WORKERS = (Task("worker", 0, gpus=1), Task("worker", 1, gpus=2))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Observe a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run_text(text: str, machine: Machine, **options: object) -> Observation:
        Path("model.py").write_text("import tensorflow as tf\nv1 = tf.compat.v1\n" + dedent(text))
        return observe_script("model.py", (), machine, Options(**options))  # type: ignore[arg-type]

    return run_text


def placed(program: object) -> dict[str, str]:
    return {line.name: line.device.replace("/replica:0", "").replace("/device:", "/") for line in program.log}  # type: ignore[attr-defined]


SESSION = """
    cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]})
    server = tf.distribute.Server(cluster, job_name="worker", task_index=1)
    with tf.Graph().as_default():
        with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:1")):
            v = v1.get_variable("v", [2], initializer=v1.zeros_initializer())
            y = tf.sin(v, name="y")
            more = v1.assign_add(v, [0.0, 1.0])
        z = tf.strings.as_string(y, name="z")
        with v1.Session(server.target) as session:
            session.run(v1.global_variables_initializer())
            assert session.run(more)[1] + session.run(more)[1] == 3.0
            assert session.run(z).tolist() == [b"0.000000", b"0.909297"]
"""


def test_a_session_places_on_all_tasks_of_its_cluster(run: Observe) -> None:
    seen = run(SESSION, make_cluster((Task("ps", 0), *TWO_WORKERS)))
    (program,) = seen.programs
    devices = placed(program)
    assert (devices["v"], devices["y"], devices["z"]) == (
        "/job:ps/task:0/CPU:0", "/job:worker/task:1/GPU:0", "/job:worker/task:1/CPU:0",
    )  # fmt: skip
    assert [device.name[5:] for device in program.devices if device.type == "GPU"] == [
        "worker/replica:0/task:1/device:GPU:0", "worker/replica:0/task:1/device:GPU:1",
        "worker/replica:0/task:0/device:GPU:0",
    ]  # fmt: skip
    assert seen.failure is None


def test_a_session_keeps_its_state_as_its_graph_grows(run: Observe) -> None:
    seen = run(
        """
        server = tf.distribute.Server.create_local_server()
        with tf.Graph().as_default(), v1.Session(server.target) as session:
            element = v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
            nothing = tf.no_op()
            assert session.run([element, nothing])[0] == 0
            with tf.control_dependencies([nothing]):
                doubled = tf.cast(element, tf.float32) * 2.0
            assert session.run(doubled) == 2.0
        """,
        Machine(gpus=1),
    )
    assert seen.failure is None


def test_a_called_function_is_computed_by_a_copy_that_is_not_taken_for_its_placement(run: Observe) -> None:
    seen = run(
        """
        v1.enable_control_flow_v2()
        without = v1.ConfigProto()
        without.graph_options.rewrite_options.disable_meta_optimizer = True  # which would inline the function
        with tf.Graph().as_default(), v1.Session(config=without) as session:
            v = v1.get_variable("v", [1], use_resource=True, initializer=v1.ones_initializer())
            y = tf.function(lambda x: x * 3.0)(v)
            gradient = v1.gradients(y, v)
            session.run(v1.global_variables_initializer())
            assert session.run([y, gradient]) == [[3.0], [[3.0]]]
        """,
        TWO_TASKS,
        partitions=True,
    )
    assert seen.failure is None
    functions = [graph.function for graph in seen.logged.graphs if graph.function]
    assert len(functions) == 2
    assert [name for name in functions if not name.startswith("simplace_cpu_")] == []


def test_without_tasks_each_one_has_the_machine(run: Observe) -> None:
    seen = run(SESSION, Machine(gpus=1))
    assert len(seen.programs[0].devices) == 6
    assert seen.remarks[0] == (
        "The rest of the program's cluster is emulated: /job:ps/task:0 with cpu:1,gpu:1; /job:worker/task:0 with "
        "cpu:1,gpu:1. Tasks that differ are given like --devices ps=cpu:1+2xworker=cpu:1,gpu:2."
    )


def test_a_task_that_is_not_described_ends_the_program_with_one_line(run: Observe) -> None:
    seen = run(SESSION, make_cluster(TWO_WORKERS))
    assert seen.failure is not None
    assert seen.failure.text == (
        "the program's cluster has the task /job:ps/task:0, which --devices does not describe; it describes "
        "/job:worker/task:0, /job:worker/task:1"
    )


def test_a_session_of_an_unknown_master_asks_for_its_cluster(run: Observe) -> None:
    program = 'with tf.Graph().as_default(), v1.Session("grpc://10.0.0.1:2222") as session:\n    session.run([])\n'
    seen = run(program, Machine(gpus=0))
    assert seen.failure is not None
    assert seen.failure.text.startswith("the session's target grpc://10.0.0.1:2222 is not a task of a cluster")


def test_a_parameter_server_does_not_wait_for_ever(run: Observe) -> None:
    seen = run(
        """
        cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1"]})
        tf.distribute.Server(cluster, job_name="ps", task_index=0).join()
        """,
        Machine(gpus=0),
    )
    assert seen.failure is None
    assert seen.remarks == (
        "The program waits for others as /job:ps/task:0, so it was ended there: run it as the task that builds the "
        "graph.",
    )


def test_a_function_is_placed_by_the_task_it_is_called_on(run: Observe) -> None:
    seen = run(
        """
        @tf.function
        def f(x, n):
            return tf.sin(x), n + 1

        f(tf.ones([2]), 1)
        with tf.device("/job:worker/task:1/GPU:1"):
            f(tf.ones([2]), tf.constant(1))
        """,
        make_cluster(TWO_WORKERS, connected=True),
    )
    here, there = (placed(program) for program in seen.programs)
    assert (here["Sin"], there["Sin"]) == ("/job:worker/task:0/GPU:0", "/job:worker/task:1/GPU:1")
    assert seen.programs[1].program.arg_devices == tuple(
        f"/job:worker/replica:0/task:1/device:{device}" for device in ("GPU:1", "CPU:0")
    )


def test_a_call_on_another_task_changes_its_variables_and_iterators_once(run: Observe) -> None:
    seen = run(
        """
        with tf.device("/job:worker/task:1/CPU:0"):
            count, weight = tf.Variable(0, dtype=tf.int64), tf.Variable(1.0)
            elements = iter(tf.data.Dataset.range(10))

        @tf.function
        def step():
            count.assign_add(1)
            element = next(elements)
            product = tf.abs(tf.cast(element, tf.float32)) * weight
            weight.assign_add(1.0)
            return element, product

        for i in range(3):
            with tf.device("/job:worker/task:1/GPU:1"):
                element, product = step()
            found = int(element), float(product), int(count), float(weight)
            assert found == (i, i * (i + 1.0), i + 1, i + 2.0), found
        """,
        make_cluster(TWO_WORKERS, connected=True),
    )
    assert seen.failure is None
    (step,) = (program for program in seen.programs if program.program.name == "step")
    assert placed(step)["Abs"] == "/job:worker/task:1/GPU:1"


def test_the_environment_tells_the_program_of_its_cluster(run: Observe) -> None:
    seen = run(
        """
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        assert (resolver.task_type, resolver.task_id) == ("chief", 0)
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = tf.Variable(1.0)

        @tf.function
        def f():
            return v * 2.0

        for _ in range(50):
            coordinator.schedule(f)
        coordinator.join()
        """,
        make_cluster((Task("ps", 0), Task("worker", 0), Task("chief", 0))),
        calls=3,
    )
    (program,) = seen.programs
    assert placed(program)["ReadVariableOp"] == "/job:ps/task:0/CPU:0"
    assert placed(program)["mul"] == "/job:worker/task:0/CPU:0"
    assert seen.failure is None
    assert [each for each in seen.remarks if each.startswith("f was computed 3 times")]


WORKERS = """
    import json, os
    workers = [f"host{i}:1" for i in range(%d)]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}})
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function
    def step():
        return strategy.reduce("sum", strategy.run(lambda: tf.ones([2])), axis=None)

    step()
"""


def test_the_only_worker_of_a_cluster_needs_no_other(run: Observe) -> None:
    seen = run(WORKERS % 1, Machine(gpus=2))
    assert seen.failure is None
    assert {device for device in placed(seen.programs[0]).values() if "GPU" in device} == {
        "/job:worker/task:0/GPU:0", "/job:worker/task:0/GPU:1",
    }  # fmt: skip


def test_a_worker_that_would_wait_for_others_is_told_so(run: Observe) -> None:
    seen = run(WORKERS % 3, Machine(gpus=1))
    assert seen.failure is not None
    assert seen.failure.text.startswith("/job:worker/task:0 waits for 2 more of its cluster, each of which")
