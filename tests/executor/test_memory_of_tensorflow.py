"""The memory of a step beside TensorFlow's own: its allocator's statistics, and its log of what kernels allocate.

TensorFlow's allocator runs on CPUs, too, if it is asked to. What kernels take there besides tensors (Eigen packs the
blocks of a product) is not in its log.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from simplace.analysis.memory_replay import MemoryBefore, Replay
from simplace.analysis.schedule import schedule_placement
from simplace.api import Settings, place
from simplace.executor.bfc_allocator import BfcAllocator
from simplace.machine.machine import Machine
from simplace.oracle.allocation_lines import VLOG, read_allocations
from simplace.program.allocation_log import AllocationLog
from simplace.views.figures.memory_bands import STATE, WEIGHTS, choose_bands
from tests.warm_processes import WarmProcesses

pytestmark = pytest.mark.tf

LIMIT_MB = 4000
VARIABLES = {
    "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(LIMIT_MB), "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_VMODULE": f"{VLOG},process_function_library_runtime=1",
    "TF_CPP_MIN_LOG_LEVEL": "0",
}  # fmt: skip
Run = Callable[..., subprocess.CompletedProcess[str]]
SEEN = 4096  # bytes: smaller allocations, such as of what kernels need besides, are not compared
RECORD = re.compile(r"Log(TensorAllocation|TensorOutput|TensorDeallocation) .*?allocation_id: (\d+)")
BYTES = re.compile(r"requested_bytes: (\d+)")
ALLOCATION = re.compile(r'TensorAllocation.*kernel_name: "([^"]+)".*requested_bytes: (\d+)')

SIZES = """
    import json, random, sys, time
    import tensorflow as tf

    def in_use():
        return tf.config.experimental.get_memory_info("CPU:0")["current"]

    def settle():  # on a busy machine another thread may still hold a scalar for a while
        readings = []
        while len(readings) < 20 or len(set(readings[-20:])) > 1:
            readings.append(in_use())
            time.sleep(0.05)
        return readings[-1]

    chance = random.Random(int(sys.argv[1]))
    sizes = [chance.randint(1, chance.choice([3_000, 300_000, 6_000_000])) for _ in range(200)]
    shapes = [tf.constant([size]) for size in sizes]
    held, rows = {}, [["begin", 0, settle()]]
    for number, size in enumerate(sizes):
        while held and chance.random() < 0.4:
            gone = chance.choice(sorted(held))
            del held[gone]
            rows.append(["free", gone, in_use()])
        held[number] = tf.raw_ops.Empty(shape=shapes[number], dtype=tf.uint8)
        rows.append([number, size, in_use()])
    print(json.dumps(rows))
"""

STEP = """
    import json, sys
    import tensorflow as tf
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    names = {}
    exec(open(sys.argv[1]).read(), names)
    names["step"](*names["arguments"])  # the first call allocates what later ones find
    print("=== step", file=sys.stderr, flush=True)
    results = names["step"](*names["arguments"])
    print("=== end", file=sys.stderr, flush=True)
"""

MOMENTUM = """
    weights = [tf.Variable(tf.random.normal(shape)) for shape in ([200, 512], [512, 512], [512, 10])]
    momenta = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
    arguments = tf.random.normal([64, 200]), tf.random.normal([64, 10])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            for weight in weights[:-1]:
                x = tf.nn.relu(x @ weight)
            loss = tf.reduce_mean((x @ weights[-1] - y) ** 2)
        gradients = tape.gradient(loss, weights)
        before = gradients  # each in its turn, or it depends on the order who still holds what was read
        for weight, momentum, gradient in zip(weights, momenta, gradients):
            with tf.control_dependencies(before):
                momentum.assign(0.9 * momentum + gradient)
                before = [weight.assign_sub(0.01 * momentum, read_value=False)]
        return loss
"""

ROWS = """
    table = tf.Variable(tf.random.normal([1000, 64]))
    weight = tf.Variable(tf.random.normal([64, 64]))
    arguments = tf.range(256), tf.range(256)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, x)
            logits = tf.matmul(tf.tanh(rows @ weight), table, transpose_b=True)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        rows, whole = tape.gradient(loss, [table, weight])
        rows = tf.convert_to_tensor(rows)
        with tf.control_dependencies([rows, whole]):
            first = table.assign_sub(0.1 * rows, read_value=False)
        with tf.control_dependencies([first]):
            weight.assign_sub(0.1 * whole)
        return loss
"""

INFERENCE = """
    weights = tf.Variable(tf.random.normal([256, 1024])), tf.Variable(tf.random.normal([1024, 256]))
    arguments = tf.random.normal([64, 256]), tf.ones([256])

    @tf.function
    def step(x, y):
        halves = tf.split(tf.transpose(tf.reshape(x, [64, 1, 256]), [1, 0, 2]), 2, axis=1)
        x = tf.concat([tf.sin(half[0]) for half in halves], 0)
        for _ in range(3):
            wide = tf.nn.softmax(x @ weights[0])
            x = tf.concat([tf.tanh(wide @ weights[1])[:, :128], x[:, 128:]], 1) + y
        return tf.reduce_sum(x, 1), tf.math.top_k(x, 5).values
"""


LOOP = """
    weight = tf.Variable(tf.random.normal([128, 128]))
    arguments = tf.random.normal([64, 128]), tf.random.normal([64, 128])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            _, x = tf.while_loop(lambda i, _: i < 20, lambda i, x: (i + 1, tf.tanh(x @ weight)), (0, x))
            loss = tf.reduce_mean((x - y) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight), read_value=False)
        return loss
"""
READ = """
    gate, weight = tf.Variable(tf.random.normal([128, 128])), tf.Variable(tf.random.normal([128, 128]))
    arguments = (tf.random.normal([64, 12, 128]),)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            rows = tf.TensorArray(tf.float32, 12).unstack(tf.tanh(tf.transpose(x, [1, 0, 2]) @ weight))

            def advance(i, state):  # each round adds the gradient of one row to those of all
                return i + 1, state + tf.sigmoid(rows.read(i) @ gate)

            loss = tf.reduce_mean(tf.while_loop(lambda i, _: i < 12, advance, (0, tf.ones([64, 128])))[1])
        return tape.gradient(loss, (gate, weight))
"""
MAPPED = """
    weight = tf.Variable(tf.random.normal([128, 128]))
    arguments = (tf.random.normal([12, 64, 128]),)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.map_fn(lambda row: tf.tanh(row @ weight), x) - x) ** 2)
        return tape.gradient(loss, weight)
"""
BRANCHED = """
    weight = tf.Variable(tf.random.normal([128, 128]))
    arguments = (tf.random.normal([64, 128]),)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:

            def advance(i, x):
                return i + 2, tf.cond(i % 4 == 0, lambda: tf.tanh(x), lambda: tf.nn.softplus(x))

            x = tf.while_loop(lambda i, _: i < 11, advance, (0, x @ weight))[1]
            loss = tf.reduce_mean(x * x)
        return tape.gradient(loss, weight)
"""
CHOSEN = """
    weight = tf.Variable(tf.random.normal([128, 128]))
    arguments = tf.random.normal([512, 128]), tf.range(512) % 3 > 0

    @tf.function
    def step(x, keep):
        with tf.GradientTape() as tape:
            x = tf.boolean_mask(tf.tanh(x @ weight), keep)
            loss = tf.reduce_mean(tf.square(tf.nn.softmax(x)))
        return tape.gradient(loss, weight)
"""
ORDERED = """
    weight = tf.Variable(tf.random.normal([4, 32, 128]))
    arguments = (tf.random.normal([16, 24, 128]),)

    @tf.function
    def step(x):
        q = tf.einsum("btd,hkd->bhtk", x, weight)
        x = tf.einsum("bhtk,bhsk->bhts", q, q)
        y = tf.einsum("bhts,bhsk->bthk", tf.nn.softmax(x), q)
        y = tf.reshape(y, [16, 24, 8, 16])
        mean, variance = tf.nn.moments(y, [1, 3], keepdims=True)
        half = tf.cast(tf.reshape((y - mean) * tf.math.rsqrt(variance + 1e-3), [384, 128]), tf.float16)
        return tf.matmul(half, half, transpose_a=True)
"""
SLICES = """
    arguments = tf.random.normal([250, 256]), tf.random.normal([40_000]), tf.random.normal([16, 16, 64])
    after = tf.control_dependencies  # one after the other: of many constants TensorFlow takes any first

    @tf.function
    def step(x, line, cube):
        odd = x[::2]
        with after([odd]):
            even = tf.sin(x[1::2])
        with after([even]):
            turned = x[::-1]
        with after([turned]):
            made = tf.sin(line)
        with after([made]):
            part = tf.slice(made, [16], [32_000]) + 1.0
        with after([part]):
            halves = made[:20_000] * made[20_000:]
        with after([halves]):
            total = tf.zeros([16, 64])
            for row in tf.unstack(tf.cos(cube), axis=1):
                total = tf.tanh(row + total)
        with after([total]):
            updated = tf.raw_ops.TensorStridedSliceUpdate(
                input=tf.tanh(x), begin=[10, 0], end=[60, 256], strides=[1, 1], value=odd[:50])
        return odd * even, turned, part, halves, total, updated
"""
WORDS = """
    arguments = (tf.random.uniform([20_000], 0, 1_000, tf.int32),)

    @tf.function
    def step(x):
        words = tf.strings.as_string(x)
        pairs = tf.strings.regex_replace(tf.strings.join([words, words], separator="-"), "1", "2")
        return tf.strings.to_hash_bucket_fast(pairs, 1_000)
"""
SPARSE = """
    places = tf.where(tf.random.stateless_uniform([300, 300], [1, 2]) < 0.05)
    arguments = places, tf.random.normal(tf.shape(places)[:1]), tf.random.normal([300, 300])

    @tf.function
    def step(indices, values, dense):
        s = tf.SparseTensor(indices, values, [300, 300])
        joined, scaled, shares = tf.sparse.concat(0, [s, s]), s * dense, tf.sparse.softmax(s)
        return tf.sparse.reduce_sum(s, 1), joined.values, scaled.values, shares.values
"""
COUNTERS = """
    window = tf.Variable(tf.random.normal([3, 3, 4, 16]))
    arguments = (
        tf.random.uniform([5_000], 0, 20_000, tf.int32), tf.random.normal([1, 30_000]),
        tf.random.normal([4, 40, 40, 2]), tf.random.uniform([4, 40, 40], 0, 2, tf.int32),
        tf.random.normal([4, 32, 32, 16]),
    )

    @tf.function
    def step(ids, chances, logits, labels, images):
        bins = tf.math.bincount(ids, tf.cast(ids, tf.float32), minlength=20_000, maxlength=20_000)
        with tf.GradientTape() as tape:
            tape.watch([logits, images])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            half, one, zero = tf.cast(images, tf.float16), tf.ones([16]), tf.zeros([16])
            made, _, _ = tf.compat.v1.nn.fused_batch_norm(half, one, zero)
            loss += tf.reduce_mean(tf.cast(made, tf.float32) ** 2)
        grouped = tf.nn.conv2d(images, window, 1, "SAME")
        return bins, tf.random.categorical(chances, 8), tape.gradient(loss, [logits, images]), grouped
"""
ARRAYS = """
    arguments = (tf.random.normal([512, 64]),)

    @tf.function
    def step(x):
        parts = tf.TensorArray(tf.float32, 8).split(tf.tanh(x), [64] * 8)
        rows = tf.TensorArray(tf.float32, 8).scatter([7, 6, 5, 4, 3, 2, 1, 0], tf.reshape(tf.sin(x), [8, 64, 64]))
        total = tf.zeros([64, 64])
        return tf.while_loop(
            lambda i, t: i < 8, lambda i, t: (i + 1, t + parts.read(i) + rows.read(i)), [0, total])[1]
"""
MASKED = """
    weight = tf.Variable(tf.random.normal([32, 64]))
    arguments = tf.random.normal([2_000, 32]), tf.range(2_000) % 4 > 0

    @tf.function
    def step(x, keep):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.boolean_mask(x, keep) @ weight) ** 2)
        return tape.gradient(loss, weight)
"""
PROGRAMS = {
    "momentum": MOMENTUM, "rows": ROWS, "inference": INFERENCE, "loop": LOOP, "read": READ, "mapped": MAPPED,
    "branched": BRANCHED, "chosen": CHOSEN, "ordered": ORDERED, "slices": SLICES, "words": WORDS, "sparse": SPARSE,
    "counters": COUNTERS, "arrays": ARRAYS, "masked": MASKED,
}  # fmt: skip
NAMELESS = {"sparse"}  # in the log copies that a kernel makes of whole tensors have no kernel's name
# By so much TensorFlow's own peaks differ, whose order isn't fixed.
ANY_ORDER = {"read": 0.15, "mapped": 0.05, "counters": 0.15, "sparse": 0.15}


@pytest.fixture
def run_in_tensorflow(warm: WarmProcesses) -> Run:
    """Return `run(script, *arguments)`: it returns what TensorFlow printed, with what kernels allocate."""

    def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = warm.run_tensorflow(script, *arguments, **VARIABLES)
        assert done.returncode == 0, done.stderr[-2000:]
        return done

    return run


@pytest.mark.parametrize("seed", range(3))
def test_the_allocator_has_as_much_in_use_as_tensorflow_after_each_call(seed: int, run_in_tensorflow: Run) -> None:
    begin, *rows = json.loads(run_in_tensorflow(SIZES, str(seed)).stdout)
    memory = BfcAllocator(LIMIT_MB << 20, growth=True)
    while memory.in_use < begin[2]:  # the shapes
        memory.allocate(4)
    addresses: dict[int, int] = {}
    for number, given, in_use in rows:
        if number == "free":
            memory.free(addresses.pop(given))
        else:
            address = memory.allocate(given)
            assert address is not None
            addresses[number] = address
        assert memory.in_use == in_use


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("forked")
def test_a_step_allocates_what_tensorflow_allocates(name: str, tmp_path: Path, run_in_tensorflow: Run) -> None:
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\n" + dedent(PROGRAMS[name]) + "\nstep(*arguments)\n")
    both, _ = run_in_tensorflow(STEP, str(script)).stderr.split("=== end")
    before, logged = both.split("=== step")
    theirs = Counter((name, int(size)) for name, size in ALLOCATION.findall(logged) if int(size) >= SEEN)

    result = place(str(script), Settings(machine=Machine(gpus=0), allocations=True))
    (placed,) = result.programs
    schedule = schedule_placement(placed.placement, inter_op=1, intra_op=1)
    nodes = schedule.estimated.graph.nodes
    found = [(nodes[change.node].name, change.change) for change in schedule.trace.memory if change.change >= SEEN]
    if name in NAMELESS:
        found, theirs = [("", size) for _, size in found], Counter(size for _, size in theirs.elements())
        theirs = Counter({("", size): count for size, count in theirs.items()})
    assert Counter(found) == theirs
    (use,) = schedule.memory
    alive: dict[str, int] = {}
    follow_log(before.splitlines(), alive)
    assert use.peak == pytest.approx(follow_log(logged.splitlines(), alive), rel=ANY_ORDER.get(name, 0.005))

    run = read_allocations(both.splitlines())
    assert result.allocations is not None
    function = placed.placement.program.function
    assert list_large(result.allocations, function) == list_large(run, next(f for f in run.calls if "step" in f))
    (use,) = (memory := result.memory(inter_op=1, intra_op=1)).uses
    smallest = Replay.of({}, (), MemoryBefore(run.allocations, grows=True)).find_smallest_limit()
    assert memory.needed(use) == pytest.approx(smallest, abs=1 << 20)  # TensorFlow takes whole MB


@pytest.mark.usefixtures("forked")
def test_the_largest_batch_fits_when_it_is_asked_for(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\n" + dedent(INFERENCE + MOMENTUM) + "\nstep(*arguments)\n")
    result = place(str(script), Settings(machine=Machine(gpus=1)))
    largest = result.memory(gpu="t4").largest_batch
    assert largest is not None
    assert [result.memory(gpu="t4", batch=batch).fits for batch in (largest, largest + 1)] == [True, False]


SUM = """
import sys
import tensorflow as tf

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n([tf.reduce_sum(tf.sin(factor * x)) for factor in range(1, 7)])
    return tape.gradient(y, x)

step(tf.ones([64, 256]))
for batch in map(int, sys.argv[1:]):
    graph = step.get_concrete_function(tf.TensorSpec([batch, 256])).graph
    print(sum(op.type == "AddN" and op.outputs[0].shape.rank == 2 for op in graph.get_operations()))
"""


@pytest.mark.usefixtures("forked")
def test_gradients_are_summed_early_where_the_tape_does_so(tmp_path: Path, run_in_tensorflow: Run) -> None:
    script = tmp_path / "model.py"
    script.write_text(SUM)
    batches = 26_214, 26_215  # of five gradients one KiB less than 128 MiB, and as much more
    sums = run_in_tensorflow(SUM, "64", *map(str, batches)).stdout.split()
    assert sums == ["1", "1", "2"]
    memory = place(str(script), Settings(machine=Machine(gpus=1))).memory("step")
    assert [len(memory.batches.find_early_sums(batch)) for batch in batches] == [0, 1]


@pytest.mark.usefixtures("forked")
def test_what_xla_compiles_whole_is_told_for_its_own_batch(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    text = (
        "import tensorflow as tf",
        "@tf.function(jit_compile=True)",
        "def step(x): return x @ x",
        "step(tf.ones([8, 8]))",
    )
    script.write_text("\n".join(text))
    result = place(str(script), Settings(machine=Machine(gpus=1)))
    told = str(result.memory(batch=128))
    assert "batch: XLA compiles the function whole, so all is that of the program's own batch; --no-jit follows" in told


TRAINED = """
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(4)])
model.compile("adam", "mse", jit_compile=True)
model.fit(tf.ones([8, 16]), tf.ones([8, 4]), batch_size=8, verbose=0)
optimizer = tf.keras.optimizers.Adam()
optimizer.build(model.trainable_variables)

@tf.function(jit_compile=True)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

step(tf.ones([8, 16]))
"""


@pytest.mark.usefixtures("forked")
def test_the_variables_of_what_xla_compiles_are_told_apart(tmp_path: Path) -> None:
    """Weights: 256 x 16, 256, 4 x 256 and 4 floats; Adam has two of each, and no two variables are the same."""
    script = tmp_path / "model.py"
    script.write_text(TRAINED)
    result = place(str(script), Settings(machine=Machine(gpus=1)))
    for name in ("step", "fit, train step"):
        memory = result.memory(name)
        (gpu,) = (one for one in memory.to_json()["devices"] if one["device"].endswith("GPU:0"))
        kinds = {one["kind"]: one for one in gpu["kinds"]}
        weights = 16_384 + 1_024 + 4_096 + 256
        assert kinds["variable"]["bytes"] == weights
        assert 2 * weights < kinds["state"]["bytes"] <= 2 * weights + 4 * 256  # a counter and rates, sums of the loss
        assert len({one["tensor"] for one in gpu["holders"]}) == len(gpu["holders"])
        drawn = {band.title for one in choose_bands(memory.schedule, memory.uses) for band in one.bands}
        assert {WEIGHTS, STATE} < drawn


READ_BY_ROWS = """
import tensorflow as tf

table = tf.Variable(tf.ones([1000, 16]))

@tf.function
def step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
    table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))

step(tf.range(5))
"""


@pytest.mark.usefixtures("forked")
def test_the_copy_that_an_update_makes_is_of_the_kind_of_its_variable(tmp_path: Path) -> None:
    """What is read by rows is copied before an update."""
    script = tmp_path / "model.py"
    script.write_text(READ_BY_ROWS)
    memory = place(str(script), Settings(machine=Machine(gpus=1))).memory("step")
    (gpu,) = (one for one in memory.to_json()["devices"] if one["device"].endswith("GPU:0"))
    kinds, size = {one["kind"]: one["bytes"] for one in gpu["kinds"]}, 1000 * 16 * 4
    assert kinds["variable"] == 2 * size
    assert "state" not in kinds


def list_large(log: AllocationLog, function: str | None) -> list[int]:
    """List the bytes that were allocated before the first call of a function, but for small ones."""
    return [one.size for one in log.before(function) if one.size >= SEEN]


def follow_log(lines: list[str], alive: dict[str, int]) -> int:
    """Follow the log of tensors; return the most bytes alive at once."""
    now = peak = sum(alive.values())
    for line in lines:
        found = RECORD.search(line)
        if found is None:
            continue
        if found[1] == "TensorDeallocation":
            now -= alive.pop(found[2], 0)
        elif found[2] not in alive:
            size = BYTES.search(line)
            now += alive.setdefault(found[2], int(size[1]) if size else 0)
        peak = max(peak, now)
    return peak
