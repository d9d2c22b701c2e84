"""Datasets with functions that may use a GPU: a twin, with copies of the functions for the CPU, gives the elements.

A function uses a GPU where it requests one, reads a variable there, or walks through another dataset by a function that
does (`Dataset.reduce`). In the twin it has the copy of the variable in host memory, which follows the variable each
time that something takes elements.

TensorFlow places the functions of a dataset when an iterator over it is made (`MakeIteratorOp` of kernels/data/
iterator_ops.cc initializes it). When that has been seen, the iterator is made anew, over the twin. Each iterator over
a dataset that shuffles takes the next seeds of its generator (`Initialize` of kernels/data/shuffle_dataset_op.cc): so
that the program's own iterators take them as elsewhere, TensorFlow places the functions with a dataset that has a
generator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from operator import is_not
from typing import Any

import tensorflow as tf

from simplace.kernels.dataset_ops import INITIALIZES
from simplace.oracle.child import kernel_types
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.dataset_options import exchange_options, read_options
from simplace.oracle.child.dataset_walks import WALKS
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.inner_datasets import InnerDatasets, Maker
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.shared_rendezvous import run_alone
from simplace.oracle.child.tensors import find_host, is_gpu_variable
from simplace.oracle.child.tf_private import context, pywrap_tfe

TAKES_ELEMENTS = INITIALIZES | WALKS | {
    "DatasetToSingleElement", "DatasetToTFRecord", "ExperimentalDatasetToTFRecord", "SaveDataset", "SaveDatasetV2",
}  # fmt: skip
# Attributes of tensors, which go when they go.
_TWIN = "_simplace_twin"
_TYPES = "_simplace_element_types"
_PLACED = "_simplace_placed_dataset"
_READ = "_simplace_read_variables"
_MAKERS = "_simplace_makers"
_OPTIONS = "_simplace_options"
_execute = run_alone(find_original(pywrap_tfe, "TFE_Py_Execute"))


class DatasetTwins:
    """Make the twins of datasets; `copy_functions` puts copies for the CPU in the place of functions in attributes."""

    def __init__(
        self, functions: Functions, inner: InnerDatasets, copy_functions: Callable[[Sequence[Any]], tuple[Any, ...]]
    ) -> None:
        self._functions = functions
        self._copy_functions = copy_functions
        self._inner = inner
        self._known: dict[str, bool] = {}
        self._reads_any = False

    def lend_variables(self, inputs: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return a context in which the copies of the variables that datasets among the inputs read follow them."""
        variables = _list_read(inputs) if self._reads_any else ()
        return lend_to_host(variables) if variables else nullcontext()

    def exchange(self, op: str, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return an op's inputs, with another one in the place of a dataset that has a twin.

        An op that takes elements has the twin, whose functions are placed at once. One that initializes an iterator has
        the dataset that is placed.
        """
        if op not in TAKES_ELEMENTS or find_twin(inputs[0]) is inputs[0]:
            return inputs
        self._place_inner(inputs[0])
        placed = find_placed(inputs[0])
        if op in INITIALIZES:
            return [placed, *inputs[1:]]
        place_dataset(placed, vars(inputs[0])[_TYPES])
        return [*map(find_twin, inputs)]

    def follow(
        self, op: str, inputs: Sequence[Any], attrs: Sequence[Any], functions: Sequence[str], run: Callable[..., Any],
        results: Any,
    ) -> Any:  # fmt: skip
        """Make the twin of the dataset that an op has made, or let an iterator go through the twin of its dataset.

        `inputs` are those that the program gives, `functions` those that the op gives to a dataset. The results are the
        op's, or those of the last call.
        """
        if op in INITIALIZES:
            return self._initialize(inputs, run, results)
        if kernel_types.makes_dataset(op):
            self._follow_dataset(results[0], op, inputs, attrs, functions, run)
        return results

    def _initialize(self, inputs: Sequence[Any], run: Callable[..., Any], results: Any) -> Any:
        """Make an iterator anew, over the twin of its dataset, if there is one."""
        dataset, iterator, *others = inputs
        iterator.__dict__[_READ] = _list_read(inputs)
        twin = find_twin(dataset)
        return results if twin is dataset else run(find_host(), inputs=[twin, iterator, *others])

    def _follow_dataset(
        self, made: Any, op: str, inputs: Sequence[Any], attrs: Sequence[Any], functions: Sequence[str],
        run: Callable[..., Any],
    ) -> None:  # fmt: skip
        made.__dict__[_READ] = _list_read(inputs)
        if any(map(self._may_use_gpu, functions)) or any(map(_has_twin, inputs)):
            with lend_to_host([*map(find_twin, inputs)]) as lent:
                own = exchange_options(op, self._copy_functions(attrs))  # what is fused has the program's names
                made.__dict__[_TWIN] = run(find_host(), inputs=lent, attrs=own)[0]
            made.__dict__[_TYPES] = _list_types(inputs, attrs)
            made.__dict__[_MAKERS] = self._list_makers(op, inputs, attrs)
            before = next((_find(tensor, _OPTIONS, b"") for tensor in inputs if tensor.dtype == tf.variant), b"")
            made.__dict__[_OPTIONS] = before + read_options(op, dict(zip(attrs[::2], attrs[1::2], strict=True)))
            self._reads_any = self._reads_any or any(map(is_gpu_variable, inputs))
        placed = [*map(find_placed, inputs)]
        if kernel_types.takes_seeds(op) or any(map(is_not, placed, inputs)):
            made.__dict__[_PLACED] = run(inputs=placed)[0]

    def _list_makers(self, op: str, inputs: Sequence[Any], attrs: Sequence[Any]) -> tuple[Maker, ...]:
        """List the functions that a dataset calls, and those of the datasets that it takes."""
        named = dict(zip(attrs[::2], attrs[1::2], strict=True))
        names = {key: read_function_name(value) if hasattr(value, "name") else value for key, value in named.items()}
        placed = [*map(find_placed, inputs)]
        return (*chain.from_iterable(_find(tensor, _MAKERS, ()) for tensor in inputs),
                *self._inner.list_makers(op, placed, names))  # fmt: skip

    def _place_inner(self, dataset: Any) -> None:
        """Make TensorFlow place what the datasets call that a dataset's functions make."""
        for maker in _find(dataset, _MAKERS, ()):
            self._inner.place(maker, _find(dataset, _OPTIONS, b""))

    def _may_use_gpu(self, function: str) -> bool:
        if function not in self._known:
            reached = map(self._functions.definition, self._functions.reached(function))
            nodes = [node for definition in reached for node in definition.node_def]
            self._known[function] = any(node.op in WALKS or "GPU" in node.device.upper() for node in nodes)
        return self._known[function]


def find_twin(tensor: Any) -> Any:
    """Return the twin of a dataset, the tensor itself where it has none."""
    return _find(tensor, _TWIN, tensor)


def find_placed(tensor: Any) -> Any:
    """Return the dataset that TensorFlow is to place in the stead of another one, the tensor itself where that can be.

    It has the same functions and other generators of seeds.
    """
    return _find(tensor, _PLACED, tensor)


def place_dataset(dataset: Any, types: Sequence[Any]) -> None:
    """Make TensorFlow place the functions of a dataset with elements of such types, by an iterator over it."""
    handle, host = context.context()._handle, find_host()
    attrs = (
        "output_types",
        [tf.as_dtype(each).as_datatype_enum for each in types],
        "output_shapes",
        [None] * len(types),
    )
    (iterator,) = _execute(handle, host, "AnonymousIteratorV3", [], attrs, 1)
    _execute(handle, host, "MakeIterator", [dataset, iterator], (), 0)


def _list_types(inputs: Sequence[Any], attrs: Sequence[Any]) -> Sequence[Any]:
    """Return the types of a dataset's elements: an attribute of the op that makes it, or as of the dataset it takes."""
    named = [value for name, value in zip(attrs[::2], attrs[1::2], strict=True) if name in kernel_types.TYPE_ATTRS]
    types: Sequence[Any] = named[0] if named else vars(inputs[0])[_TYPES]
    return types


def _has_twin(tensor: Any) -> bool:
    """Return whether a dataset has a twin, or a variable a copy in host memory."""
    return find_twin(tensor) is not tensor or is_gpu_variable(tensor)


def _list_read(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """List the variables of GPUs that are among inputs, and those that datasets and iterators among them read."""
    found = [(tensor,) if is_gpu_variable(tensor) else _find(tensor, _READ, ()) for tensor in inputs]
    return tuple(chain.from_iterable(found))


def _find(tensor: Any, attribute: str, default: Any) -> Any:
    return getattr(tensor, "__dict__", {}).get(attribute, default)
