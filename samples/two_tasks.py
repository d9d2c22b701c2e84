"""Train on two machines: each GPU has a tower with its part of the batch, the first machine averages and updates."""

import tensorflow as tf

v1 = tf.compat.v1
RATE = 0.1
cluster = tf.train.ClusterSpec({"worker": ["machine-a:2222", "machine-b:2222"]})
server = tf.distribute.Server(cluster, job_name="worker", task_index=0)
towers = [f"/job:worker/task:{task}/device:GPU:{gpu}" for task in range(2) for gpu in range(2)]

with tf.Graph().as_default():
    with tf.device("/job:worker/task:0/device:CPU:0"):
        weight = v1.get_variable("weight", [16, 1])
        batch = v1.placeholder_with_default(tf.ones([64, 16]), [64, 16], name="batch")
        labels = v1.placeholder_with_default(tf.ones([64, 1]), [64, 1], name="labels")
        parts = zip(tf.split(batch, len(towers)), tf.split(labels, len(towers)))
    gradients = []
    for i, (tower, (x, y)) in enumerate(zip(towers, parts)):
        with tf.device(tower), tf.name_scope(f"tower_{i}"):
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - y))
            gradients += v1.gradients(loss, [weight])
    with tf.device("/job:worker/task:0/device:CPU:0"):
        train = v1.assign_sub(weight, RATE * tf.add_n(gradients) / len(towers))
    with v1.Session(server.target, config=v1.ConfigProto(allow_soft_placement=True)) as session:
        session.run(v1.global_variables_initializer())
        session.run(train)
print("one step done")
