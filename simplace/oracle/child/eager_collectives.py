"""Collectives of eager ops: the threads that run their members meet, and one of them computes for all.

A strategy outside of functions runs the collective of each replica in a thread of its own (tensorflow/python/
distribute/cross_device_ops.py, `CollectiveAllReduce`). On one CPU, TensorFlow would wait without end: the members of a
group are devices, each of which joins once (core/common_runtime/collective_param_resolver_local.cc).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import COLLECTIVE_KEY_INPUTS
from simplace.oracle.child.collective_rewrite import PAIRWISE, is_collective, is_gather
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.tensors import find_host
from simplace.oracle.child.tf_private import record


@dataclass(slots=True)
class _Meeting:
    """Values of the members that have come, by their device, and what all of them get."""

    values: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: BaseException | None = None
    is_over: bool = False


class EagerCollectives:
    """Compute collectives that different threads run, on the CPU."""

    def __init__(self) -> None:
        self._meetings: dict[tuple[Any, ...], _Meeting] = {}
        self._has_changed = threading.Condition()

    def takes(self, op: str) -> bool:
        """Return whether an op is a collective whose keys are inputs, as those of eager ops are."""
        return is_collective(op) and op in COLLECTIVE_KEY_INPUTS

    def join(self, op: str, attrs: Mapping[str, Any], inputs: Sequence[Any], device: str) -> Any:
        """Return the result of the collective of which `device` is a member, once all members have come.

        `inputs` are on the CPU. The device's name gives the order of gathered values, as TensorFlow's ranks do.
        """
        size, *keys = (int(inputs[position]) for position in COLLECTIVE_KEY_INPUTS[op])
        key = (op, *keys)
        with self._has_changed:
            meeting = self._meetings.setdefault(key, _Meeting())
            meeting.values[device] = inputs[0]
            if len(meeting.values) == size:
                del self._meetings[key]
                _conclude(meeting, op, attrs)
                self._has_changed.notify_all()
            self._has_changed.wait_for(lambda: meeting.is_over)
        if meeting.error is not None:
            raise meeting.error
        return meeting.result


def _conclude(meeting: _Meeting, op: str, attrs: Mapping[str, Any]) -> None:
    values = [meeting.values[device] for device in sorted(meeting.values, key=_find_index)]
    try:
        with record.stop_recording(), tf.device(find_host()):
            meeting.result = tf.concat(values, 0) if is_gather(op) else _merge(values, attrs)
    except FAILURES as error:
        meeting.error = error
    meeting.is_over = True


def _find_index(device: str) -> int:
    return tf.DeviceSpec.from_string(device).device_index or 0


def _merge(values: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    how, at_last = (tf.compat.as_str(attrs[name]) for name in ("merge_op", "final_op"))
    if how == "Add":
        merged = tf.add_n(values)
    else:
        pair = getattr(tf.raw_ops, PAIRWISE[how])
        merged = reduce(lambda so_far, value: pair(x=so_far, y=value), values)
    return tf.raw_ops.Div(x=merged, y=tf.cast(len(values), merged.dtype)) if at_last == "Div" else merged
