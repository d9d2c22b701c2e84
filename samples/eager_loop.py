"""A training loop without tf.function: every op is placed by itself, and what a scope sends to the CPU is copied."""

import tensorflow as tf

STEPS = 5
inputs = tf.random.stateless_normal([64, 32], seed=[1, 2])
targets = tf.reduce_sum(inputs, axis=1, keepdims=True)
weights = tf.Variable(tf.zeros([32, 1]))

for _ in range(STEPS):
    with tf.GradientTape() as tape:
        outputs = tf.matmul(inputs, weights)
        with tf.device("/CPU:0"):
            error = tf.square(outputs - targets)
        loss = tf.reduce_mean(error)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))

print("loss:", tf.strings.as_string(loss, precision=2).numpy().decode())
