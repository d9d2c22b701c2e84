"""Small programs whose placer inputs TensorFlow and simplace must agree on."""

import contextlib
import os
import random
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function as defun
from tensorflow.python.ops import cond as cond_v1
from tensorflow.python.ops import while_loop as while_v1

v1 = tf.compat.v1


def case_plain():
    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y = x + 1.0
        return tf.matmul(y, y), y

    f(tf.ones([2, 2]))


def case_nested_functions():
    @tf.function
    def inner(x):
        with tf.device("/CPU:2"):
            y = tf.sin(x)
        with tf.device("/job:localhost/device:CPU:1"):
            z = tf.cos(x)
        return y + tf.constant(2.0), z

    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y, _ = inner(x)
        with tf.device("/job:localhost"):
            w, z = inner(y)
        return w * 2.0, z

    f(tf.ones([2, 2]))
    with tf.device("/CPU:2"):
        f(tf.ones([2, 2]))


def case_call_without_inputs():
    @tf.function
    def inner():
        return tf.constant(2.0) * tf.random.uniform([])

    @tf.function
    def middle():
        with tf.control_dependencies([tf.print("middle")]):
            return inner()

    @tf.function
    def f():
        with tf.device("/CPU:1"):
            a = inner()
        return middle() + a

    f()


def case_side_effects():
    v = tf.Variable(1.0)
    with tf.device("/CPU:1"):
        w = tf.Variable(2.0)

    @tf.function
    def inner(x):
        v.assign(x)
        w.assign_add(v)
        tf.print("x", x)
        return w.read_value()

    @tf.function
    def f(x):
        a = inner(x)
        v.assign_sub(1.0)
        tf.debugging.assert_greater(a, -100.0)
        b = inner(a)
        inner(b)
        return v + 1.0

    f(tf.constant(2.0))


def case_results():
    @tf.function
    def f(x, i, s, flag):
        with tf.device("/CPU:2"):
            y = tf.identity(x)
            z = tf.strings.length(s)
        with tf.device("/CPU:7"):
            absent = x + 1.0
        with tf.device("/device:CPU:*"):
            partial = x + 2.0
        return x, i, s, flag, y, tf.identity(tf.identity(z)), absent, partial, tf.identity(absent)

    f(tf.ones([2]), tf.constant(1), tf.constant("a"), tf.constant(True))
    with tf.device("/CPU:1"):
        g = tf.ones([2])
        f(g, tf.constant(1), tf.constant("a"), tf.constant(True))


def case_cond():
    v = tf.Variable(1.0)

    @tf.function
    def f(x, p):
        if p:
            v.assign_add(x)
            with tf.device("/CPU:1"):
                r = x * 2.0
        else:
            r = x - 1.0
        return r + v

    f(tf.constant(2.0), tf.constant(True))


def case_cond_on_devices():
    with tf.device("/CPU:1"):
        v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        return x + tf.cond(x > 0.0, lambda: v + 1.0, lambda: tf.constant(3.0))

    @tf.function
    def f(x, p):
        with tf.device("/CPU:1"):
            y = x + 1.0
        with tf.device("/CPU:2"):
            z = tf.cond(p, lambda: inner(y) * x, lambda: tf.constant(0.0))
            w = tf.cond(p, lambda: (tf.print("no outputs"), 1)[1], lambda: 2)
        return z, w

    f(tf.constant(2.0), tf.constant(True))


def case_switch_case():
    v = tf.Variable(1.0)

    @tf.function
    def f(i, x):
        with tf.device("/CPU:1"):
            y = x * 2.0
        a = tf.switch_case(i, [lambda: y, lambda: y + x, lambda: v.assign_add(y)], default=lambda: tf.constant(0.0))
        with tf.device("/CPU:2"):
            b = tf.switch_case(i, [lambda: (a, y), lambda: (x, a)])
        return a, b

    f(tf.constant(1), tf.constant(2.0))


def case_while_loop():
    v = tf.Variable(1.0)

    @tf.function
    def f(n, x):
        with tf.device("/CPU:1"):
            y = x + 1.0
        i = tf.constant(0)
        while i < n:
            i += 1
            y = y * 2.0 + v
            if y > 10.0:
                y -= 5.0
                v.assign_add(1.0)
            with tf.device("/CPU:2"):
                x = tf.sin(x) + tf.cast(i, tf.float32)
        return x, y

    f(tf.constant(3), tf.constant(2.0))


def case_nested_loops():
    @tf.function
    def f(n):
        total = tf.constant(0.0)
        with tf.device("/CPU:1"):
            for i in tf.range(n):
                for j in tf.range(i):
                    if j > 1:
                        break
                    total += tf.cast(j, tf.float32)
                tf.print(i)
        return total

    f(tf.constant(3))


def case_while_after_control():
    v = tf.Variable(0)

    @tf.function
    def f(n):
        v.assign(n)
        r = tf.while_loop(lambda i: i < v, lambda i: (v.assign_sub(1) + i,), [tf.constant(0)], parallel_iterations=1)
        v.assign(5)
        return r

    f(tf.constant(3))


def case_tensor_array():
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            ta = ta.write(i, tf.cast(i, tf.float32))
        return ta.stack()

    f(tf.constant(3))


def case_gradients():
    with tf.device("/CPU:1"):
        v = tf.Variable([[1.0]])

    @tf.function
    def inner(x):
        return tf.matmul(x, v)

    @tf.function
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
            for _ in tf.range(n):
                y = tf.tanh(y) * tf.reduce_sum(x)
            if tf.reduce_sum(y) > 0.0:
                y = y * inner(x)
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, [x, v])

    f(tf.ones([2, 1]), tf.constant(3))


def case_gradient_of_call():
    v = tf.Variable([[1.0]])

    @tf.function
    def inner(x):
        with tf.device("/CPU:2"):
            return tf.matmul(x, v)

    with tf.GradientTape() as tape:
        y = inner(tf.ones([2, 1]))
    tape.gradient(y, v)


def case_map_fn():
    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y = tf.map_fn(lambda e: tf.sin(e) * 2.0, x)
        return tf.scan(lambda a, e: a + e, y), tf.vectorized_map(lambda e: e * e, x)

    f(tf.ones([4]))


def case_custom_gradient():
    @tf.custom_gradient
    def op(x):
        return x * 2.0, lambda g: g * 3.0

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        return tape.gradient(y, x)

    @tf.function
    def h(x):
        return tf.recompute_grad(lambda z: tf.sin(z))(x)

    f(tf.constant(1.0))
    h(tf.constant(1.0))


def case_py_function():
    @tf.function
    def f(x):
        y = tf.py_function(lambda z: z * 2, [x], tf.float32)
        with tf.device("/CPU:1"):
            return tf.numpy_function(lambda z: z, [y], tf.float32), y

    f(tf.constant(1.0))


def case_jit_inside():
    @tf.function(jit_compile=True)
    def inner(x):
        return x * 2.0

    @tf.function
    def f(x):
        if x > 0.0:
            return inner(x) + 1.0
        return inner(x)

    f(tf.constant(1.0))


def case_noinline():
    @tf.function(experimental_attributes={"_noinline": True})
    def inner(x):
        return x * 2.0

    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            return inner(x) + 1.0

    f(tf.constant(1.0))


def case_noinline_resource():
    with tf.device("/CPU:1"):
        v = tf.Variable(1.0)
        w = tf.Variable(1.0)

    @tf.function(experimental_attributes={"_noinline": True})
    def inner(handle, x):
        return handle, handle, x + 1.0

    @tf.function
    def f(x):
        h, _, y = inner(v.handle, x)
        _, h3, y = inner(w.handle, y)
        return tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) + y, h3

    f(tf.constant(1.0))


def case_resource_results():
    v = tf.Variable(1.0)

    @tf.function
    def inner(h):
        return h

    @tf.function
    def f(x):
        h = inner(v.handle)
        return tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) + x, h

    f(tf.constant(1.0))


def case_accumulate():
    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            a = tf.math.accumulate_n([x, x + 1.0, x * 2.0])
        b = tf.raw_ops.AccumulateNV2(inputs=[x, a], shape=[2])
        with tf.control_dependencies([b]):
            c = tf.raw_ops.ParallelConcat(values=[[x], [a]], shape=[2, 2])
        return tf.reduce_sum(c) + a

    f(tf.ones([2]))


def case_colocation():
    @tf.function
    def inner(x):
        with tf.device("/CPU:1"):
            y = tf.sin(x)
        with v1.colocate_with(y):
            z = y + 1.0
        with v1.colocate_with(x):
            w = x + 1.0
        return z, w

    @tf.function
    def f(x):
        a, b = inner(x)
        with v1.colocate_with(a):
            c = tf.cond(x > 0.0, lambda: b, lambda: a)
        return c, a, tf.identity(b)

    f(tf.constant(1.0))


def case_strings():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2])), -1
    )

    @tf.function
    def f(s):
        parts = tf.strings.split(s, ",")
        return table.lookup(parts.values), tf.strings.join([s, "x"]), parts.row_splits

    f(tf.constant(["a,b", "c"]))


def case_many_consumers():
    @tf.function
    def inner(x):
        return [x + float(k) for k in range(12)]

    @tf.function
    def f(x):
        ys = inner(x)
        v = tf.add_n(ys + inner(ys[3]))
        with tf.control_dependencies(ys):
            return v * 2.0

    f(tf.constant(1.0))


def case_unused_ops():
    @tf.function
    def f(x):
        tf.matmul(x, x)
        tf.constant(1)
        return

    f(tf.ones([2, 2]))


def case_dataset_inside():
    @tf.function
    def f(n):
        total = tf.constant(0, tf.int64)
        for e in tf.data.Dataset.range(5).map(lambda a: a * 2):
            total += e
        return total + n

    f(tf.constant(3, tf.int64))


def case_iterator_argument():
    ds = tf.data.Dataset.range(5).batch(2)

    @tf.function
    def f(it):
        return next(it) + tf.reduce_sum(next(it))

    f(iter(ds))


def case_keras_fit():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 2), "f"), np.ones((4, 1), "f"), epochs=1, verbose=0)
    model.predict(np.ones((4, 2), "f"), verbose=0)


def case_keras_lstm():
    model = tf.keras.Sequential([tf.keras.layers.Embedding(10, 4), tf.keras.layers.LSTM(3), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 5), "i"), np.ones((4, 1), "f"), epochs=1, verbose=0)


def case_keras_conv():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(2, 3, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.5),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile(tf.keras.optimizers.RMSprop(), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(np.ones((4, 8, 8, 1), "f"), np.zeros((4,), "i"), epochs=1, verbose=0)


def case_mirrored():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * x)
            (g,) = tape.gradient(loss, [v])
            g = tf.distribute.get_replica_context().all_reduce("sum", g)
            v.assign_sub(g)
            return loss

        return strategy.reduce("sum", strategy.run(replica, args=(x,)), axis=None)

    step(tf.ones([2]))


def case_v1_wrap():
    def f(x):
        with tf.device("/CPU:1"):
            y = v1.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x - 1.0)
        z = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [tf.constant(0), y])
        return z[1]

    v1.wrap_function(f, [tf.TensorSpec([2], tf.float32)])(tf.ones([2]))


def session(build, control_flow_v2=True, runs=1, **config):
    with tf.Graph().as_default() as graph:
        (v1.enable_control_flow_v2 if control_flow_v2 else v1.disable_control_flow_v2)()
        try:
            fetches = build()
            init = v1.global_variables_initializer()
            with v1.Session(
                config=v1.ConfigProto(allow_soft_placement=True, device_count={"CPU": 3}, **config)
            ) as sess:
                sess.run(init)
                for fetch in fetches[:runs]:
                    sess.run(fetch)
        finally:
            v1.enable_control_flow_v2()
    return graph


def case_session_v1():
    def build():
        with tf.device("/CPU:1"):
            v = v1.get_variable("v", [2], use_resource=False)
        x = v1.placeholder_with_default(tf.ones([2]), [2])
        with tf.device("/CPU:2"):
            y = v1.cond(tf.reduce_sum(x) > 0, lambda: v + 1.0, lambda: x - 1.0)
        _, z = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0 + v), [tf.constant(0), y])
        loss = tf.reduce_sum(z)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            return [tf.identity(loss)]

    session(build, control_flow_v2=False)


def case_session_v2_control_flow():
    def build():
        v = v1.get_variable("v", [2], use_resource=True)
        x = v1.placeholder_with_default(tf.ones([2]), [2])
        with tf.device("/CPU:2"):
            y = v1.cond(tf.reduce_sum(x) > 0, lambda: v + 1.0, lambda: x - 1.0)
        _, z = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0 + v), [tf.constant(0), y])
        w = tf.switch_case(tf.constant(1), [lambda: x, lambda: z])
        loss = tf.reduce_sum(z) + tf.reduce_sum(w)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            return [tf.identity(loss)]

    session(build)


def case_session_call():
    @tf.function
    def inner(x):
        with tf.device("/CPU:1"):
            return tf.sin(x) + tf.constant(1.0)

    @defun.Defun(tf.float32, func_name="old")
    def old(x):
        return x * 2.0 + tf.constant(1.0)

    def build():
        v = v1.get_variable("v", [2], use_resource=True)
        with tf.device("/CPU:1"):
            y = inner(v) + old(v)
        return [tf.reduce_sum(y), v1.gradients(y, v)]

    session(build, runs=2)


def case_defun_in_function():
    @defun.Defun(tf.float32, tf.int32, func_name="old_two")
    def old(x, i):
        with tf.control_dependencies([tf.constant(3.0)]):
            y = x * 2.0 + tf.constant(1.0)
        return y, i

    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y, i = old(x, tf.constant(1))
        z, _ = old(y, i)
        return z

    f(tf.constant(1.0))


def case_session_ref_loop():
    def build():
        v = v1.get_variable("v", [], use_resource=False, initializer=v1.zeros_initializer())
        i = v1.while_loop(lambda i: i < 3, lambda i: v1.assign_add(v, 1.0) * 0.0 + i + 1.0, [tf.constant(0.0)])
        with v1.colocate_with(v):
            j = tf.math.accumulate_n([i, i + 1.0])
        return [i + j]

    session(build, control_flow_v2=False)


def case_list_arguments():
    @tf.function
    def f(xs):
        a = tf.concat(xs, 0)
        b, c = tf.split(a, 2)
        u, idx = tf.unique(a)
        outs = tf.raw_ops.IdentityN(input=[b, c, idx])
        d = tf.stack([outs[1], outs[0]])
        s, _, _ = tf.meshgrid(b, c, u)
        return tf.unstack(d), outs[2], s + 0.0, tf.dynamic_partition(a, idx, 3)

    f([tf.ones([2]), tf.zeros([2])])


def case_random_and_rng():
    g = tf.random.Generator.from_seed(1)

    @tf.function
    def f():
        return g.normal([2]), tf.random.stateless_uniform([2], [1, 2]), tf.random.normal([2])

    f()


def case_scoped_variables_in_function():
    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            h = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="made")
            tf.raw_ops.AssignVariableOp(resource=h, value=x)
        with tf.device("/CPU:2"):
            return tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32), h

    f(tf.constant(1.0))


def case_while_carries_changed_resource():
    a = tf.Variable(1.0)
    b = tf.Variable(2.0)

    @tf.function
    def f(n):
        def body(i, h, k):
            return i + 1, k, h

        def cond(i, h, k):
            return tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) + tf.cast(i, tf.float32) < 5.0

        _, h, _ = tf.while_loop(cond, body, [tf.constant(0), a.handle, b.handle])
        return tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) + tf.cast(n, tf.float32)

    f(tf.constant(3))


def case_session_extended():
    def build():
        with tf.device("/CPU:1"):
            v = v1.get_variable("v", [2], use_resource=True)
        return [v + 1.0]

    with tf.Graph().as_default():
        (y,) = build()
        init = v1.global_variables_initializer()
        config = v1.ConfigProto(allow_soft_placement=True, device_count={"CPU": 3})
        config.experimental.disable_optimize_for_static_graph = True
        with v1.Session(config=config) as sess:
            sess.run(init)
            sess.run(y)
            z = tf.cond(tf.reduce_sum(y) > 0.0, lambda: y + tf.random.normal([2]), lambda: y)
            sess.run(z)
            sess.run(z + tf.random.uniform([2]))


def case_session_conditional_side_effects():
    def build():
        v = v1.get_variable("v", [], use_resource=True, initializer=v1.zeros_initializer())
        a = tf.cond(v > 0.0, lambda: v.assign_add(1.0), lambda: v.assign_sub(1.0))
        with tf.control_dependencies([a]), tf.device("/CPU:1"):
            b = tf.cond(a > 0.0, lambda: tf.print("then"), lambda: tf.print("else"))
            c = tf.while_loop(lambda i: i < 3, lambda i: tf.cond(i > 1, lambda: i + 2, lambda: i + 1), [tf.constant(0)])
        with tf.control_dependencies([b]):
            return [c[0] + 1]

    session(build)


def case_forward_and_backward_through_calls():
    w = tf.Variable(tf.ones([2, 2]))

    @tf.function
    def layer(x):
        with tf.device("/CPU:1"):
            return tf.nn.relu(tf.matmul(x, w))

    @tf.function
    def model(x):
        for _ in range(3):
            x = layer(x)
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: layer(x), lambda: x)

    @tf.function
    def train(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x))
            g = tape.gradient(loss, w)
            second = tf.reduce_sum(g * g)
        w.assign_sub(0.1 * outer.gradient(second, w))
        return loss

    train(tf.ones([2, 2]))


def case_wide_conditional():
    @tf.function
    def f(xs):
        p = tf.reduce_sum(xs[0]) > 0.0
        ys = tf.cond(p, lambda: [x + 1.0 for x in xs], lambda: [x - 1.0 for x in reversed(xs)])
        with tf.control_dependencies(ys):
            return tf.while_loop(lambda i, *_: i < 2, lambda i, *a: (i + 1, *[b * 2.0 for b in a]), [0, *ys])

    f([tf.ones([]) for _ in range(20)])


def case_accumulate_in_loops_and_calls():
    @tf.function
    def inner(x):
        a = tf.raw_ops.AccumulateNV2(inputs=[x, x + 1.0], shape=[])
        return tf.reduce_sum(tf.raw_ops.ParallelConcat(values=[[x], [a]], shape=[2]))

    @tf.function
    def f(x):
        return inner(x) + tf.raw_ops.AccumulateNV2(inputs=[x], shape=[])

    with contextlib.suppress(tf.errors.InvalidArgumentError):  # inlined too late to be replaced, so without a kernel
        f(tf.constant(1.0))

    def build(parallel):
        def body(i, a):
            return i + 1, tf.raw_ops.AccumulateNV2(inputs=[a, a * 2.0], shape=[])

        start = [tf.constant(0), tf.constant(1.0)]
        _, a = v1.while_loop(lambda i, a: i < 3, body, start, parallel_iterations=parallel)
        return [tf.raw_ops.AccumulateNV2(inputs=[a, a], shape=[])]

    session(lambda: build(10), control_flow_v2=False)
    with contextlib.suppress(tf.errors.InvalidArgumentError):  # the temporary variable belongs to no frame
        session(lambda: build(1), control_flow_v2=False)


def case_saved_model():
    class Model(tf.Module):
        def __init__(self):
            self.v = tf.Variable([[1.0, 2.0]])

        @tf.function(input_signature=[tf.TensorSpec([None, 1])])
        def __call__(self, x):
            with tf.device("/CPU:1"):
                y = tf.matmul(x, self.v)
            return {"a": tf.cond(tf.reduce_sum(y) > 0.0, lambda: y, lambda: -y), "b": y}

    with tempfile.TemporaryDirectory() as folder:
        model = Model()
        tf.saved_model.save(model, folder, signatures=model.__call__)
        loaded = tf.saved_model.load(folder)
        loaded(tf.ones([2, 1]))
        loaded.signatures["serving_default"](tf.ones([2, 1]))


def case_optional_and_ragged():
    @tf.function
    def f(x):
        o = tf.experimental.Optional.from_value(x)
        r = tf.RaggedTensor.from_row_lengths(x, [1, 2])
        o = tf.experimental.Optional.from_value(r.values) if tf.reduce_sum(x) > 0.0 else o
        return tf.reduce_sum(r, axis=1), o.get_value()

    f(tf.ones([3]))


def case_deep_scopes():
    @tf.function
    def leaf(x):
        with tf.device("/job:localhost/replica:0"):
            a = x + 1.0
        with tf.device("/device:CPU:*"):
            return a + x

    @tf.function
    def middle(x):
        with tf.device("/task:0/CPU:2"):
            return leaf(x) + leaf(-x)

    @tf.function
    def f(x):
        with tf.device("/replica:0"):
            y = middle(x)
        with tf.device("/CPU:1"):
            z = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: [middle(a)], [y], maximum_iterations=2)[0]
        return z, tf.identity(y)

    with tf.device("/job:localhost"):
        f(tf.ones([2]))


def case_v1_control_flow_in_calls():
    @tf.function
    def inner(x):
        with tf.device("/CPU:1"):
            y = while_v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1]
        return cond_v1.cond(tf.reduce_sum(y) > 0.0, lambda: y + 1.0, lambda: y - x)

    @tf.function
    def f(x):
        return inner(x) + inner(x * 2.0)

    v1.disable_control_flow_v2()
    try:
        f(tf.ones([2]))
    finally:
        v1.enable_control_flow_v2()


def case_session_dataset():
    def build():
        ds = tf.data.Dataset.range(6).map(lambda a: a * 2).batch(2)
        it = v1.data.make_initializable_iterator(ds)
        n = it.get_next()
        v1.add_to_collection("init", it.initializer)
        with tf.control_dependencies([it.initializer]):
            return [tf.constant(1), n]

    session(build)


def case_first_edges():
    @tf.function
    def inner(x):
        with tf.device("/CPU:2"):
            other = tf.constant(1.0) + 2.0
        with tf.control_dependencies([other]):
            return tf.shape(x), tf.identity(x), tf.rank(x)

    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y = x + 1.0
        s, i, r = inner(y)
        with tf.device("/CPU:2"):
            other = x * 2.0
        with tf.control_dependencies([other]):
            t = tf.size(i)
        u = tf.cond(x[0] > 0.0, lambda: tf.shape(y), lambda: s)
        return s, t, r, tf.shape(tf.identity(i)), tf.identity(u)

    f(tf.ones([2]))


class RandomProgram:
    """Write a program of nested calls, branches, loops, device scopes, groups and side effects from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        with tf.device(f"/CPU:{seed % 3}"):
            self.variable = tf.Variable(1.0)

    def body(self, x, depth):
        tensors = [x]
        for _ in range(self.random.randint(2, 6)):
            with contextlib.ExitStack() as scopes:
                if self.random.random() < 0.4:
                    names = ["/CPU:0", "/CPU:1", "/CPU:2", "/job:localhost", "/device:CPU:*"]
                    scopes.enter_context(tf.device(self.random.choice(names)))
                if self.random.random() < 0.2:
                    scopes.enter_context(tf.control_dependencies([self.random.choice(tensors)]))
                if self.random.random() < 0.1:
                    scopes.enter_context(v1.colocate_with(self.random.choice(tensors)))
                tensors.append(self.step(self.random.choice(tensors), self.random.choice(tensors), depth))
        return tf.add_n(tensors) if self.random.random() < 0.5 else tensors[-1]

    def step(self, a, b, depth):
        plain = [
            lambda: a + b,
            lambda: tf.identity(a),
            lambda: a * tf.constant(2.0),
            lambda: tf.cast(tf.size(a) + tf.rank(b), tf.float32),
            lambda: a + tf.random.uniform([]),
            lambda: a + self.variable,
            lambda: self.variable.assign_add(b) + a,
        ]
        nested = [
            lambda: tf.function(lambda z: self.body(z, depth - 1))(a),
            lambda: tf.cond(a > b, lambda: self.body(a, depth - 1), lambda: self.body(b, depth - 1)),
            lambda: tf.switch_case(tf.cast(a, tf.int32), [lambda: self.body(a, depth - 1), lambda: b]),
            lambda: tf.while_loop(
                lambda i, z: i < 1, lambda i, z: (i + 1, self.body(z + b, depth - 1)), [tf.constant(0), a]
            )[1],
            lambda: tf.grad_pass_through(lambda z: z)(a),
        ]
        return self.random.choice(plain + nested * 2 if depth else plain)()


def case_random():
    for seed in range(int(os.environ.get("RANDOM_FROM", "0")), int(os.environ.get("RANDOM_TO", "6"))):
        program = RandomProgram(seed)
        f = tf.function(lambda x, program=program: program.body(x, 2))
        with tf.device(f"/CPU:{seed % 2}" if seed % 3 else None):
            f(tf.constant(1.0))
