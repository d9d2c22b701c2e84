"""Tensors moved between the host and emulated GPUs without a copy: the memory of an emulated GPU is the host's.

A tensor is exported as DLPack (tensorflow/c/eager/dlpack.cc), and imported under the name of the other device.
TensorFlow owns none of the memory of what it imports, and so computes nothing in place there; nor in the memory that
was exported, as long as somebody else has it.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

import tensorflow as tf

from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.tf_private import context, pywrap_tfe

_DEVICE_AT = ctypes.sizeof(ctypes.c_void_p)  # of DLTensor (dlpack.h), after the pointer to the data: type and index
_NAME = b"dltensor"
_CODES = {"CPU": 1, "GPU": 2}  # kDLCPU, kDLCUDA
_DEVICE = re.compile(r"/job:localhost/replica:0/task:0/device:(CPU|GPU):(\d+)")
_find_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_find_pointer.restype, _find_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_Device = ctypes.c_int32 * 2
_unshared: set[int] = {tf.string.as_datatype_enum, tf.variant.as_datatype_enum, tf.resource.as_datatype_enum}
_is_emulated = False


def share_emulated_memory() -> None:
    """Share memory from now on: all GPUs that TensorFlow sees are emulated."""
    global _is_emulated
    _is_emulated = True


def share_memory(tensor: Any, device: str) -> Any:
    """Return a tensor on another device that has the memory of `tensor`, None where there cannot be one."""
    dtype, code = tensor._datatype_enum(), _find_code(device)
    capsule = None if code is None else _export_memory(tensor)
    if code is None or capsule is None:
        return None
    shared = _import_memory(capsule, code)
    if shared._datatype_enum() != dtype:  # a type that DLPack has no name of its own for
        _unshared.add(dtype)
        return None
    return shared


def find_address(tensor: Any) -> int:
    """Return the address of the memory of a tensor, 0 where it is not known."""
    capsule = _export_memory(tensor)
    return 0 if capsule is None else ctypes.c_void_p.from_address(_find_pointer(capsule, _NAME)).value or 0


def _export_memory(tensor: Any) -> Any:
    """Return a tensor as DLPack, None where that has no name for its device or its type."""
    dtype = tensor._datatype_enum()
    if not _is_emulated or dtype in _unshared or not tensor._num_elements():
        return None
    if _find_code(tensor.backing_device) is None:
        return None
    try:
        return pywrap_tfe.TFE_ToDlpackCapsule(tensor)
    except FAILURES:
        _unshared.add(dtype)
        return None


def _import_memory(capsule: Any, code: tuple[int, int]) -> Any:
    described = _Device.from_address(_find_pointer(capsule, _NAME) + _DEVICE_AT)
    described[:] = list(code)
    return pywrap_tfe.TFE_FromDlpackCapsule(capsule, context.context()._handle)


@cache
def _find_code(device: str) -> tuple[int, int] | None:
    """Return what DLPack calls a device of this process, None for other devices; of several CPUs it has the first."""
    found = _DEVICE.fullmatch(device)
    if found is None or (found[1] == "CPU" and found[2] != "0"):
        return None
    return _CODES[found[1]], int(found[2])
