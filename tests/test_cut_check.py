"""The copies of a cut against TensorFlow's own partition graphs: read from their nodes, compared, run for real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, check
from simplace.compare.compare_transfers import CopyAgreement, Transfer, compare_partitions, transfers_in
from simplace.graph.graph_def import parse_text
from simplace.machine.machine import Machine, Task, make_cluster
from simplace.oracle.launch import Forks, starting_by
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import Observation, Partitioning
from simplace.program.program import SessionRun
from simplace.result import Result
from simplace.views.text.summary import copies_line
from tests.worlds import CPU, GPU0, GPU1, constant, node, place


def world():
    return place(
        constant("a", (2,), device="/CPU:0"), node("x", "Neg", "a", device="/GPU:0"),
        node("y", "Neg", "x", "^a", device="/GPU:0"),
    )  # fmt: skip


def end(name: str, op: str, edge: str, src: str, *inputs: str, dtype: str = "DT_FLOAT") -> str:
    """Write a send or receive from CPU:0 to GPU:0 as TensorFlow does."""
    texts = {"tensor_name": edge, "send_device": CPU, "recv_device": GPU0, "_src": src}
    attrs = [f'attr {{ key: "{key}" value {{ s: "{value}" }} }}' for key, value in texts.items()]
    attrs.append(f'attr {{ key: "tensor_type" value {{ type: {dtype} }} }}')
    listed = " ".join(f'input: "{name}"' for name in inputs)
    return f'node {{ name: "{name}" op: "{op}" {listed} {" ".join(attrs)} }}'


CPU_PART = (
    constant("a", (2,)),
    end("a/_2", "_Send", "edge_1_a", "a", "a"),
    constant("a/ctrl/_4", (0,)).replace('op: "Const"', 'op: "Const" input: "^a"'),
    end("a/_5", "_Send", "edge_2_a", "a", "a/ctrl/_4"),
)
GPU_PART = (
    end("a/_3", "_Recv", "edge_1_a", "a"),
    node("x", "Neg", "a/_3"),
    end("a/_6", "_Recv", "edge_2_a", "a"),
    node("a/_7", "Identity", "a/_6"),
    node("y", "Neg", "x", "^a/_7"),
)
DATA = Transfer("a:0", CPU, GPU0, "float32", "_Send", "_Recv", ("x",), ())
ORDER = Transfer("^a", CPU, GPU0, "float32", "_Send", "_Recv", ("y",), ())


def cut(*parts: tuple[str, ...]) -> Partitioning:
    return Partitioning(tuple(parse_text("\n".join(part)) for part in parts))


def test_sends_and_receives_are_read_with_their_consumers():
    assert transfers_in(cut(CPU_PART, GPU_PART).subgraphs) == [DATA, ORDER]


def test_equal_copies_agree():
    found = compare_partitions(world(), [Partitioning(cut(CPU_PART, GPU_PART).subgraphs, SessionRun(targets=("y",)))])
    assert found == CopyAgreement(2, 2)
    assert str(found) == "2/2 copies"


def test_a_copy_that_tensorflow_lacks_is_a_difference():
    found = compare_partitions(world(), [cut(CPU_PART[:2], (*GPU_PART[:2], node("y", "Neg", "x")))])
    assert found is not None
    assert (found.same, found.total, [(d.ours, d.theirs) for d in found.differences]) == (1, 2, [(ORDER, None)])


def test_a_copy_that_differs_in_its_ends_is_one_difference():
    found = compare_partitions(world(), [cut(CPU_PART, (GPU_PART[0].replace("_Recv", "_HostRecv"), *GPU_PART[1:]))])
    assert found is not None
    (difference,) = found.differences
    assert (difference.transfer, found.total) == (DATA, 2)
    assert str(difference.theirs) == "_Send and _HostRecv of float32 for x"


def test_a_run_that_names_an_unknown_node_has_none_of_our_copies():
    found = compare_partitions(world(), [Partitioning(cut(CPU_PART, GPU_PART).subgraphs, SessionRun(targets=("z",)))])
    assert found is not None
    assert (found.same, found.total) == (0, 2)


GPU1_PART = (
    end("a/_3_G1", "_Recv", "edge_3_a/_3", "a/_3").replace(GPU0, GPU1).replace(CPU, GPU0),
    node("z", "Neg", "a/_3_G1"),
    end("a/_7_G4", "_Recv", "edge_4_a/_7", "a/_7").replace(GPU0, GPU1).replace(CPU, GPU0),
    node("a/_7_G5", "Identity", "a/_7_G4"),
    node("w", "Neg", "z", "^a/_7_G5"),
)
SENT_ON = (
    end("a/_3_G0", "_Send", "edge_3_a/_3", "a/_3", "a/_3").replace(GPU0, GPU1).replace(CPU, GPU0),
    constant("a/_7/ctrl_G2", (0,)).replace('op: "Const"', 'op: "Const" input: "^a/_7"'),
    end("a/_7_G3", "_Send", "edge_4_a/_7", "a/_7", "a/_7/ctrl_G2").replace(GPU0, GPU1).replace(CPU, GPU0),
)


def test_what_a_task_sends_on_is_called_what_it_received():
    found = transfers_in(cut(CPU_PART, (*GPU_PART, *SENT_ON), GPU1_PART).subgraphs)
    assert found == [
        DATA, ORDER, replace(DATA, source=GPU0, target=GPU1, consumers=("z",)),
        replace(ORDER, source=GPU0, target=GPU1, consumers=("w",)),
    ]  # fmt: skip


def test_nodes_of_two_parts_may_have_one_name():
    same_names = tuple(line.replace("_3_G1", "_3") for line in GPU1_PART)
    parts = CPU_PART, (*GPU_PART, *SENT_ON)
    assert transfers_in(cut(*parts, same_names).subgraphs) == transfers_in(cut(*parts, GPU1_PART).subgraphs)


def test_copies_to_and_fro_make_a_chain_of_any_length():
    parts: tuple[list[str], list[str]] = ([constant("x0", (2,))], [])
    for i in range(1000):
        source, target = (CPU, GPU0) if i % 2 == 0 else (GPU0, CPU)
        send, receive = (
            end(f"{op}{i}", op, f"edge_{i}", f"x{i}", *given)
            .replace(CPU, "?")
            .replace(GPU0, target)
            .replace("?", source)
            for op, given in (("_Send", [f"x{i}"]), ("_Recv", []))
        )
        parts[i % 2].append(send)
        parts[1 - i % 2].extend((receive, node(f"x{i + 1}", "Identity", f"_Recv{i}")))
    assert {each.tensor for each in transfers_in(cut(*map(tuple, parts)).subgraphs)} == {f"x{i}:0" for i in range(1000)}


def test_what_a_master_feeds_and_fetches_is_no_copy():
    feed = end("_recv_x_0", "_Recv", "x:0", "").replace('attr { key: "_src" value { s: "" } }', "")
    assert transfers_in(cut((feed, *CPU_PART), GPU_PART).subgraphs) == [DATA, ORDER]


def test_nothing_is_compared_where_tensorflow_cut_nothing():
    assert compare_partitions(world(), []) is None
    assert (
        compare_partitions(place(constant("a", (2,), device="/GPU:7"), soft=False), [cut(CPU_PART, GPU_PART)]) is None
    )


SCRIPT = """\
    import tensorflow as tf
    v1 = tf.compat.v1

    @tf.function
    def straight(x):
        with tf.device("/GPU:0"):
            a, b, shape = x + 1, x * 2, tf.shape(x)
        with tf.device("/GPU:1"):
            c = tf.reshape(a * b, shape)
        with tf.control_dependencies([c]), tf.device("/CPU:0"):
            return tf.reduce_sum(x) + tf.reduce_sum(a) + tf.cast(shape[0], tf.float32)

    @tf.function
    def small_constant(x):
        one = tf.constant([1.0, 2.0])
        with tf.device("/CPU:0"):
            a = x + one
        with tf.device("/CPU:1"):
            b = x * one
        with tf.device("/GPU:0"):
            return a + b + one

    @tf.function
    def nested(x):
        for i in tf.range(3):
            with tf.device("/GPU:0"):
                x = x + 1
            for j in tf.range(i):
                with tf.device("/GPU:1"):
                    x = x * 2
                if tf.reduce_sum(x) > 10:
                    with tf.device("/CPU:1"):
                        x = x - 1
        return x

    straight(tf.ones([2]))
    small_constant(tf.ones([2]))
    nested(tf.ones([2]))
    for pruned in (False, True):
        with tf.Graph().as_default():
            v1.disable_resource_variables()
            with tf.device("/CPU:1"):
                v = v1.get_variable("v", [2], initializer=v1.zeros_initializer())
            with tf.device("/GPU:0"):
                x = v1.placeholder(tf.float32, [2])
                a, b = v + x, v * x
            with tf.device("/GPU:1"), tf.control_dependencies([x]):
                c = tf.stack([a, b])
            config = v1.ConfigProto(allow_soft_placement=True)
            config.graph_options.place_pruned_graph = pruned
            with v1.Session(config=config) as session:
                session.run(v.initializer)
                session.run([c, tf.shape(c)], {x: [1.0, 2.0]})
                session.run(b, {x: [1.0, 2.0]})
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cuts") / "model.py"
    path.write_text(dedent(SCRIPT))
    return path


@pytest.fixture(scope="module")
def checked(script: Path, forks: Forks) -> Result:
    with starting_by(forks):
        return check(str(script), Settings(Machine(cpus=2, gpus=2)))


@pytest.mark.tf
def test_copies_are_those_of_tensorflow(checked: Result) -> None:
    found = {}
    for placed in checked:
        assert placed.agreement is not None
        assert placed.copy_agreement is not None, placed.name
        assert placed.agreement.holds, placed.agreement.differences
        assert placed.copy_agreement.holds, placed.copy_agreement.differences
        found[placed.name] = placed.copy_agreement.total
    assert found == {
        "straight": 9, "small_constant": 6, "nested": 23, "Session.run": 0, "Session.run (2)": 10,
        "Session.run (3)": 0, "Session.run (4)": 7, "Session.run (5)": 3,
    }  # fmt: skip


CLUSTER = """\
    import contextlib
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_resource_variables()
    v1.disable_control_flow_v2()

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0/cpu:0"):
            v = v1.get_variable("v", [2], initializer=v1.zeros_initializer())
            x = v1.placeholder(tf.float32, [2])
            a = x + 1.0
        with tf.device("/job:worker/task:0/gpu:1"):
            b, shape = a * 2.0, tf.shape(x, name="shape")
        with tf.device("/job:worker/task:0/gpu:0"), tf.control_dependencies([a]):
            c = tf.reshape(a * v, shape) + v * b
        with tf.device("/job:worker/task:0/cpu:0"):
            d = tf.strings.as_string(a)

        def body(i, total):
            with tf.device("/job:worker/task:0/gpu:0"):
                half = total * 0.5
            with tf.device("/job:worker/task:0/gpu:1"):
                return i + 1, half + total

        loop = v1.while_loop(lambda i, total: i < 3, body, [tf.constant(0), a])[1]
        with v1.Session("grpc://any") as session, contextlib.suppress(tf.errors.OpError):
            session.run(v.initializer)
            session.run([c, d], {x: [1.0, 2.0]})
        with v1.Session("grpc://any") as session, contextlib.suppress(tf.errors.OpError):
            session.run(loop, {x: [1.0, 2.0]})

    @tf.function
    def step(x):
        with tf.device("/job:ps/task:0/CPU:0"):
            y = x + 1.0
        with tf.device("/job:worker/task:0/GPU:1"):
            return y * 2.0 + x

    for task in ("ps", "worker"):
        with tf.device(f"/job:{task}/task:0/CPU:0"), contextlib.suppress(tf.errors.OpError):
            step(tf.ones([2]))
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_copies_between_tasks_are_those_of_tensorflow(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(dedent(CLUSTER))
    found: dict[str, list[int]] = {}
    for placed in check(str(path), Settings(make_cluster((Task("ps", 0), Task("worker", 0, gpus=2)), connected=True))):
        assert placed.copy_agreement is not None, placed.name
        assert placed.copy_agreement.holds, placed.copy_agreement.differences
        found.setdefault(placed.name, []).append(placed.copy_agreement.total)
    assert found == {"Session.run": [9], "Session.run (2)": [9], "step": [4, 5]}


PRUNED = """
import tensorflow as tf

{options}
count = tf.Variable(0)

def step(x):
    count.assign_add(1)
    return x

wrapped = tf.compat.v1.wrap_function(step, [1])
wrapped(), wrapped()
assert count.numpy() == {counted}, count.numpy()

@tf.function
def mapped():
    return tf.data.Dataset.range(3).map(lambda x: x + 1).reduce(tf.constant(0, tf.int64), lambda x, y: x + y)

assert mapped().numpy() == 6
"""
OFF = 'tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})'


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize(("options", "counted"), [("", 0), (OFF, 2)])
def test_what_grappler_prunes_does_not_run_in_a_check(gpus: int, options: str, counted: int, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(dedent(PRUNED).format(options=options, counted=counted))
    result = check(str(path), Settings(Machine(cpus=1, gpus=gpus)))
    assert result.failure is None
    assert result.agrees
    assert all(placed.copy_agreement is None or placed.copy_agreement.holds for placed in result)
    names = [placed.name for placed in result]
    assert len(set(names)) == len(names)  # placed once more to be computed, a function is recorded once


@pytest.mark.tf
def test_the_check_says_so_in_a_line(checked: Result) -> None:
    total = sum(placed.copy_agreement.total for placed in checked if placed.copy_agreement)
    assert copies_line(checked) == f"copies: {total}/{total} as in TensorFlow's partition graphs"
    assert checked.agrees


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_partition_graphs_are_collected_only_when_asked_for(script: Path) -> None:
    seen: Observation = observe_script(script, (), Machine(cpus=2, gpus=2), Options())
    assert {cut for program in seen.programs for cut in program.partitionings} == set()
