"""The int32 that belong to a GPU and are in host memory: TensorFlow keeps most of them there (framework/types.cc)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from simplace.oracle.child.patches import find_original
from simplace.oracle.child.shared_rendezvous import run_alone
from simplace.oracle.child.tensors import find_host, task_of, to_device
from simplace.oracle.child.tf_private import context, pywrap_tfe

_execute = run_alone(find_original(pywrap_tfe, "TFE_Py_Execute"))


def put_on_device(result: Any, device: str) -> Any:
    """Move a result to a device, "" for where it is; an int32 of a GPU of this task stays in host memory."""
    is_near = task_of(device) == task_of(find_host())
    if result.dtype != tf.int32 or "/device:GPU:" not in device or not is_near:
        return to_device(result, device)
    attrs = ("T", result.dtype.as_datatype_enum)
    return _execute(context.context()._handle, device, "Identity", [result], attrs, 1)[0]
