"""Keras under MultiWorkerMirroredStrategy as the only worker of its cluster: its metrics are reduced by eager ops."""

# machines: cpu:1; cpu:1,gpu:2

import json
import os

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["here:2222"]}, "task": {"type": "worker", "index": 0}})
import tensorflow as tf

with tf.distribute.MultiWorkerMirroredStrategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(2, activation="relu")])
    model.compile("sgd", "mse", metrics=["mae"])
model.fit(tf.ones([8, 4]), tf.ones([8, 2]), batch_size=4, epochs=2, verbose=0)
model.evaluate(tf.ones([8, 4]), tf.ones([8, 2]), batch_size=4, verbose=0)
