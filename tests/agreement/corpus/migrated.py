"""TensorFlow 1 programs as they are migrated: one changed import, `disable_v2_behavior`, and all else as it was."""

import contextlib
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import data_flow_ops

SOFT = tf.config.get_soft_device_placement()
GPUS = [gpu.name[-5:] for gpu in tf.config.list_logical_devices("GPU")]
FIRST, LAST = (GPUS[0], GPUS[-1]) if GPUS else ("CPU:0", "CPU:0")
tf.disable_v2_behavior()


def weight(name, shape, deviation=0.1):
    """Make a variable on the CPU, as the tutorials with towers do."""
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=deviation))


def dense(x, units, name, activation=tf.nn.relu):
    with tf.variable_scope(name):
        kernel = weight("kernel", [x.get_shape()[-1].value, units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return activation(tf.nn.bias_add(tf.matmul(x, kernel), bias))


def dropout(x, is_training):
    return tf.cond(is_training, lambda: tf.nn.dropout(x, rate=0.5), lambda: x)


def perceptron():
    """Feed placeholders, decay the learning rate, clip gradients, average, write summaries, save."""
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    is_training = tf.placeholder_with_default(True, [], name="is_training")
    with tf.device(FIRST):
        logits = dense(dropout(dense(x, 16, "hidden"), is_training), 4, "logits", tf.identity)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 100, 0.9, staircase=True)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, norm = tf.clip_by_global_norm(gradients, 5.0)
    train = optimizer.apply_gradients(zip(clipped, variables, strict=True), global_step=step)
    average = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies([train]):
        train = average.apply(tf.trainable_variables())
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("norm", norm)
    tf.summary.histogram("logits", logits)
    merged, saver = tf.summary.merge_all(), tf.train.Saver()
    rows = {x: np.ones([5, 8], np.float32), labels: np.zeros([5], np.int64)}
    with session() as running, tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.FileWriter(folder, running.graph)
        running.run(tf.global_variables_initializer())
        summary, _ = running.run([merged, train], rows)
        writer.add_summary(summary, running.run(step))
        writer.close()
        running.run(tf.argmax(logits, 1), {**rows, is_training: False})
        saver.save(running, folder + "/model")


def towers():
    """Share variables between towers, average their gradients on the CPU."""
    optimizer = tf.train.AdamOptimizer(0.01)
    images = tf.random_normal([8, 6, 6, 3])
    gradients = []
    with tf.variable_scope(tf.get_variable_scope()):
        for number, part in enumerate(tf.split(images, 2)):
            with tf.device(GPUS[number % len(GPUS)] if GPUS else "/cpu:0"), tf.name_scope(f"tower_{number}"):
                kernel = weight("kernel", [3, 3, 3, 4])
                bias = weight("bias", [4])
                features = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(part, kernel, [1, 1, 1, 1], "SAME"), bias))
                pooled = tf.nn.max_pool(features, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
                loss = tf.reduce_mean(tf.square(pooled)) + 0.01 * tf.nn.l2_loss(kernel)
                tf.get_variable_scope().reuse_variables()
                tf.add_to_collection("losses", loss)
                gradients.append(optimizer.compute_gradients(loss))
    averaged = [
        (tf.reduce_mean(tf.stack([gradient for gradient, _ in pairs]), 0), pairs[0][1])
        for pairs in zip(*gradients, strict=True)
    ]
    train = optimizer.apply_gradients(averaged)
    with session() as running:
        running.run(tf.global_variables_initializer())
        running.run([train, tf.add_n(tf.get_collection("losses"))])


def recurrent():
    """Unroll a cell of one's own by a loop with tensor arrays."""
    x = tf.placeholder(tf.float32, [None, 7, 3], name="x")
    kernel = tf.get_variable("kernel", [3 + 5, 5])
    steps = tf.transpose(x, [1, 0, 2])
    inputs = tf.TensorArray(tf.float32, 7).unstack(steps)
    outputs = tf.TensorArray(tf.float32, 7)

    def body(time, state, written):
        with tf.device(LAST):
            state = tf.tanh(tf.matmul(tf.concat([inputs.read(time), state], 1), kernel))
        return time + 1, state, written.write(time, state)

    first = tf.zeros([tf.shape(x)[0], 5])
    _, last, written = tf.while_loop(lambda time, *_: time < 7, body, [0, first, outputs])
    loss = tf.reduce_sum(last) + tf.reduce_sum(written.stack())
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    with session() as running:
        running.run(tf.global_variables_initializer())
        running.run([loss, train], {x: np.ones([2, 7, 3], np.float32)})


def queues():
    """Put on one device what is taken on another."""
    queue = tf.FIFOQueue(10, [tf.float32, tf.int64], shapes=[[4], []])
    shuffled = tf.RandomShuffleQueue(10, 1, [tf.float32], shapes=[[4]])
    with tf.device(FIRST):
        row = tf.random_uniform([4])
    put = tf.group(queue.enqueue([row, tf.constant(1, tf.int64)]), shuffled.enqueue_many([tf.stack([row, row])]))
    rows, labels = queue.dequeue()
    with tf.device(LAST):
        result = tf.reduce_sum(rows * shuffled.dequeue())
        area = data_flow_ops.StagingArea([tf.float32], shapes=[[4]])
        stage = area.put([row])
        staged = area.get()
    gathered = tf.ConditionalAccumulator(tf.float32, shape=[4])
    with session() as running:
        running.run([put, queue.size()])
        running.run([result, labels])
        running.run(stage)
        running.run(staged)
        running.run(gathered.apply_grad(row * 2.0, 0))
        running.run(gathered.take_grad(1))
        running.run([queue.close(), shuffled.close()])


def partitioned():
    """Cut a variable in parts and look rows up in all of them."""
    with tf.variable_scope("table", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("rows", [9, 4])
    ids = tf.placeholder(tf.int32, [None], name="ids")
    with tf.device(LAST):
        found = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    with session() as running:
        running.run([tf.global_variables_initializer(), tf.tables_initializer()])
        running.run([found, tf.shape(found)], {ids: [0, 8]})


def monitored():
    """Leave the session to a supervisor with hooks."""
    x = tf.placeholder_with_default(tf.ones([2, 3]), [None, 3])
    loss = tf.reduce_mean(dense(x, 2, "layer"))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=2), tf.train.NanTensorHook(loss, fail_on_nan_loss=False)]
    config = tf.ConfigProto(allow_soft_placement=SOFT)
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks) as running:
        while not running.should_stop():
            running.run([train, loss])


def session():
    return tf.Session(config=tf.ConfigProto(allow_soft_placement=SOFT))


for build in (perceptron, towers, recurrent, queues, partitioned, monitored):
    with tf.Graph().as_default(), tf.name_scope(build.__name__), contextlib.suppress(tf.errors.OpError):
        build()
