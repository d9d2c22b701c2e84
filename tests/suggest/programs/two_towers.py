"""Two towers that do not need each other, both on GPU:0, since nothing asks for another GPU."""

import tensorflow as tf

WIDTH = 2048
queries = [tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.02)) for _ in range(3)]
answers = [tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.02)) for _ in range(3)]


@tf.function
def score(query, answer):
    a0 = tf.nn.relu(tf.matmul(query, queries[0]))
    a1 = tf.nn.relu(tf.matmul(a0, queries[1]))
    a2 = tf.nn.relu(tf.matmul(a1, queries[2]))
    b0 = tf.nn.relu(tf.matmul(answer, answers[0]))
    b1 = tf.nn.relu(tf.matmul(b0, answers[1]))
    b2 = tf.nn.relu(tf.matmul(b1, answers[2]))
    return tf.reduce_sum(a2 * b2, axis=1)


print(score(tf.ones([1024, WIDTH]), tf.ones([1024, WIDTH])).shape)
