"""Tensors moved between the host and emulated GPUs without a copy: the memory of an emulated GPU is the host's.

A tensor is exported as DLPack (tensorflow/c/eager/dlpack.cc), and imported under the name of the other device. TensorFlow
owns none of the memory of what it imports, and so computes nothing in place there; nor in the memory that was exported,
as long as somebody else has it.
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
    if not _is_emulated or code is None or not _is_reachable(tensor):
        return None
    try:
        shared = _import_memory(pywrap_tfe.TFE_ToDlpackCapsule(tensor), code)
    except FAILURES:  # a type that DLPack does not have
        shared = None
    if shared is None or shared._datatype_enum() != dtype:  # or one that it has no name of its own for
        _unshared.add(dtype)
        return None
    return shared


def find_address(tensor: Any) -> int:
    """Return the address of the memory of a tensor, 0 where it is not known."""
    if not _is_emulated or not _is_reachable(tensor):
        return 0
    described = _find_pointer(pywrap_tfe.TFE_ToDlpackCapsule(tensor), b"dltensor")
    return ctypes.c_void_p.from_address(described).value or 0


def _is_reachable(tensor: Any) -> bool:
    """Return whether DLPack has a name for the type of a tensor and its device."""
    if tensor._datatype_enum() in _unshared or not tensor._num_elements():
        return False
    return _find_code(tensor.backing_device) is not None


def _import_memory(capsule: Any, code: tuple[int, int]) -> Any:
    described = _Device.from_address(_find_pointer(capsule, b"dltensor") + _DEVICE_AT)
    described[:] = code
    return pywrap_tfe.TFE_FromDlpackCapsule(capsule, context.context()._handle)


@cache
def _find_code(device: str) -> tuple[int, int] | None:
    """Return what DLPack calls a device of this process, None for other devices; of several CPUs it has the first."""
    found = _DEVICE.fullmatch(device)
    if found is None or (found[1] == "CPU" and found[2] != "0"):
        return None
    return _CODES[found[1]], int(found[2])
