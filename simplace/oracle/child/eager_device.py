"""The device that TensorFlow runs an eager op or a function call on.

Mirrors SetOpDevice and SelectDevice in tensorflow/core/common_runtime/eager/{execute,context}.cc, and what
placement_utils.cc there calls small.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import context
from simplace.program.eager_op import SMALL

EVERY_TYPE = frozenset({"CPU", "GPU"})  # the types a function call can run on
_INTEGERS = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)


def choose_device(types: frozenset[str], scope: str) -> str:
    """Return the device for a call with kernels for `types` under a device scope, "" where TensorFlow would refuse."""
    return _find_device(types, scope, soft_placement(), tuple(context.context().devices()))


def soft_placement() -> bool:
    """Return whether soft placement is on: it is unless the program turned it off."""
    return context.context()._soft_device_placement is not False


@cache
def _find_device(types: frozenset[str], scope: str, soft: bool, names: Sequence[str]) -> str:
    found = _find_first(types, scope, names)
    return _find_first(types, scope.split("/device:")[0], names) if soft and not found else found


def _find_first(types: frozenset[str], scope: str, names: Sequence[str]) -> str:
    wanted = tf.DeviceSpec.from_string(scope)
    fitting = [name for name in sorted(names) if fits_spec(wanted, tf.DeviceSpec.from_string(name))]
    of_type = (name for kind in ("GPU", "CPU") if kind in types for name in fitting if f"/device:{kind}:" in name)
    return next(of_type, "")


def fits_spec(wanted: tf.DeviceSpec, device: tf.DeviceSpec) -> bool:
    """Return whether a device has all that a partial device name requests."""
    fields = ("job", "replica", "task", "device_type", "device_index")
    return all(getattr(wanted, field) in (None, getattr(device, field)) for field in fields)


def is_small(tensor: Any, dtype: int) -> bool:
    """Return whether an integer is small enough to pin its op there, where that is turned on."""
    if dtype not in _INTEGERS or not _pins_small_ops():
        return False
    return int(tensor._num_elements()) <= SMALL


@cache
def _pins_small_ops() -> bool:
    """Return whether small ops are pinned to the CPU; TensorFlow asks when it makes its context, as here."""
    return os.environ.get("TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING", "").lower() in ("1", "true")
