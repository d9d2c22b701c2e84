"""What DTensor makes of ops and functions: each device of the mesh runs a function, which TensorFlow places as any."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.api import Settings, check, place
from simplace.errors import ProgramError
from simplace.machine.machine import Machine

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
assert step(x) == 48.0
assert plain(tf.constant(3.0)) == 6.0
"""
ON_GPUS = """\
import tensorflow as tf
from tensorflow.experimental import dtensor
mesh = dtensor.create_mesh([("batch", 2)], device_type="GPU")
dtensor.call_with_layout(tf.zeros, dtensor.Layout.replicated(mesh, 2), shape=[3, 4])
"""


@pytest.mark.parametrize("gpus", [0, 1])
def test_each_device_of_a_mesh_runs_a_function(gpus: int, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MESH)
    result = check(str(path), Settings(Machine(gpus=gpus)))
    assert result.failure is None
    assert result.agrees
    assert [placed.title.partition(" (")[0] for placed in result.programs] == [
        "VarHandleOp on CPU:0 of a mesh", "VarHandleOp on CPU:1 of a mesh",
        "AssignVariableOp on CPU:0 of a mesh", "AssignVariableOp on CPU:1 of a mesh",
        "step on CPU:0 of a mesh", "step on CPU:1 of a mesh", "plain",
    ]  # fmt: skip
    assert all(placed.agreement is not None and placed.agreement.total for placed in result.programs)
    assert result.largest().title == f"step on CPU:0 of a mesh ({path}:14)"
    assert (result.remarks, result.unreached, [one.rule for one in result.diagnose() if one.source]) == ((), (), [])


def test_what_a_mesh_runs_is_of_the_users_lines_and_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MESH)
    result = place(str(path), Settings(Machine(gpus=0)))
    placement = result.program(f"step on CPU:1 of a mesh ({path}:14)").placement
    reduces = [node for node in placement.nodes if node.op in ("MatMul", "CollectiveReduceV2")]
    found = [(node.op, node.device[-5:], node.source) for node in reduces]
    assert found == [("MatMul", "CPU:1", f"{path}:10"), ("CollectiveReduceV2", "CPU:1", f"{path}:10")]
    assert result.coverage is not None
    assert (result.coverage.missing, result.coverage.accounted) == ((), result.coverage.total)


def test_a_mesh_of_emulated_gpus_says_what_to_try(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(ON_GPUS)
    with pytest.raises(ProgramError, match=r"run the program with a mesh of as many CPUs.* at .*model\.py:4$"):
        place(str(path), Settings(Machine(gpus=2)))
