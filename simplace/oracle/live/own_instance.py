"""A copy of a function that TensorFlow instantiates, and never runs: where it places each node before it optimizes.

The call is cancelled before it begins (RunSync of common_runtime/process_function_library_runtime.cc), so that
no kernel starts. The copy goes afterwards, with all that TensorFlow made for it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.failures import FAILURES, code_name, find_code, is_rejection
from simplace.oracle.child.own_work import INSIDE
from simplace.oracle.child.tf_private import cancellation, context, function_pb2
from simplace.oracle.live.entry_points import execute
from simplace.oracle.live.graph_collection import collecting_graphs
from simplace.program.observation import ObservedRefusal

_PREFIX = "simplace_copy_"
_TRIES = 3
_TURN = threading.Lock()
_numbers = itertools.count()


def instantiate_copy(
    definition: Any, *, scope: str, inputs: Sequence[Any], attrs: Sequence[Any], outputs: int
) -> tuple[Any, ObservedRefusal | None]:
    """Return the graphs of a copy of a function for these inputs, or TensorFlow's refusal; neither if it is silent.

    Where another thread's function is instantiated at the same time, TensorFlow mixes the graphs of both: it is asked
    again.
    """
    for _ in range(_TRIES):
        with _TURN:
            found = _instantiate(definition, scope, inputs, attrs, outputs)
        if any(found):
            return found
    return None, None


def _instantiate(
    definition: Any, scope: str, inputs: Sequence[Any], attrs: Sequence[Any], outputs: int
) -> tuple[Any, ObservedRefusal | None]:
    ctx = context.context()
    name = f"{_PREFIX}{next(_numbers)}_{definition.signature.name}"
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(definition)
    copy.signature.name = name
    manager = cancellation.CancellationManager()
    manager.start_cancel()
    with INSIDE:
        ctx.add_function_def(copy)
        try:
            with collecting_graphs(copy) as window:
                error = _call(name, scope, inputs, _without_grappler(attrs), outputs, manager._impl)
        finally:
            ctx.remove_function(name)
    if error is None and window.graphs is not None:  # TensorFlow has none of a function without anything to run
        raise AssertionError(f"a call that was cancelled before it began did run: {name}")
    return window.graphs, _describe_refusal(name, error)


def _call(name: str, scope: str, inputs: Sequence[Any], attrs: Sequence[Any], outputs: int, cancelled: Any) -> Any:
    """Return the error that a call ends with."""
    try:
        execute(context.context()._handle, scope, name, list(inputs), tuple(attrs), outputs, cancelled)
    except FAILURES as error:
        return error
    return None


def _describe_refusal(name: str, error: Any) -> ObservedRefusal | None:
    """Return TensorFlow's refusal to place a function; the rejection of an argument comes after it was placed."""
    if error is None or find_code(error) == tf.errors.CANCELLED or is_rejection(error):
        return None
    said = str(error.message).partition(" [Op:")[0].replace(name, name.split("_", 3)[-1])
    return ObservedRefusal(code_name(find_code(error)), said)


def _without_grappler(attrs: Sequence[Any]) -> Sequence[Any]:
    """Return the attributes of a call with Grappler turned off, which would change the graph that was placed."""
    changed = list(attrs)
    for i in range(0, len(changed), 2):
        if changed[i] == "config_proto":
            config = tf.compat.v1.ConfigProto()
            config.ParseFromString(changed[i + 1])
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            changed[i + 1] = config.SerializeToString()
    return changed
