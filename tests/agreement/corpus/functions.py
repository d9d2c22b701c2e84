"""Functions: scopes, gradients, captures, arguments and results of every kind, ops of every family."""

import contextlib
import tempfile

import tensorflow as tf
from tensorflow.python.eager import cancellation

GPUS = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
SOFT = tf.config.get_soft_device_placement()


def first():
    return tf.device(GPUS[0] if GPUS else "/CPU:0")


def last():
    return tf.device(GPUS[-1] if GPUS else "/CPU:0")


def attempt(function, *arguments):
    """Call a function; one that is refused, or fails when it runs, has been placed all the same."""
    with contextlib.suppress(tf.errors.OpError, NotImplementedError):
        return function(*arguments)


@tf.function
def scopes(x):
    @tf.function
    def inner(y):
        with tf.device("/CPU:0"):
            a = tf.sin(y)
        with first():
            b = tf.cos(y) + a
        return b, tf.constant(2.0) * y

    with last():
        a, b = inner(x)
    return inner(a)[0] + b


@tf.function
def gradients(x):
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            with last():
                y = tf.reduce_sum(tf.nn.relu(tf.matmul(x, x)) ** 2)
        g = tape.gradient(y, x)
    return outer.gradient(g, x), outer.gradient(y, x)


@tf.custom_gradient
def clipped(x):
    with last():
        y = tf.identity(x)
    return y, lambda d: tf.clip_by_value(d, -1.0, 1.0)


@tf.function
def custom_gradient(x):
    return tf.gradients(clipped(x) * 3.0, x)


with first():
    weight = tf.Variable(tf.ones([2, 2]))
with last():
    bias = tf.Variable([1.0, 2.0])
counter = tf.Variable(0, dtype=tf.int64)
flags = tf.Variable([True, False])
with tf.device("/CPU:0"):
    words = tf.Variable(["a", "b"])
    steps = tf.Variable(0)


@tf.function
def variables(x):
    counter.assign_add(1)
    steps.assign_add(1)
    words.assign(tf.strings.join([words, "x"]))
    y = tf.matmul(x, weight) + bias
    weight.assign_sub(0.1 * tf.gradients(y, weight)[0])
    return tf.cond(flags[0], lambda: y + tf.cast(counter, tf.float32), lambda: y * tf.cast(steps, tf.float32))


CONSTANTS = [tf.constant(1, dtype) for dtype in (tf.float32, tf.float64, tf.float16, tf.int32, tf.int64, tf.uint8)]
CONSTANTS += [tf.constant(True), tf.constant("a"), tf.constant(1.0, tf.complex64), tf.constant(1.0, tf.bfloat16)]


@tf.function
def captured_constants():
    return [tf.identity(each) for each in CONSTANTS]


@tf.function
def arguments(f, i, n, b, s, c, d):
    return f + 1.0, i + 1, n + 1, ~b, s + "x", c * c, d / 2.0, tf.shape(f), tf.shape(s), tf.size(i), tf.rank(n)


@tf.function
def composites(ragged, sparse):
    return (
        tf.reduce_sum(ragged, axis=1), tf.sparse.to_dense(sparse), ragged + 1.0,
        tf.sparse.sparse_dense_matmul(sparse, tf.ones([3, 2])),
    )  # fmt: skip


@tf.function
def resource_result(x):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="made")
    with first():
        other = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="other")
    tf.raw_ops.AssignVariableOp(resource=handle, value=x)
    return handle, other


@tf.function
def resource_from_call(x):
    @tf.function(experimental_attributes={"_noinline": True})
    def handle():
        return weight.handle

    return tf.raw_ops.ReadVariableOp(resource=handle(), dtype=tf.float32) + x


@tf.function
def python_code(x):
    return tf.py_function(lambda a: a + 1.0, [x], tf.float32), tf.numpy_function(lambda a: a, [x], tf.float32)


@tf.function
def compiled_inside(x):
    @tf.function(jit_compile=True)
    def inner(y):
        return tf.sin(y) * 2.0

    with last():
        return inner(x) + inner(-x)


@tf.function
def dataset_inside(n):
    total = tf.constant(0, tf.int64)
    for each in tf.data.Dataset.range(4).map(lambda a: a * 2).batch(2):
        total += tf.reduce_sum(each)
    return total + n


iterator = iter(tf.data.Dataset.from_tensor_slices(([1.0, 2.0], ["a", "b"])).repeat().batch(2))


@tf.function
def iterator_argument(it):
    numbers, texts = next(it)
    return numbers * 2.0, texts + "x"


table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
queue = tf.queue.FIFOQueue(4, [tf.float32], [[]])
generator = tf.random.Generator.from_seed(1)


@tf.function
def tables(keys):
    mutable.insert(keys, tf.ones(tf.shape(keys)))
    return table.lookup(keys), mutable.lookup(keys), mutable.size(), mutable.export()


@tf.function
def queues(x):
    queue.enqueue(x)
    return queue.dequeue(), queue.size()


@tf.function
def random_numbers():
    return (
        generator.normal([2]), generator.uniform([2], 0, 3, tf.int32), tf.random.normal([2]), tf.random.uniform([2]),
        tf.random.stateless_normal([2], [1, 2]), tf.random.shuffle(tf.range(3)), tf.random.categorical([[0.5, 0.5]], 2),
        tf.random.stateless_uniform([2], [1, 2], 0, 5, tf.int32), tf.random.gamma([2], 1.0),
    )  # fmt: skip


writer = tf.summary.create_file_writer(tempfile.mkdtemp())


@tf.function
def side_effects(x):
    tf.print("x is", x)
    tf.debugging.assert_all_finite(x, "finite")
    tf.debugging.assert_greater(tf.reduce_sum(x), -1e9)
    with writer.as_default(step=1):
        tf.summary.write("sum", tf.reduce_sum(x))
    return x + 1.0


@tf.function
def images(x):
    y = tf.image.resize(x, [4, 4])
    y = tf.image.random_flip_left_right(tf.image.adjust_brightness(y, 0.1))
    boxes = tf.constant([[0.0, 0.0, 1.0, 1.0]])
    cropped = tf.image.crop_and_resize(x, boxes, [0], [2, 2])
    return (
        y,
        cropped,
        tf.image.rgb_to_grayscale(x),
        tf.image.non_max_suppression(boxes, [0.5], 1),
        tf.image.ssim(x, x, 1.0, 3),
    )


@tf.function
def texts(s):
    parts = tf.strings.split(s, ",")
    return (
        parts.values, parts.row_splits, tf.strings.to_number(tf.strings.as_string(tf.strings.length(s))),
        tf.strings.regex_replace(s, "a", "b"), tf.strings.to_hash_bucket_fast(s, 7), tf.strings.upper(s),
        tf.strings.unicode_decode(s, "UTF-8").flat_values, tf.strings.bytes_split(s),
    )  # fmt: skip


@tf.function
def algebra(x):
    return (
        tf.linalg.inv(x), tf.linalg.det(x), tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True)), tf.linalg.svd(x),
        tf.linalg.qr(x), tf.linalg.eigh(x), tf.linalg.solve(x, x), tf.linalg.expm(x), tf.einsum("ab,bc->ac", x, x),
    )  # fmt: skip


@tf.function
def spectra(x):
    c = tf.signal.fft(tf.cast(x, tf.complex64))
    return tf.signal.ifft(c), tf.signal.rfft(x), tf.signal.stft(x[0], 2, 1), tf.signal.fft2d(c), tf.signal.dct(x)


@tf.function
def many_sparse(sparse):
    return tf.sparse.reduce_sum(sparse), tf.sparse.reorder(sparse).values, tf.sparse.concat(0, [sparse, sparse]).indices


@tf.function
def tensor_lists(x):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2]).unstack(x)
    words = tf.TensorArray(tf.string, 2).write(0, "a").write(1, "b")
    optional = tf.experimental.Optional.from_value((x, "a"))
    return array.read(0), array.stack(), words.stack(), words.size(), optional.get_value()


@tf.function
def colocated(x):
    with first():
        y = x + 1.0
    with tf.compat.v1.colocate_with(y):
        z = y * 2.0
        w = tf.shape(z)
    with tf.control_dependencies([z]):
        return tf.identity(x), w, tf.reshape(z, [-1])


x = tf.ones([2, 2])
for call in (scopes, gradients, custom_gradient, variables, compiled_inside, algebra, spectra, tensor_lists, colocated):
    attempt(call, x)
attempt(captured_constants)
for device in ("/CPU:0", GPUS[0] if GPUS else "/CPU:0", GPUS[-1] if GPUS else "/CPU:0"):
    with tf.device(device):
        given = [tf.constant(1.0), tf.constant(1), tf.constant(1, tf.int64), tf.constant(True)]
        numbers = [tf.constant(1.0, tf.complex64), tf.constant(1.0, tf.float64)]
    attempt(arguments, *given, tf.constant("a"), *numbers)
    attempt(scopes, tf.identity(x))
with last():
    attempt(arguments, *given, tf.constant("a"), *numbers)
attempt(composites, tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.sparse.eye(3))
attempt(resource_result, tf.constant(1.0))
attempt(resource_from_call, x)
attempt(python_code, x)
attempt(dataset_inside, tf.constant(1, tf.int64))
attempt(iterator_argument, iterator)
attempt(tables, tf.constant(["a", "b"]))
attempt(queues, tf.constant(1.0))
attempt(random_numbers)
attempt(side_effects, x)
attempt(images, tf.ones([1, 6, 6, 3]))
attempt(texts, tf.constant(["a,b", "c"]))
manager = cancellation.CancellationManager()
manager.start_cancel()  # placed, then ended before it runs: a GPU kernel of it looks for the driver
with cancellation.CancellationManagerContext(manager):
    attempt(many_sparse, tf.sparse.eye(3))
