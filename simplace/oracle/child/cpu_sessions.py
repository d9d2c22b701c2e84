"""Sessions computed on the CPU: beside each session of the program one that sees no GPU runs the same graph.

Where no device is a GPU, soft placement puts what asks for one on the CPU. All state of the program (variables,
iterators, queues) is that of the second session: the first one only places and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.tf_private import config_pb2
from simplace.oracle.child.tf_private import pywrap_tf_session as tf_session
from simplace.oracle.child.tf_private import session as session_module

_INPUTS = ("IteratorGetNext", "QueueDequeue", "ReaderRead")  # what the names of ops that take an element begin with


class CpuSessions:
    """The second sessions: made when first needed, and run in place of the program's."""

    def __init__(self) -> None:
        base = session_module.BaseSession
        self._create = find_original(base, "__init__")
        self._extend, self._close = find_original(base, "_extend_graph"), find_original(base, "close")
        self._run = find_original(base, "_call_tf_sessionrun")
        self._make_callable = find_original(base._Callable, "__init__")
        self._call_callable = find_original(base._Callable, "__call__")
        self._set_up = find_original(tf_session, "TF_SessionPRunSetup_wrapper")
        self._run_part = find_original(base, "_call_tf_sessionprun")

    def run(self, session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        """Run what `BaseSession._call_tf_sessionrun` is asked to."""
        return self._run(self._second(session), options, feeds, fetches, targets, metadata)

    def make_callable(self, session: Any, options: Any) -> Any:
        """Return what `BaseSession._make_callable_from_options` returns."""
        given = config_pb2.CallableOptions()
        given.CopyFrom(options)
        for devices in (given.feed_devices, given.fetch_devices):  # which may be GPUs
            devices.clear()
        made = object.__new__(session_module.BaseSession._Callable)
        self._make_callable(made, self._second(session), given)
        return made

    def call(self, made: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what `make_callable` made."""
        return self._call_callable(made, *args, **kwargs)

    def set_up_partial_run(self, session: Any, feeds: Any, fetches: Any, targets: Any) -> Any:
        """Begin a partial run; return its handle."""
        return self._set_up(self._second(session)._session, feeds, fetches, targets)

    def run_part(self, session: Any, handle: Any, feeds: Any, fetches: Any) -> Any:
        """Continue a partial run."""
        return self._run_part(self._second(session), handle, feeds, fetches)

    def close(self, session: Any) -> None:
        """Close a session and the one beside it."""
        second = getattr(session, "_simplace_second", None)
        if second is not None:
            self._close(second)
        self._close(session)

    def _second(self, session: Any) -> Any:
        """Return the session beside `session`, with all of its graph."""
        second = getattr(session, "_simplace_second", None)
        if second is None:
            second = session._simplace_second = object.__new__(session_module.BaseSession)
            second._simplace_is_second = True
            second._session = None
            self._create(second, "", session.graph, _without_gpus(session._config))
        self._extend(second)
        return second


def prepare_run(session: Any, run: Mapping[str, Any]) -> None:
    """Make TensorFlow place and partition what a run of a session needs, and run nothing."""
    options = config_pb2.CallableOptions(feed=run["feeds"], fetch=run["fetches"], target=run["targets"])
    buffer = tf_session.TF_NewBufferFromString(options.SerializeToString())
    try:
        handle = wrap_foreign(tf_session.TF_SessionMakeCallable)(session._session, buffer)
        tf_session.TF_SessionReleaseCallable(session._session, handle)
    finally:
        tf_session.TF_DeleteBuffer(buffer)


def list_needed_types(graph: Any, names: Iterable[str]) -> frozenset[str]:
    """List the types of the ops that the named ops and tensors need, themselves included."""
    waiting = [graph.get_operation_by_name(name.partition(":")[0]) for name in names]
    seen = set(waiting)
    while waiting:
        op = waiting.pop()
        needed = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        waiting += [each for each in dict.fromkeys(needed) if each not in seen]
        seen.update(needed)
    return frozenset(op.type for op in seen)


def takes_element(types: frozenset[str]) -> bool:
    """Return whether an op of these types takes an element from an iterator, a queue or a reader."""
    return any(each.startswith(_INPUTS) for each in types)


def _without_gpus(config: Any) -> Any:
    made = tf.compat.v1.ConfigProto()
    made.CopyFrom(config)
    made.device_count["GPU"] = 0
    made.allow_soft_placement = True
    made.log_device_placement = False
    made.ClearField("gpu_options")
    if "pluggable_device_options" in made.DESCRIPTOR.fields_by_name:
        made.ClearField("pluggable_device_options")
    return made
