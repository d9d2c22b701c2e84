import tensorflow as tf

import simplace

cpu = tf.config.list_physical_devices("CPU")[0]  # two logical CPUs stand for a CPU and a GPU
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

with tf.device("CPU:1"):
    weight = tf.Variable(tf.random.normal([256, 256]))


@tf.function
def train_step(x, name):
    with tf.device("CPU:1"):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ weight)))
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
    return loss, tf.strings.join([name, tf.strings.as_string(loss)], ": ")


with simplace.watch() as watched:
    for _ in range(100):
        loss, told = train_step(tf.random.normal([1024, 256]), tf.constant("loss"))

print(watched.result)
print(watched.result.explain("StringJoin"))
