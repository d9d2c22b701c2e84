"""A chain of layers on two GPUs by turns: each layer waits for the one before, and for a copy."""

import tensorflow as tf

weights = []
for i in range(4):
    with tf.device(f"/GPU:{i % 2}"):
        weights.append(tf.Variable(tf.random.normal([512, 512], stddev=0.05), name=f"w{i}"))


@tf.function
def forward(x):
    with tf.device("/GPU:0"):
        x = tf.nn.relu(tf.matmul(x, weights[0]))
    with tf.device("/GPU:1"):
        x = tf.nn.relu(tf.matmul(x, weights[1]))
    with tf.device("/GPU:0"):
        x = tf.nn.relu(tf.matmul(x, weights[2]))
    with tf.device("/GPU:1"):
        return tf.nn.relu(tf.matmul(x, weights[3]))


print(forward(tf.ones([256, 512])).shape)
