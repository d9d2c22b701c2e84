"""One training step of each of ten models of keras.applications, without weights, on small inputs."""

import numpy as np
import tensorflow as tf
from keras import applications

tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # it comes after the placement

MODELS = {
    "MobileNet": 32, "MobileNetV2": 32, "MobileNetV3Small": 32, "ResNet50": 32, "ResNet50V2": 32, "VGG16": 32,
    "EfficientNetB0": 32, "EfficientNetV2B0": 32, "DenseNet121": 32, "Xception": 71,
}  # fmt: skip

for name, size in MODELS.items():
    tf.keras.backend.clear_session()
    model = getattr(applications, name)(weights=None, input_shape=(size, size, 3), classes=3)

    def step(x, y, model=model):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    step.__name__ = name
    with tf.device("/CPU:0"):
        images, labels = tf.constant(np.ones((1, size, size, 3), "float32")), tf.constant([1])
    try:
        tf.function(step, autograph=False)(images, labels)
    except tf.errors.OpError as error:
        print(name, "failed:", type(error).__name__)
