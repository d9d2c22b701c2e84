"""Control flow, version 2: branches, loops, maps and scans, nested, with gradients, arrays and autograph."""

import contextlib

import tensorflow as tf

GPUS = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
FIRST, LAST = (GPUS[0], GPUS[-1]) if GPUS else ("/CPU:0", "/CPU:0")


def attempt(function, *arguments):
    with contextlib.suppress(tf.errors.OpError):
        return function(*arguments)


with tf.device(LAST):
    variable = tf.Variable(2.0)


@tf.function
def branches(x):
    with tf.device(LAST):
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * variable, lambda: tf.strings.to_number("1.0") + x)
    z = tf.switch_case(tf.cast(y[0], tf.int32), [lambda: y, lambda: x, lambda: y + x])
    return tf.case([(z[0] > 0.0, lambda: z)], default=lambda: -z), tf.cond(x[0] > 0.0, lambda: "a", lambda: "b")


@tf.function
def loops(x):
    def body(i, a, text):
        with tf.device(LAST):
            b = a * 2.0
        variable.assign_add(tf.reduce_sum(b))
        return i + 1, b + variable, text + "x"

    i, a, text = tf.while_loop(lambda i, *_: i < 3, body, [0, x, tf.constant("a")], [tf.TensorShape([]), x.shape, None])
    return i, a, text


@tf.function
def nested_loops(x):
    for i in tf.range(3):
        for j in tf.range(i):
            x = x + tf.cast(j, tf.float32) if x[0] > 0.0 else x - 1.0
            if tf.reduce_sum(x) > 100.0:
                break
    while tf.reduce_sum(x) < 10.0:
        with tf.device(FIRST):
            x = x * 2.0
    return x


@tf.function
def loop_gradients(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in tf.range(3):
            y = tf.cond(tf.reduce_sum(y) > 1.0, lambda y=y: tf.sin(y) * variable, lambda y=y: y + 1.0)
    return tape.gradient(y, [x, variable])


@tf.function
def arrays(x):
    array = tf.TensorArray(tf.float32, 3)
    words = tf.TensorArray(tf.string, 3)
    for i in tf.range(3):
        array = array.write(i, x * tf.cast(i, tf.float32))
        words = words.write(i, tf.strings.as_string(i))
    return array.stack(), words.stack(), tf.gradients(array.stack(), x)


@tf.function
def maps(x):
    return (
        tf.map_fn(lambda a: a * 2.0, x), tf.scan(lambda a, b: a + b, x), tf.vectorized_map(lambda a: a * variable, x),
        tf.map_fn(tf.strings.as_string, x, fn_output_signature=tf.string), tf.foldl(lambda a, b: a + b, x),
        tf.gradients(tf.map_fn(lambda a: tf.sin(a) * variable, x), x),
    )  # fmt: skip


@tf.function
def calls_in_branches(x):
    @tf.function
    def layer(y):
        with tf.device(FIRST):
            return tf.nn.relu(y * variable)

    for _ in range(2):
        x = tf.cond(tf.reduce_sum(x) > 0.0, lambda x=x: layer(x), lambda x=x: layer(-x))
    return x, tf.gradients(x, variable.value())


for device in ("/CPU:0", FIRST):
    with tf.device(device):
        x = tf.identity(tf.ones([3]))
    for function in (branches, loops, nested_loops, loop_gradients, arrays, maps, calls_in_branches):
        attempt(function, x)
