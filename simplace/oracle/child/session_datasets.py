"""The datasets of sessions on emulated GPUs: TensorFlow places their functions when an iterator over one is made.

What such a session runs is computed by another one, on the CPU. So the program's makes its own iterators, which take
no element (kernels/data/iterator_ops.cc). It is fed the numbers that a GPU would compute for that, such as seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.op_kinds import VARIABLE_HANDLE
from simplace.oracle.child import kernel_types
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.tf_private import pywrap_tf_session as tf_session
from simplace.oracle.child.tf_private import session as session_module

_MAKERS = frozenset({"MakeIterator", "OneShotIterator"})
_READS = frozenset({"ReadVariableOp", VARIABLE_HANDLE})
_OBJECTS = (tf.resource, tf.variant)

Feeds = Mapping[Any, Any]  # values by tensor, as a session takes it
Compute = Callable[[Feeds, Sequence[Any]], Sequence[Any]]


class SessionDatasets:
    """Make iterators in the program's sessions."""

    def __init__(self) -> None:
        self._run = find_original(session_module.BaseSession, "_call_tf_sessionrun")

    def place(
        self, session: Any, names: Iterable[str], devices: Mapping[str, str], feeds: Feeds, compute: Compute
    ) -> None:
        """Make the iterators that the named ops and tensors of a run need, each once.

        `devices` are those of nodes. `compute` returns what the CPU computes for some tensors, given the feeds.
        """
        wanted = [session.graph.get_operation_by_name(name.partition(":")[0]) for name in names]
        makers = [op for op in list_needed(wanted) if op.type in _MAKERS and op.name not in session._simplace_iterators]
        session._simplace_iterators.update(op.name for op in makers)
        for op in makers:
            runnable = reverse_reachable(
                [op], lambda each: [one for one in _list_inputs(each) if may_run(one, devices)]
            )
            given = {tensor for each in runnable for tensor in each.inputs if tensor.op not in runnable}
            waits = [each for one in runnable for each in one.control_inputs if each not in runnable]
            if may_run(op, devices) and not waits and _may_compute(given):
                fed = {tensor_name(output): (output, value) for output, value in feeds.items()}
                values = dict(fed[tensor.name] for tensor in given if tensor.name in fed)
                fetched = [tensor._as_tf_output() for tensor in given if tensor.name not in fed]
                with suppress(*FAILURES):  # such as where a variable has no value
                    values |= zip(fetched, map(np.asarray, compute(feeds, fetched)) if fetched else (), strict=True)
                    self._run(session, None, values, [], [op._c_op], None)


def tensor_name(output: Any) -> str:
    """Return the name of a tensor as a session takes it."""
    return f"{tf_session.TF_OperationName(output.oper)}:{output.index}"


def list_needed(ops: Iterable[Any]) -> list[Any]:
    """List the ops that some need, themselves included."""
    return [*reverse_reachable(ops, _list_inputs)]


def may_run(op: Any, devices: Mapping[str, str]) -> bool:
    """Return whether an op is on the CPU, and has no effect but that there is a dataset, an iterator, or the like."""
    definition = kernel_types.find_op_def(op.type)
    if definition is None or "CPU" not in devices.get(op.name, "") or op.type.startswith("Placeholder"):
        return False
    return not definition.is_stateful or op.type in _MAKERS or all(each.dtype in _OBJECTS for each in op.outputs)


def _may_compute(tensors: Collection[Any]) -> bool:
    """Return whether tensors are numbers or strings, and computing them once more has no effect."""
    if any(tensor.dtype in _OBJECTS for tensor in tensors):
        return False
    definitions = [(op, kernel_types.find_op_def(op.type)) for op in list_needed(tensor.op for tensor in tensors)]
    return all(found is not None and (not found.is_stateful or op.type in _READS) for op, found in definitions)


def _list_inputs(op: Any) -> list[Any]:
    return [*(tensor.op for tensor in op.inputs), *op.control_inputs]
