"""Simulated steps against real ones on this computer's CPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import simplace
from simplace import api
from simplace.analysis.schedule import schedule_placement
from simplace.costs.calibration import NEW_ON_TWO, PAIR
from simplace.costs.cost_model import Overheads
from simplace.costs.cpu_sheet import list_core_peaks
from simplace.costs.recorded_costs import cost_file
from simplace.devices.device_set import local_devices
from simplace.errors import ProgramError, SimplaceError, TargetError
from simplace.executor.session_run import ObservedOrder, with_observed_order
from simplace.executor.step_options import StepOptions
from simplace.graph import graph_def
from simplace.kernels.registry import KernelTable
from simplace.measure import measurement
from simplace.measure.measurement import Measured, MeasureOptions
from simplace.measure.observed_order import list_traced_nodes, simulate_measured_step
from simplace.measure.step_comparison import check_schedule, fixed_times, graph_that_ran, observe_step
from simplace.oracle import launch
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Program
from tests.oracle import graphs
from tests.warm_processes import WarmProcesses

GRAPHS = {"layers": graphs.layers(size=64), "chain": graphs.chain_beside_others(size=64)}
MODELS = Path(__file__).parents[2] / "benchmarks" / "accuracy_models.py"
FIVE = ("even", "uneven", "chain", "cnn", "lstm")
SMALL = ["96"]  # the size of their matrices: large enough for TensorFlow to call a product expensive
PATIENT = 900  # seconds
ANSWERS = "import os, sys; from simplace.measure.child.process import main; main(sys.argv[1], str(os.getppid()))"
SCRIPT = """
import tensorflow as tf

weights = tf.Variable(tf.ones([4, 4]))

@tf.function
def step(iterator, scale):
    images, _ = next(iterator)
    return tf.matmul(images, weights) * scale

@tf.function
def other(text):
    return tf.strings.length(text)

data = tf.data.Dataset.from_tensors((tf.ones([2, 4]), tf.zeros([2], tf.int32))).repeat()
iterator = iter(data)
for _ in range(3):
    step(iterator, 2.0)
other("five")
"""
FIT = """
import keras
import numpy as np

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.ones((32, 8)), np.ones((32, 1)), verbose=0)
"""


@pytest.fixture
def forked(warm: WarmProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in forks of a process that has imported TensorFlow as `simplace.measure.child.process` does."""
    imported_under = {"CUDA_VISIBLE_DEVICES": "", "TF_OVERRIDE_GLOBAL_THREADPOOL": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}

    def run_group(command: list[str], environment: dict[str, str], timeout: float) -> Any:
        """Do what the command does, whose last two words are the request and the process that waits."""
        *_, request, parent = command
        assert (int(parent), json.loads(Path(request).read_text())["onednn"]) == (os.getpid(), False)
        lasting = {"TF_CPP_MIN_LOG_LEVEL": "2", **environment, **imported_under}
        test = {name: lasting.pop(name) for name in ("PYTEST_CURRENT_TEST",) if name in lasting}
        modules, code = ["simplace.measure.child.answer"], ANSWERS
        done = warm.run(modules, code, [request], environment=lasting, own=test, timeout=timeout)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    monkeypatch.setattr(launch, "run_group", run_group)


def measure(target: str | Path, settings: Sequence[tuple[int, int]] = ((1, 1),), **chosen: Any) -> Measured:
    return measurement.measure_target(target, MeasureOptions(settings, timeout=PATIENT, **chosen), measurement.Measured)


def placed(file: Path) -> Placement:
    program = Program(file.stem, "graph", graph_def.read_graph_file(file), soft_placement=False)
    return place_program(program, local_devices([("CPU", 1)]), KernelTable.shipped())


def written(folder: Path, text: str) -> Path:
    file = folder / "graph.pbtxt"
    file.write_text(text)
    return file


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", GRAPHS)
def test_one_thread_runs_in_the_simulated_order(name: str, tmp_path: Path) -> None:
    (found,) = check_schedule(measure(written(tmp_path, GRAPHS[name]), steps=6, warm_up=110))
    assert (found.same_order, found.held) == (6, 6)


CALLS = """
import tensorflow as tf

count = tf.Variable(0.0)

@tf.function
def half(x):
    count.assign_add(1.0)
    return x / 2.0

@tf.function
def step(x):
    half(half(x))

step(tf.ones([4, 4]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_calls_of_a_measured_function_are_inlined_as_where_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "calls.py"
    script.write_text(CALLS)
    measured = measure(f"{script}:step", [(1, 1), (2, 1)], steps=1)
    ran = set(measured.settings[1].steps[0].order)
    bodies = ("StatefulPartitionedCall", "StatefulPartitionedCall_1")
    ours = {node.name for node in simplace.place(str(script)).only("step").nodes if "Func" not in node.name}
    assert {name for name in ran if name.startswith(bodies)} == {name for name in ours if name.startswith(bodies)}
    assert {name for name in ran if "AssignAdd" in name} == {f"{body}/AssignAddVariableOp" for body in bodies}


VARIABLES = """
import tensorflow as tf

weights = [tf.Variable(tf.ones([8, 8])) for _ in range(8)]

@tf.function
def step(x):
    return tf.add_n([tf.reduce_sum(x @ weight) for weight in weights])

step(tf.ones([8, 8]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_step_that_xla_compiles_on_a_gpu_only_is_refused_with_what_to_try(tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    script.write_text(FIT)
    placed = simplace.place(str(script), "cpu:1,gpu:1").program("multi_step_on_iterator")
    why = r"XLA compiles this step on .*GPU:0, and does not on the CPU, where it was measured; --no-jit has the times"
    with pytest.raises(SimplaceError, match=why):
        api.measure_costs(str(script), placed, StepOptions(), MeasureOptions(steps=1))


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_handles_that_a_caller_hands_over_do_not_make_measured_costs_those_of_another_graph(tmp_path: Path) -> None:
    script = tmp_path / "variables.py"
    script.write_text(VARIABLES)
    placed = simplace.place(str(script), "cpu:1").program("step")
    costs = api.measure_costs(str(script), placed, StepOptions(), MeasureOptions(steps=1))
    run = schedule_placement(placed.placement, costs=costs)
    assert {span.kind for span in run.trace.spans} >= {"op"}
    assert run.errors.get("measured", 0.0) > 0


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_the_library_measures_compares_and_keeps_costs(tmp_path: Path) -> None:
    file = written(tmp_path, GRAPHS["chain"])
    found = simplace.measure_steps(str(file), inter_op=[1], steps=2, timeout=PATIENT)
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps(found.to_json()))
    run = simplace.place(str(file), "cpu:1").schedule(costs=str(costs), inter_op=1)
    elsewhere = simplace.place(str(file), "cpu:1").schedule(cpu=str(costs), inter_op=1)
    assert [(one.inter_op, one.traced) for one in found.agreements] == [(1, 2)]
    assert "simulated / measured" in str(found)
    assert run.trace.makespan > 0
    assert elsewhere.errors.get("calibrated", 0.0) > 0
    assert "\nthis CPU: " in str(found)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_probes_tell_the_fixed_times_of_the_executor(tmp_path: Path) -> None:
    """How near they bring simulated steps to real ones is measured in benchmarks/schedule_accuracy.py."""
    measured = measure(written(tmp_path, graphs.tiny_chains()), warm_up=20, steps=3, probes=True)
    (found,) = check_schedule(measured)
    assert fixed_times(measured).op_s > 0
    of_two = [step.runs for name, steps in measured.probes.items() if name.startswith(NEW_ON_TWO) for step in steps]
    assert of_two
    cells = [[run for run in runs if f"{PAIR}_" not in run.name] for runs in of_two]
    assert all(2 < len(of_cells) < len(runs) for of_cells, runs in zip(cells, of_two, strict=True))
    assert all(before.end <= after.start for runs in cells for before, after in pairwise(runs))  # no two at once
    assert min(found.low, found.ratio, found.high) > 0


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_probes_tell_what_the_cpu_reaches(tmp_path: Path) -> None:
    """What disturbs them makes them slower only, so a busy machine reaches less, and never more than there is."""
    cpu = measure(written(tmp_path, graphs.tiny_chains()), warm_up=2, steps=1, calibrates=True).cpu
    assert cpu is not None
    assert cpu.cores == len(os.sched_getaffinity(0))
    assert sorted(cpu.products) == ["float32", "float64"]
    fastest = list_core_peaks(clock=7e9, bits=512, fma=2)  # no CPU has more
    assert all(0 < cpu.peak[dtype] < fastest[dtype] for dtype in cpu.products)
    assert all(0 < rate < 7e9 * 2 * 64 for _, rate in cpu.reads)  # two vectors of 64 bytes a cycle
    assert 0 < cpu.core_bandwidth <= cpu.bandwidth < 1e12
    assert 0 < cpu.least_s < 1


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", FIVE)
def test_cold_steps_run_in_exactly_the_simulated_order(name: str) -> None:
    # The loop runs its ops 20 times a step.
    measured = measure(f"{MODELS}:{name}", arguments=SMALL, warm_up=0, steps=2)
    (one,) = measured.settings
    second = one.steps[1]
    graph = with_observed_order(graph_that_ran(measured), ObservedOrder(one.edge_order))
    assert (
        list_traced_nodes(simulate_measured_step(graph, one, second, Overheads(), warm=False), second) == second.order
    )


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", FIVE)
def test_warm_steps_run_in_exactly_the_predicted_order(name: str) -> None:
    measured = measure(f"{MODELS}:{name}", arguments=SMALL, warm_up=110, steps=6)
    (found,) = check_schedule(measured)
    assert (found.same_order, found.held) == (6, 6)


BRANCHES = """
import tensorflow as tf

@tf.function
def step(x):
    for i in tf.range(5):
        if tf.equal(i % 2, tf.cast(x[0, 0], tf.int32)):
            x = tf.abs(x) + 0.0
        else:
            x = tf.nn.relu(tf.transpose(x))
        while x[1, 1] < 3.0:
            x = x + tf.linalg.band_part(tf.ones_like(x), 1, 0) * [[0.0, 1.0], [0.0, 1.0]]
    return tf.switch_case(tf.cast(x[0, 0], tf.int32) + 1, [lambda: tf.exp(x), lambda: tf.sin(x), lambda: tf.cos(x)])

step(tf.zeros([2, 2]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_step_takes_the_branches_that_were_taken(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(BRANCHES)
    measured = measure(f"{script}:step", warm_up=110, steps=6)
    (found,) = check_schedule(measured)
    assert (found.same_order, found.held) == (6, 6)
    outcomes = observe_step(measured)
    assert sorted(outcomes.branches.values()) == [(1,), (1, 0, 1, 0, 1)]
    assert outcomes.trips == {"while": (5,), "while/body/_1/while/while": (3, 0, 0, 0, 0)}
    ran = {name.rpartition("/")[2] for name in measured.settings[0].steps[0].order}
    assert "Sin" in ran
    assert not {"Exp", "Cos"} & ran


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_callers_thread_runs_all_in_turn(tmp_path: Path) -> None:
    (found,) = check_schedule(measure(written(tmp_path, GRAPHS["layers"]), [(-1, 1)], steps=4, warm_up=2))
    assert found.same_order == found.held


def test_tiny_ops_change_their_order_when_they_are_known_to_be_cheap(tmp_path: Path) -> None:
    placement = placed(written(tmp_path, graphs.tiny_chains(length=3)))

    def order_of(warm: bool) -> str:
        done = schedule_placement(placement, inter_op=1, intra_op=1, warm=warm)
        nodes = done.estimated.graph.nodes
        return " ".join(nodes[span.node].name for span in done.trace.spans if nodes[span.node].role == "op")

    assert order_of(warm=False) == "dims value x b0 b1 b2 a0 a1 a2"
    assert order_of(warm=True) == "dims value x a0 b0 a1 b1 a2 b2"


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("warm_up", [0, 150])
def test_tiny_ops_run_in_the_order_of_those_that_are_cheap_by_then(warm_up: int, tmp_path: Path) -> None:
    """A busy machine makes any of them expensive for some dozen steps, so TensorFlow is asked which ones are."""
    measured = measure(written(tmp_path, graphs.tiny_chains()), warm_up=warm_up, steps=6)
    (found,) = check_schedule(measured)
    assert (found.same_order, found.held) == (6, 6)


HANDLES = """
import tensorflow as tf

first, second = tf.Variable(1.0), tf.Variable(2.0)

@tf.function
def step(x):
    first.assign_add(x + 1.0)
    second.assign_add(x * 2.0)

step(tf.constant(3.0))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_handles_become_cheap_when_many_steps_were_traced(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(HANDLES)
    (found,) = check_schedule(measure(tmp_path / "model.py", warm_up=110, steps=130))
    assert (found.same_order, found.held) == (130, 130)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_measured_costs_can_be_used_again(tmp_path: Path) -> None:
    file = written(tmp_path, graphs.tiny_chains())
    costs = tmp_path / "costs.json"
    (found,) = measure(file, steps=2).settings
    content = cost_file(found.seconds, intra_op=1, fixed=Overheads(op_s=1e-6), tensorflow=found.tensorflow)
    costs.write_text(json.dumps(content))
    assert schedule_placement(placed(file), costs=str(costs)).makespan_s > 0


@pytest.mark.tf
def test_function_runs_with_the_programs_own_inputs_and_variables(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    measured = measure(f"{script}:step", [(1, 1), (2, 1), (-1, 1)], steps=2)
    assert measured.program.name == "step"
    assert measured.remarks == (
        "step runs with the inputs of its first call", "every step gets the same element of the iterator iterator",
    )  # fmt: skip
    ops = {node.op for node in measured.program.graph.nodes}
    assert {"VarHandleOp", "IdentityN", "MatMul"} <= ops
    assert not {"Placeholder", "IteratorGetNext"} & ops
    assert [one.inter_op for one in measured.settings] == [1, 2, -1]
    assert all("MatMul" in step.order for one in measured.settings for step in one.steps)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_placeholder_gets_random_numbers(tmp_path: Path) -> None:
    shape = "shape { dim { size: -1 } dim { size: 3 } }"
    text = (
        f'node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
        f'attr {{ key: "shape" value {{ {shape} }} }} }}'
        'node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }'
    )
    measured = measure(written(tmp_path, text), steps=1, batch=5)
    assert measured.remarks == ("placeholders (x) hold random numbers",)
    assert measured.settings[0].steps[0].order == ["_SOURCE", "x", "y"]


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_graph_that_cannot_run_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="TensorFlow could not run it"):
        measure(written(tmp_path, 'node { name: "a" op: "NoSuchOp" }'))


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_function_that_is_not_called_gets_one_line(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\n")
    with pytest.raises(TargetError, match=r"the program called no tf\.function g, so there is nothing to run"):
        measure(f"{script}:g")


SESSION = """
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    session.run(tf.square(2.0))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_steps_of_a_session_get_one_line(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SESSION)
    with pytest.raises(TargetError, match="runs its steps in a session, which is not measured; simplace schedule with"):
        measure(str(script))


CLUSTER = """
import tensorflow as tf
spec = tf.train.ClusterSpec({"worker": ["a.invalid:2222", "b.invalid:2222"]})
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=0, rpc_layer="grpc")
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    "joining",
    [
        "tf.distribute.Server(spec, job_name='worker', task_index=0)",
        "tf.config.experimental_connect_to_cluster(resolver)",
        "tf.distribute.MultiWorkerMirroredStrategy(resolver)",
    ],
)
def test_other_tasks_of_a_cluster_are_not_waited_for(joining: str, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(CLUSTER + joining)
    with pytest.raises(TargetError, match="the program is a task of a cluster, which cannot be measured"):
        measure(script)


def test_only_what_runs_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "model.keras"
    file.write_text("")
    with pytest.raises(TargetError, match="cannot be measured; give a script"):
        measure(file)
    with pytest.raises(TargetError, match="no such file or directory"):
        measure(tmp_path / "none.py")


@pytest.mark.parametrize(
    ("script", "told", "status"),
    [
        ("import sys\nsys.exit(7)\n", "the program ended with exit status 7", 7),
        ("x = 1\nraise ValueError('boom')\n", "the program stopped with ValueError: boom at .*model.py:2", 1),
        ("import no_such_package\n", "the program stopped with ModuleNotFoundError: .* at .*model.py:1", 1),
    ],
)
def test_how_a_program_ended_is_told_as_show_does(tmp_path: Path, script: str, told: str, status: int) -> None:
    (tmp_path / "model.py").write_text(script)
    with pytest.raises(ProgramError, match=told) as caught:
        measurement.measure_target(f"{tmp_path}/model.py", MeasureOptions(), Measured)
    assert caught.value.status == status
    assert "simplace" not in caught.value.details
