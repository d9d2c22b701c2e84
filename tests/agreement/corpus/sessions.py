"""Sessions: both kinds of variables and of control flow, colocation, device functions, feeds, extension."""

import contextlib

import tensorflow as tf
from tensorflow.python.framework import function

v1 = tf.compat.v1
GPUS = [gpu.name[-5:] for gpu in tf.config.list_logical_devices("GPU")]
FIRST, LAST = (GPUS[0], GPUS[-1]) if GPUS else ("CPU:0", "CPU:0")
INLINING = v1.GraphOptions(optimizer_options=v1.OptimizerOptions(do_function_inlining=True))
SOFT = tf.config.get_soft_device_placement()


def session(build, control_flow_v2=False, **config):
    (v1.enable_control_flow_v2 if control_flow_v2 else v1.disable_control_flow_v2)()
    config = v1.ConfigProto(allow_soft_placement=SOFT, **config)
    with tf.Graph().as_default(), tf.name_scope(build.__name__), v1.Session(config=config) as running:
        for fetches in build():
            with contextlib.suppress(tf.errors.OpError):
                running.run(v1.global_variables_initializer())
                running.run(fetches)


def training(use_resource):
    x = v1.placeholder_with_default(tf.ones([2, 2]), [None, 2])
    with tf.device(FIRST):
        weight = v1.get_variable("weight", [2, 2], use_resource=use_resource)
    with v1.colocate_with(weight):
        slot = v1.get_variable("slot", [2, 2], use_resource=use_resource, initializer=v1.zeros_initializer())
    with tf.device(LAST):
        loss = tf.reduce_sum(tf.matmul(x, weight + slot))
    step = v1.train.get_or_create_global_step()
    yield v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step), loss
    yield v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)


def reference_variables():
    yield from training(False)


def resource_variables():
    yield from training(True)


def control_flow():
    x = v1.placeholder_with_default(tf.ones([2]), [2])
    v = v1.get_variable("v", [2])
    with tf.device(LAST):
        y = v1.cond(tf.reduce_sum(x) > 0.0, lambda: x + v, lambda: x - 1.0)
    loop = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) * v), [tf.constant(0), y])[1]
    yield loop, v1.gradients(loop, [v])


def device_functions():
    with v1.device(lambda op: f"/{LAST}" if op.type == "MatMul" else "/CPU:0"):
        a = tf.ones([2, 2])
        b = tf.matmul(a, a)
    with v1.device(v1.train.replica_device_setter(ps_tasks=0)), tf.device(FIRST):
        v = v1.get_variable("w", [2])
    yield b, v + 1.0


def extended():
    v = v1.get_variable("v", [2])
    with tf.device(LAST):
        a = v + 1.0
    yield a
    with tf.device(FIRST):
        w = v1.get_variable("w", [2])
    yield a + w
    yield tf.shape(a + w), v1.assign(v, a)


def pulled_elsewhere():
    """What a run placed stays, whatever the nodes added later ask of their groups."""
    v = v1.get_variable("v", [2], use_resource=True)
    r = v1.get_variable("r", [2], use_resource=False)
    noise = tf.random.uniform([2])
    number = tf.constant([1.0, 2.0])
    yield v + r + noise + number
    with tf.device(LAST):
        moved = [v.assign([1.0, 2.0]), v1.assign(r, [1.0, 2.0])]
        text = tf.strings.as_string(noise * number)
    yield moved, text
    with v1.colocate_with(noise), tf.device("/CPU:0"):
        late = tf.sin(number)
    with tf.device(FIRST):
        w = v1.get_variable("w", [2], use_resource=True)
    yield late, v1.assign(w, v), w


def feeds_and_fetches():
    x = v1.placeholder(tf.float32, [2])
    yield x * 2.0, tf.strings.as_string(x), tf.shape(x)


def calls():
    @tf.function
    def inner(x):
        with tf.device(LAST):
            return tf.sin(x) + tf.constant(1.0)

    v = v1.get_variable("v", [2], use_resource=True)
    y = inner(v)
    yield y, v1.gradients(y, v)


def defuns():
    """Calls of the kind that sessions have had from the first: the function is the op, and may call another."""

    @function.Defun(tf.float32, tf.float32)
    def multiply(a, b):
        with tf.device(LAST):
            return tf.matmul(a, b)

    @function.Defun(tf.float32)
    def square(a):
        return multiply(a, a) + tf.constant(1.0)

    x = v1.placeholder_with_default(tf.ones([2, 2]), [2, 2])
    with tf.device(FIRST):
        yield square(x), multiply(x, square(x))


def datasets():
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(6).map(lambda a: a * 2).batch(2))
    yield iterator.initializer
    yield iterator.get_next()


for build in (
    reference_variables,
    resource_variables,
    control_flow,
    device_functions,
    extended,
    pulled_elsewhere,
    feeds_and_fetches,
    datasets,
):
    session(build)
for build in (control_flow, calls, defuns):
    session(build, control_flow_v2=True)
    session(build, control_flow_v2=True, graph_options=INLINING)
