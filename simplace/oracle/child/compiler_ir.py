"""What `experimental_get_compiler_ir` returns: XLA's form of a function for an emulated GPU, made for the CPU.

XLA makes its form before optimizations by the same code for all devices (tensorflow/compiler/tf2xla/xla_compiler.cc),
and has no compiler for emulated GPUs (tensorflow/compiler/jit/get_compiler_ir.cc).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.tensors import find_host, to_device
from simplace.oracle.child.tf_private import context, record

_GPU = ("GPU", "CUDA")  # in the name of a device or of a platform


def compile_for_host(recorder: Recorder) -> None:
    """Make the form of a function for the CPU from now on where the program asks for that of an emulated GPU."""

    def wrap(get_compiler_ir: Any) -> Any:
        def get_from_host(self: Any, *, stage: str = "hlo", **given: Any) -> Any:
            wanted = given.get("device_name") or given.get("platform_name") or ""
            if not any(each in wanted.upper() for each in _GPU):
                return get_compiler_ir(self, stage=stage, **given)
            if stage.startswith("optimized"):
                recorder.remark(
                    f"experimental_get_compiler_ir(stage={stage!r}) returns what XLA makes for the CPU: it makes other "
                    "fusions for a GPU."
                )
            return _ask_host(lambda **moved: get_compiler_ir(self, stage=stage, **moved), given)

        return get_from_host

    patch_method(context.Context, "get_compiler_ir", wrap)


def _ask_host(get_compiler_ir: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call with the CPU in place of the device, and with what it has on emulated GPUs in host memory."""
    count = len(given["flat_args"])
    with lend_to_host([*given["flat_args"], *given["captured_inputs"]]) as lent, record.stop_recording():
        moved = [to_device(each, find_host()) if isinstance(each, tf.Tensor) else each for each in lent]
        where = {"device_name": find_host(), "platform_name": None}
        return get_compiler_ir(**given | where | {"flat_args": moved[:count], "captured_inputs": moved[count:]})
