"""Training and inference steps as people run them, to be measured on a GPU: `STEPS` maps names to functions of a batch.

Each returns the step and its arguments, as in `memory_models.py`; the arguments of this script are a name and a batch,
of which one step runs. "_fp16" is Keras's mixed precision, "_xla" is `jit_compile=True`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

Step = tuple[Callable[..., Any], tuple[Any, ...]]
keras = tf.keras
layers = keras.layers


def train(model: Any, x: Any, y: Any, loss_of: Callable[[Any, Any], Any], jit: bool, optimizer: Any = None) -> Step:
    """Make a step that trains a Keras model, with Adam unless told otherwise."""
    optimizer = optimizer or keras.optimizers.Adam(1e-4)
    model(x)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=jit or None)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(y, tf.cast(model(x, training=True), tf.float32)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))  # noqa: B905
        return loss

    return step, (x, y)


def make_labels(batch: int, count: int) -> Any:
    """Return random classes."""
    return tf.random.uniform([batch], 0, count, tf.int32)


def cross_entropy(y: Any, logits: Any) -> Any:
    """Return the loss of logits for classes."""
    return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)


def resnet50(batch: int, jit: bool = False) -> Step:
    """Train Keras's ResNet50 on images of 224 x 224, with momentum."""
    model = keras.applications.ResNet50(weights=None, classifier_activation=None)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    return train(model, tf.random.normal([batch, 224, 224, 3]), make_labels(batch, 1000), cross_entropy, jit, optimizer)


def mobilenet(batch: int, jit: bool = False) -> Step:
    """Train Keras's MobileNetV2 on images of 224 x 224."""
    model = keras.applications.MobileNetV2(weights=None, classifier_activation=None)
    return train(model, tf.random.normal([batch, 224, 224, 3]), make_labels(batch, 1000), cross_entropy, jit)


def resnet50_infer(batch: int, jit: bool = False) -> Step:
    """Run Keras's ResNet50 forward."""
    model = keras.applications.ResNet50(weights=None)
    x = tf.random.normal([batch, 224, 224, 3])
    model(x[:1])

    def step(images: Any) -> Any:
        return model(images, training=False)

    return tf.function(step, jit_compile=jit or None), (x,)


def _transform(x: Any, hidden: int, heads: int, is_causal: bool) -> Any:
    attended = layers.MultiHeadAttention(heads, hidden // heads)(x, x, use_causal_mask=is_causal)
    x = layers.LayerNormalization()(x + attended)
    return layers.LayerNormalization()(x + layers.Dense(hidden)(layers.Dense(4 * hidden, "gelu")(x)))


def _train_transformer(
    batch: int, hidden: int, heads: int, count: int, seq: int, words: int, jit: bool, *, is_causal: bool
) -> Step:
    ids = keras.Input([seq], dtype="int32")
    x = layers.Embedding(words, hidden)(ids) + layers.Embedding(seq, hidden)(tf.range(seq))
    for _ in range(count):
        x = _transform(x, hidden, heads, is_causal)
    out = layers.Dense(words if is_causal else 2, dtype="float32")(x if is_causal else x[:, 0])
    data = tf.random.uniform([batch, seq], 0, words, tf.int32)
    return train(keras.Model(ids, out), data, data if is_causal else make_labels(batch, 2), cross_entropy, jit)


def bert_base(batch: int, jit: bool = False) -> Step:
    """Train a classifier of BERT's base size on sequences of 128."""
    return _train_transformer(batch, 768, 12, 12, 128, 30522, jit, is_causal=False)


def gpt_small(batch: int, jit: bool = False) -> Step:
    """Train a small language model on sequences of 256."""
    return _train_transformer(batch, 512, 8, 6, 256, 8000, jit, is_causal=True)


def lstm(batch: int, jit: bool = False) -> Step:
    """Train two LSTM layers, which cuDNN computes, on sequences of 100."""
    found = [layers.LSTM(512, return_sequences=True), layers.LSTM(512), layers.Dense(10)]
    model = keras.Sequential([keras.Input([100, 128]), *found])
    return train(model, tf.random.normal([batch, 100, 128]), make_labels(batch, 10), cross_entropy, jit)


def dense(batch: int, jit: bool = False) -> Step:
    """Train seven dense layers."""
    hidden = [layers.Dense(2048, "relu") for _ in range(6)]
    model = keras.Sequential([keras.Input([1024]), *hidden, layers.Dense(1000)])
    return train(model, tf.random.normal([batch, 1024]), make_labels(batch, 1000), cross_entropy, jit)


def _convolve_twice(x: Any, filters: int) -> Any:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def unet(batch: int, jit: bool = False) -> Step:
    """Train a U-Net that segments images of 128 x 128."""
    x = image = keras.Input([128, 128, 3])
    kept = []
    for filters in (32, 64, 128, 256):
        x = _convolve_twice(x, filters)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(512, 3, padding="same", activation="relu")(x)
    for filters, side in zip((256, 128, 64, 32), reversed(kept), strict=True):
        joined = layers.Concatenate()([layers.Conv2DTranspose(filters, 2, 2)(x), side])
        x = _convolve_twice(joined, filters)
    model = keras.Model(image, layers.Conv2D(4, 1)(x))
    classes = tf.random.uniform([batch, 128, 128], 0, 4, tf.int32)
    return train(model, tf.random.normal([batch, 128, 128, 3]), classes, cross_entropy, jit)


def recommend(batch: int, jit: bool = False) -> Step:
    """Train dense layers on eight looked-up rows of a table."""
    ids = keras.Input([8], dtype="int32")
    x = layers.Flatten()(layers.Embedding(200000, 64)(ids))
    model = keras.Model(ids, layers.Dense(1)(layers.Dense(256, "relu")(layers.Dense(512, "relu")(x))))
    data = tf.random.uniform([batch, 8], 0, 200000, tf.int32)
    return train(model, data, tf.random.normal([batch, 1]), lambda y, found: tf.square(y - found), jit)


def _mix(make: Callable[[int], Step]) -> Callable[[int], Step]:
    def made(batch: int) -> Step:
        keras.mixed_precision.set_global_policy("mixed_float16")
        return make(batch)

    return made


def _compile(make: Callable[[int, bool], Step]) -> Callable[[int], Step]:
    return lambda batch: make(batch, True)


_MIXED = (resnet50, bert_base, gpt_small, dense, unet, lstm)
_COMPILED = (resnet50, bert_base, gpt_small, dense, unet, recommend)
STEPS: dict[str, Callable[[int], Step]] = {
    made.__name__: made
    for made in (resnet50, mobilenet, bert_base, gpt_small, lstm, dense, unet, recommend, resnet50_infer)
}
STEPS |= {f"{made.__name__}_fp16": _mix(made) for made in _MIXED}
STEPS |= {f"{made.__name__}_xla": _compile(made) for made in _COMPILED}

if __name__ == "__main__":
    step, arguments = STEPS[sys.argv[1]](int(sys.argv[2]))
    step(*arguments)
