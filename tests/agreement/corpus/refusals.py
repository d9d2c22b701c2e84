"""What TensorFlow refuses: the status, and a message that says what TensorFlow's says."""

import contextlib

import tensorflow as tf

v1 = tf.compat.v1
SOFT = tf.config.get_soft_device_placement()
GPUS = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]


def attempt(function, *arguments):
    with contextlib.suppress(tf.errors.OpError):
        return function(*arguments)


def session(build):
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(allow_soft_placement=SOFT)) as running:
        with tf.name_scope(build.__name__):
            build()
        attempt(running._extend_graph)


@tf.function
def missing_device(x):
    with tf.device("/GPU:9"):
        return tf.matmul(x, x) + 1.0


@tf.function
def missing_kernel(x):
    with tf.device("/GPU:0"):
        return tf.strings.as_string(x)


@tf.function
def missing_task(x):
    with tf.device("/job:worker/task:1"):
        return x + 1.0


@tf.function
def colocation_conflict(x):
    with tf.device("/CPU:0"):
        a = x + 1.0
    with v1.colocate_with(a), tf.device("/GPU:0"):
        return a * 2.0


@tf.function
def resource_conflict(x):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[])
    with tf.device("/GPU:0"):
        tf.raw_ops.AssignVariableOp(resource=handle, value=x)
    with tf.device("/CPU:0"):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


@tf.function
def resource_without_kernel(x):
    table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.float32)
    with tf.device("/GPU:0"):
        return tf.raw_ops.LookupTableFindV2(table_handle=table, keys=["a"], default_value=x)


@tf.function
def op_without_kernel(x):
    return tf.raw_ops.Prelinearize(input=x)


def reference_conflict():
    with tf.device("/GPU:0"):
        v = tf.raw_ops.VariableV2(shape=[2], dtype=tf.string)
        v1.assign(v, ["a", "b"])


def malformed_device():
    a = tf.constant(1.0)
    a.op._set_device_from_string("nonsense")


def two_variables():
    with tf.device("/CPU:0"):
        v = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)
    with tf.device("/GPU:0"):
        w = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)
    tf.raw_ops.RefSelect(index=0, inputs=[v, w])


def group_conflict():
    with tf.device("/CPU:0"):
        a = tf.ones([2])
    with v1.colocate_with(a), tf.device("/GPU:0"):
        tf.matmul([[1.0]], [[1.0]])


MATRIX, SCALAR = tf.constant([[1.0]]), tf.constant(1.0)
for scope in (None, "/CPU:0", "/GPU:0", "/GPU:9"):
    with tf.device(scope):
        for function in (missing_device, missing_kernel, missing_task, colocation_conflict):
            attempt(function, MATRIX)
        for function in (resource_conflict, resource_without_kernel, op_without_kernel):
            attempt(function, SCALAR)
for build in (reference_conflict, malformed_device, two_variables, group_conflict):
    session(build)
