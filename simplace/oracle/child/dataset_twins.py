"""Datasets with functions that may use a GPU: a twin, with copies of the functions for the CPU, gives the elements.

A function uses a GPU where it requests one, or walks through another dataset by a function of that (`Dataset.reduce`).

TensorFlow places the functions of a dataset when an iterator over it is made (`MakeIteratorOp` of kernels/data/
iterator_ops.cc initializes it). When that has been seen, the iterator is made anew, over the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.dataset_walks import WALKS
from simplace.oracle.child.function_calls import FunctionCalls
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.tensors import find_host, is_gpu_variable

MAKES_ITERATOR = "MakeIterator"
_TWIN = "_simplace_twin"  # an attribute of tensors, which goes when they go


class DatasetTwins:
    """Make the twins of datasets."""

    def __init__(self, functions: Functions, calls: FunctionCalls) -> None:
        self._functions = functions
        self._calls = calls
        self._known: dict[str, bool] = {}

    def follow(
        self, op: str, inputs: Sequence[Any], attrs: Sequence[Any], functions: Sequence[str], run: Callable[..., Any],
        results: Any,
    ) -> None:  # fmt: skip
        """Make the twin of the dataset that an op has made, or let an iterator go through the twin of its dataset.

        `functions` are those that the op gives to a dataset. What captures a variable of a GPU has no twin: the copy of
        a variable that the CPU could read would not follow its updates.
        """
        given = [find_twin(tensor) for tensor in inputs]
        if op == MAKES_ITERATOR:
            if given[0] is not inputs[0]:
                run(find_host(), given)
            return
        made = results[0] if isinstance(results, (list, tuple)) and results else None
        if made is None or made.dtype != tf.variant or any(map(is_gpu_variable, inputs)):
            return
        if any(map(self._may_use_gpu, functions)) or any(map(_differ, given, inputs)):
            made.__dict__[_TWIN] = run(find_host(), given, attrs=self._calls.copy_for_datasets(attrs))[0]

    def _may_use_gpu(self, function: str) -> bool:
        if function not in self._known:
            reached = map(self._functions.definition, self._functions.reached(function))
            nodes = [node for definition in reached for node in definition.node_def]
            self._known[function] = any(node.op in WALKS or "GPU" in node.device.upper() for node in nodes)
        return self._known[function]


def find_twin(tensor: Any) -> Any:
    """Return the twin of a dataset, the tensor itself where it has none."""
    return getattr(tensor, "__dict__", {}).get(_TWIN, tensor)


def _differ(one: Any, other: Any) -> bool:
    return one is not other
