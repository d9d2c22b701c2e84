"""What a custom device runs is not TensorFlow's to place: that is said, and nothing of it counts as a disagreement."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from simplace.api import Settings, check
from simplace.machine.machine import Machine
from simplace.views.text import summary

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

MESH = """\
import tensorflow as tf
from tensorflow.experimental import dtensor
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
mesh = dtensor.create_mesh([("batch", 2)], devices=["CPU:0", "CPU:1"])
x = dtensor.pack([tf.ones([2, 3])] * 2, dtensor.Layout(["batch", dtensor.UNSHARDED], mesh))
w = dtensor.DVariable(dtensor.call_with_layout(tf.zeros, dtensor.Layout.replicated(mesh, 2), shape=[3, 4]))
@tf.function
def step(x):
    return tf.reduce_sum(x @ (w + 1.0))
@tf.function
def plain(x):
    return x * 2.0
assert step(x) == 48.0
assert plain(tf.constant(3.0)) == 6.0
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_mesh_of_dtensor(gpus: int, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(dedent(MESH))
    result = check(str(path), Settings(Machine(gpus=gpus)))
    assert result.failure is None
    assert [placed.placement.program.title for placed in result.programs] == ["plain"]
    assert result.agrees
    assert f"step ({path}:8) was traced, but no call of it was placed" in summary.agreement_line(result)
    (remark,) = [each for each in result.remarks if "custom device" in each]
    assert remark.startswith(f"The custom device CUSTOM:0 ({path}:7), as DTensor has one, makes programs of its own")
