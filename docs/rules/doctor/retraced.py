"""The learning rate is a Python number that changes in each iteration."""

import tensorflow as tf

weight = tf.Variable(tf.ones([64, 64]))


@tf.function
def step(x, rate):
    weight.assign_sub(rate * tf.matmul(x, x))


for number in range(6):
    step(tf.ones([64, 64]), 0.1 / (number + 1))
