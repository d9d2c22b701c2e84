"""What `diff` says of layers that run otherwise, and of ops that run elsewhere outside of functions."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.program.known_names import get_known_name

PROGRAM = """\
    import numpy as np
    import tensorflow as tf
    reader = tf.keras.layers.GRU(4, name="reader")
    @tf.function
    def step(x):
        return reader(x)
    x = tf.constant(np.ones((2, 5, 3), "float32"))
    step(x)
    with tf.device("CPU:0"):
        kept = tf.ones([100])
    for i in range(3):
        tf.negative(kept)
"""


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_layer_of_cudnn_and_the_lines_of_eager_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(dedent(PROGRAM))
    gpu, cpu = simplace.place("model.py", "gpu:1"), simplace.place("model.py", "cpu:1")
    changes = simplace.diff(gpu, cpu)
    text = str(changes)
    assert "reader (model.py:6) runs as CudnnRNNV3 on CPU:0, GPU:0, as a while loop on CPU:0" in text
    report = changes.to_json()
    assert [program["layers"] for program in report["programs"] if program["name"] == "step"] == [
        [{"layer": "reader", "source": "model.py:6", "op": "CudnnRNNV3", "loop": "after"}]
    ]
    where = "/job:localhost/replica:0/task:0/device"
    assert [move for move in report["eager"]["moves"] if move["op"] == "Neg"] == [
        {"source": "model.py:12", "op": "Neg", "before": {f"{where}:GPU:0": 3}, "after": {f"{where}:CPU:0": 3}}
    ]
    back = simplace.diff(cpu, gpu)
    assert "reader (model.py:6) runs as a while loop on CPU:0, as CudnnRNNV3 on CPU:0, GPU:0" in str(back)
    same = simplace.diff(gpu, gpu)
    assert (same.differs, same.eager.compared) == (False, 0)
    pinned = simplace.diff(gpu, soft_placement=False)
    assert pinned.eager.compared == 0
    step = gpu.program("step").placement
    assert "reader/CudnnRNNV3" in {get_known_name(step.placed, node) for node in step.graph.op_ids}
