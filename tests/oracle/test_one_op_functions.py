"""An eager op that only GPUs have a kernel for is computed as in a function, or is said to give zeros."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.api import Placements, Settings, check
from simplace.machine.machine import Machine

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

LAYERS = """\
import numpy as np
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
x = tf.random.normal([3, 5, 4])

def run(layer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    return [loss, *tape.gradient(loss, layer.trainable_variables)]

for layer in tf.keras.layers.LSTM(3), tf.keras.layers.GRU(3, return_sequences=True):
    found = run(layer)
    layer.use_cudnn = False  # a loop of ops
    for one, other in zip(found, run(layer)):
        np.testing.assert_allclose(one, other, rtol=1e-4)
"""
BOTH_WAYS = """\
import tensorflow as tf
x, h, c = tf.ones([5, 2, 4]), tf.zeros([2, 2, 3]), tf.zeros([2, 2, 3])
for _ in range(2):
    found = tf.raw_ops.CudnnRNNV3(
        input=x, input_h=h, input_c=c, params=tf.ones([300]), sequence_lengths=[5, 5], rnn_mode="lstm",
        direction="bidirectional")
    assert tf.reduce_max(tf.abs(found.output)) == 0.0
"""


def run(tmp_path: Path, text: str) -> Placements:
    path = tmp_path / "model.py"
    path.write_text(text)
    result = check(str(path), Settings(Machine(gpus=1)))
    assert result.failure is None
    assert result.agrees
    return result


def test_recurrent_layers_of_cudnn(tmp_path: Path) -> None:
    result = run(tmp_path, LAYERS)
    assert {"CudnnRNNV3", "CudnnRNNBackpropV3"} <= {each.op.op for each in result.eager.ops}
    assert not [each for each in result.remarks if "zeros" in each]


def test_what_nothing_computes(tmp_path: Path) -> None:
    result = run(tmp_path, BOTH_WAYS)
    assert [each for each in result.remarks if "zeros" in each] == [
        "CudnnRNNV3 returned zeros, since no CPU computes it: CudnnRNNV3 has a kernel for GPUs only."
    ]
