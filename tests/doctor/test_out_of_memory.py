"""A step that does not fit in a logical GPU of the program's own making is predicted; one that fits is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.analysis.memory_failures import find_out_of_memory
from simplace.explain.failures import OutOfMemory

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

SCRIPT = """
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=32)])
weight = tf.Variable(tf.zeros([512, 512]))

@tf.function
def step(x):
    for _ in range(3):
        x = tf.nn.relu(x @ weight) + x  # here
    return tf.reduce_sum(x)

step(tf.zeros([ROWS, 512]))
"""


def predicted(tmp_path: Path, rows: int) -> list[OutOfMemory]:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT.replace("ROWS", str(rows)))
    result = simplace.place(str(script), "cpu:1,gpu:1")
    assert result.agrees
    return list(find_out_of_memory(placed.placement for placed in result))


def test_the_step_that_does_not_fit_is_told_with_the_batch_that_does(tmp_path: Path) -> None:
    (found,) = predicted(tmp_path, 8000)
    assert found.source.endswith("model.py:11")
    assert (found.device, found.limit, found.batch, found.nodes) == ("GPU:0", 32 << 20, 8000, ("matmul",))
    assert found.error == (
        "OOM when allocating tensor with shape[8000,512] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
    )
    assert found.largest_batch is not None
    assert predicted(tmp_path, found.largest_batch) == []
