"""A step simulated with the graph that TensorFlow's Grappler makes of it, for a GPU that is not there."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import simplace
from benchmarks.nodes_that_ran import list_ran, list_simulated
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepKeywords

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
IMAGES = """
    import tensorflow as tf

    kernels = [tf.Variable(tf.random.normal([3, 3, 8, 8])) for _ in range(2)]

    def infer(x):
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return x

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(infer(x))
        for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
            kernel.assign_sub(gradient)
        return loss

    serve = tf.function(infer)
    images = tf.ones([4, 16, 16, 8])
    print(serve(images).shape, train(images).shape)
"""
SESSION = """
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()

    x = tf.placeholder(tf.float32, [4])
    two = tf.sqrt(tf.constant(4.0))
    y = (x * two) * tf.ones([4])
    unused = tf.exp(y)
    with tf.Session() as session:
        print(session.run(y, {x: [1.0, 2.0, 3.0, 4.0]}))
"""
LOOP = """
    import tensorflow as tf

    weight = tf.Variable(tf.ones([8, 8]))

    @tf.function
    def loop(x, n):
        for _ in tf.range(n):
            x = tf.matmul(x, weight)
        return x * x

    print(loop(tf.ones([4, 8]), tf.constant(3)).shape)
"""
BIASED = """
@tf.function
def step(x, kernel):
    return tf.reduce_sum(tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), tf.ones([8]))))

step(tf.ones([2, 8, 8, 3]), tf.ones([3, 3, 3, 8]))
"""
STATED = """
    import tensorflow as tf

    kernel = tf.Variable(tf.ones([3, 3, 3, 16]))

    @tf.function
    def f(x, size):
        x = tf.ensure_shape(tf.reshape(x, size), [None, None, None, 3])
        x = tf.nn.conv2d(x, kernel, 1, "SAME")
        x.set_shape([None, 32, 32, 16])
        return tf.nn.relu(x)

    print(f(tf.ones([2, 32, 32, 3]), tf.constant([2, 32, 32, 3])).shape)
"""
PRUNED = """
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()

    v = tf.get_variable("v", [4])
    options = tf.GraphOptions(place_pruned_graph=True)
    with tf.Session(config=tf.ConfigProto(graph_options=options)) as session:
        session.run(v.initializer)
        session.run(tf.sqrt(v * tf.sqrt(tf.constant(4.0))))
"""
FUSED = """
    import tensorflow as tf

    weight, bias = tf.Variable(tf.ones([8, 8])), tf.Variable(tf.ones([8]))

    @tf.function
    def f(x):
        x = tf.matmul(x, weight)
        return tf.reduce_sum(tf.nn.relu(tf.nn.bias_add(x, bias)))

    print(f(tf.ones([4, 8])).shape)
"""
GATHERED = """
    import tensorflow as tf

    table = tf.Variable(tf.ones([16, 4]))

    @tf.function
    def f(rows):
        return tf.reshape(tf.gather(table, rows), [8, 4]) * 2.0

    print(f(tf.zeros([8], tf.int32)).shape)
"""
TRAINED = """
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()

    ids, x = tf.placeholder(tf.int32, [8]), tf.placeholder(tf.float32, [None, 4])
    first, second, weight = (
        tf.get_variable(name, initializer=tf.zeros([16, 4]), use_resource=True) for name in ("first", "second", "w")
    )
    rows = tf.nn.embedding_lookup(first, ids) * tf.nn.embedding_lookup(second, ids)
    y = tf.matmul(x, weight, transpose_b=True)
    train = tf.train.AdagradOptimizer(1.0).minimize(tf.reduce_sum(rows) + tf.reduce_mean(y * y))
    turned = tf.transpose(tf.transpose(y))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([train, turned], {ids: range(8), x: [[1.0] * 4] * 2})
"""
MAPPED = """
    import tensorflow as tf

    kernel = tf.ones([3, 3, 8, 8])

    def prepare(x):
        tf.random.uniform([4])
        with tf.device("/GPU:0"):
            x = tf.nn.conv2d(tf.slice(x, [0, 0, 0, 0], [4, 16, 16, 8]), kernel, 1, "SAME")  # a slice of all there is
        return x * 2.0

    print(len(list(tf.data.Dataset.from_tensors(tf.ones([4, 16, 16, 8])).map(prepare))))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path]:
    """Return the ops, by name, of a session's run as Grappler leaves it, and the program."""
    script = tmp_path_factory.mktemp("trained") / "model.py"
    script.write_text(textwrap.dedent(TRAINED))
    return list_simulated(simplace.place(str(script), "cpu:1"), grappler=True), script


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> simplace.Placements:
    return placed(IMAGES, tmp_path_factory.mktemp("images"))


def placed(text: str, folder: Path) -> simplace.Placements:
    script = folder / "model.py"
    script.write_text(textwrap.dedent(text))
    return simplace.place(str(script), "cpu:1,gpu:1")


def count_ops(result: simplace.Placements, program: str, **options: object) -> Counter[str]:
    chosen: StepKeywords = {"grappler": True, **options}  # type: ignore[typeddict-item]
    return Counter(node.op for node in result.schedule(program, **chosen).estimated.graph.nodes)


def test_the_layout_of_images_depends_on_the_gpu(images: simplace.Placements) -> None:
    """Tensor cores take TF32 with the channels last; the gradients of float32 do not."""
    assert count_ops(images, "infer", gpu="a100")["Transpose"] == 0
    assert count_ops(images, "infer", gpu="p100")["Transpose"] == 2
    assert count_ops(images, "train", gpu="a100")["Transpose"] > 0


def test_what_grappler_adds_has_a_shape_a_line_and_a_time(images: simplace.Placements) -> None:
    schedule = images.schedule("infer", gpu="p100", grappler=True)
    graph, estimated = schedule.estimated.graph, schedule.estimated
    moved = {i: node for i, node in enumerate(graph.nodes) if node.op == "Transpose"}
    assert [estimated.output(i, 0).shape for i in moved] == [(4, 8, 16, 16), (4, 16, 16, 8)]  # type: ignore[union-attr]
    assert all("model.py:" in graph.source_line(i) for i in moved)
    assert all(estimated.kernels[i].device_s > 0 for i in moved)
    convolutions = [i for i, node in enumerate(graph.nodes) if node.op == "Conv2D"]
    assert {estimated.output(i, 0).shape for i in convolutions} == {(4, 8, 16, 16)}  # type: ignore[union-attr]


def test_what_grappler_makes_behind_a_loop_has_a_shape(tmp_path: Path) -> None:
    """TensorFlow infers none for a loop's Enter and Merge, which are told to it."""
    graph = placed(LOOP, tmp_path).schedule("loop", grappler=True).placed.graph
    made = [i for i in graph.op_ids if graph.ops[i] == "Square"]
    assert [graph.attrs[i]["_output_shapes"][0].dims for i in made] == [(4, 8)]  # type: ignore[index,union-attr]


def test_a_shape_that_the_program_stated_is_not_told_of_another_layout(tmp_path: Path) -> None:
    result = placed(STATED, tmp_path)
    for gpu, channels_last in (("a100", True), ("p100", False)):
        graph = result.schedule("f", gpu=gpu, grappler=True).placed.graph
        shapes = {graph.attrs[i]["_output_shapes"][0].dims for i in graph.op_ids if graph.ops[i] in {"Conv2D", "Relu"}}  # type: ignore[index,union-attr]
        assert {(shape[-1] if channels_last else shape[1]) for shape in shapes} == {16}  # type: ignore[index]


def test_the_shape_of_a_variable_is_known_however_it_is_read(tmp_path: Path) -> None:
    ops = count_ops(placed(GATHERED, tmp_path), "f")
    assert (ops["ResourceGather"], ops["Reshape"]) == (1, 0)


def test_a_run_of_a_session_keeps_what_it_fetches(tmp_path: Path) -> None:
    ops = count_ops(placed(SESSION, tmp_path), "Session.run")
    assert ops["Mul"] >= 1
    assert "Sqrt" not in ops
    assert "Exp" not in ops


def test_the_shape_of_what_a_run_is_fed_with_is_what_the_graph_says(trained: tuple[dict[str, str], Path]) -> None:
    """The gradient of a mean over any number of rows finds that number in each run."""
    simulated, _ = trained
    assert simulated["gradients/Mean_grad/Shape"] == "Shape"
    assert simulated["gradients/Mean_grad/Tile"] == "Tile"


def test_what_a_run_fetches_is_not_replaced_by_what_equals_it(trained: tuple[dict[str, str], Path]) -> None:
    simulated, _ = trained
    assert simulated["transpose"] == simulated["transpose_1"] == "Transpose"


def test_what_is_colocated_with_different_variables_is_not_equal(trained: tuple[dict[str, str], Path]) -> None:
    """Each update sums up the gradients of its rows, although both are of the same rows."""
    simulated, _ = trained
    assert simulated["Adagrad/update_first/Unique"] == simulated["Adagrad/update_second/Unique"] == "Unique"


def test_the_same_nodes_run_of_a_session(trained: tuple[dict[str, str], Path]) -> None:
    """TensorFlow makes and initializes the variables in an earlier run."""
    simulated, script = trained
    ran = list_ran(script, "keep")
    assert {name for name, op in simulated.items() if op != "VarHandleOp"} == {
        name for name, op in ran.items() if op not in {"VarHandleOp", "AssignVariableOp"}
    }


def test_functions_of_datasets_are_neither_folded_nor_laid_out_and_keep_what_has_state(tmp_path: Path) -> None:
    """On a P100 a function of a step would have its channels first."""
    simulated = list_simulated(placed(MAPPED, tmp_path), grappler=True, gpu="p100")
    assert sorted(simulated.values()) == ["Conv2D", "Mul", "RandomUniform", "Slice"]
    assert simulated.keys() == list_ran(tmp_path / "model.py", "keep").keys()


def test_the_output_says_that_grappler_was_asked(images: simplace.Placements) -> None:
    schedule = images.schedule("infer", gpu="p100", grappler=True)
    assert "\noptimized by TensorFlow's Grappler: " in str(schedule)
    assert schedule.to_json()["grappler"]
    assert "Grappler" not in str(images.schedule("infer"))


def test_options_that_the_program_sets_hold(tmp_path: Path) -> None:
    def count(options: str) -> Counter[str]:
        script = tmp_path / "model.py"
        script.write_text(
            f"import tensorflow as tf\ntf.config.optimizer.set_experimental_options({options})\n" + BIASED
        )
        return count_ops(simplace.place(str(script), "cpu:1,gpu:1"), "step", gpu="v100")

    assert count("{}")["_FusedConv2D"] == 1
    without = count("{'remapping': False}")
    assert (without["_FusedConv2D"], without["Relu"], without["Transpose"]) == (0, 1, 1)
    assert count("{'remapping': False, 'layout_optimizer': False}")["Transpose"] == 0
    assert count("{'auto_mixed_precision': True}")["Cast"] > 0
    assert count("{'disable_meta_optimizer': True}")["BiasAdd"] == 1


def test_a_program_without_grappler_says_so(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    off = "config=tf.ConfigProto(graph_options=tf.GraphOptions(rewrite_options={'disable_meta_optimizer': True}))"
    script.write_text(textwrap.dedent(SESSION).replace("tf.Session()", f"tf.Session({off})"))
    schedule = simplace.place(str(script), "cpu:1").schedule(grappler=True)
    assert "not optimized by TensorFlow's Grappler: the program turned it off" in str(schedule)


def test_what_xla_compiles_whole_is_not_optimized(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(
        "import tensorflow as tf\n"
        "@tf.function(jit_compile=True)\n"
        "def step(x):\n"
        "    return tf.nn.relu(tf.matmul(x, x) + 1.0)\n"
        "step(tf.ones([8, 8]))\n"
    )
    result = simplace.place(str(script), "cpu:1,gpu:1")
    plain, asked = (result.schedule(grappler=grappler) for grappler in (False, True))
    assert asked.makespan_s == plain.makespan_s
    assert "not optimized by TensorFlow's Grappler: XLA compiles all of it" in str(asked)


def test_a_pruned_graph_is_not_optimized(tmp_path: Path) -> None:
    """TensorFlow does not optimize what it placed of a run alone (`place_pruned_graph`)."""
    result = placed(PRUNED, tmp_path)
    for program in ("Session.run", "Session.run (2)"):
        assert count_ops(result, program) == count_ops(result, program, grappler=False)


def test_recorded_costs_are_of_ops_that_grappler_left_as_they_were(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(textwrap.dedent(FUSED))
    result = simplace.place(str(script), "cpu:1")
    recorded = {node.name: 0.25 for node in result.schedule("f", optimizes=False).estimated.graph.nodes}
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps({"schema": "simplace/costs/1", "nodes": recorded}))
    estimated = result.schedule("f", grappler=True, costs=str(costs)).estimated
    sources = {node.op: estimated.kernels[i].source for i, node in enumerate(estimated.graph.nodes)}
    assert sources["Sum"] == "measured"
    assert sources["_FusedMatMul"] != "measured"


def test_what_nobody_fetches_from_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.pbtxt"
    file.write_text('node { name: "a" op: "NoOp" }')
    with pytest.raises(SimplaceError, match="neither results nor effects"):
        simplace.place(str(file), "cpu:1").schedule(grappler=True)
