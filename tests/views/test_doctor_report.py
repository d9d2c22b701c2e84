"""The doctor's report in text, as a person reads it."""

import re

from simplace.doctor.silent_failures import LateLogFlag
from simplace.explain.copy_findings import VariablesFar
from simplace.explain.finding import StepCost
from simplace.explain.findings import IdleGpu, NoSuchDevice
from simplace.explain.waiting_findings import GpuWaits
from simplace.views.text.doctor_report import doctor_report
from tests.exports.hostile import NAMES

LATE = LateLogFlag("model.py:3", "", ())


def test_findings_come_with_what_why_and_instead():
    text = doctor_report([IdleGpu("", "", (), ("GPU:1",), 0), LATE], "model.py on CPU:0, GPU:0, GPU:1")
    assert text == (
        "model.py on CPU:0, GPU:0, GPU:1: 2 findings\n"
        "\n"
        "warning: late-log-flag at model.py:3\n"
        "  tf.debugging.set_log_device_placement(True) comes after TensorFlow has started, so functions log nothing.\n"
        "  why: The first op, and tf.config.list_logical_devices too, create TensorFlow's context, which reads the "
        "flag once.\n"
        "  do: Make it the first line after `import tensorflow as tf`; tf.config.list_physical_devices may come before "
        "it.\n"
        "  see: doctor/late-log-flag\n"
        "\n"
        "note: idle-gpu\n"
        "  GPU:1 is idle: no op requests it.\n"
        "  why: TensorFlow places ops that request no device on the first GPU; it does not spread work over GPUs by "
        "itself.\n"
        "  do: Use tf.distribute.MirroredStrategy, or `with tf.device` for a part of the model on each GPU.\n"
        "  see: doctor/idle-gpu\n"
        "\n"
        "what it means: simplace explain --rule doctor/late-log-flag"
    )


def test_what_costs_a_step_much_comes_before_warnings_that_may_cost_nothing():
    def waits(seconds):
        cost = StepCost(seconds=seconds)
        return GpuWaits("", "p", (), ("GPU:0",), "copies", (0.5,), (1,), cost=cost)

    far = VariablesFar("", "p", (), ("w",), "CPU:0", "GPU:0", "mm (MatMul)", cost=StepCost(1, 8, 2e-4))
    idle = IdleGpu("", "", (), ("GPU:1",), 0)
    shown = doctor_report([LATE, waits(1e-3), far, idle], "x")
    assert re.findall(r"^(?:warning|note): (\S+)", shown, re.MULTILINE) == [
        "variables-far", "gpu-waits", "late-log-flag", "idle-gpu"
    ]  # fmt: skip
    assert re.findall(r"^\w+: (\S+)", doctor_report([waits(1e-5), LATE], "x"), re.MULTILINE)[1:] == [
        "late-log-flag", "gpu-waits"
    ]  # fmt: skip


def test_nothing_found():
    assert doctor_report([], "model.py on CPU:0") == "model.py on CPU:0: nothing found"


def test_it_fits_the_terminal():
    assert max(map(len, doctor_report([LATE], "model.py", 60).splitlines())) <= 60


def test_names_cannot_steer_the_terminal():
    for name in (*NAMES, "\x1b[31mred"):
        text = doctor_report([NoSuchDevice("a.py:1", name, (name,), "/GPU:7", "GPU:0", "", "", "GPU:0")], "x")
        assert len(text.splitlines()) == 9
        assert "\x01" not in text
        assert "\x1b" not in text
