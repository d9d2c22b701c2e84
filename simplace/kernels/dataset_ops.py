"""What the kernels of dataset ops do with the functions that they call, as their C++ below core/kernels/data says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.graph.function_names import split_dataset_op
from simplace.kernels.registry import OpDef, argument_ranges

INITIALIZES = frozenset({"MakeIterator", "MultiDeviceIteratorInit"})  # their inputs begin with a dataset, an iterator
_WITHOUT_DEFAULT = "ReduceDataset"  # its kernel sets use_default_device to false (reduce_dataset_op.cc)
_DATASET = re.compile(r"(?:DatasetFromGraph|.*Dataset(?:V[0-9]+)?)")
_BATCHES = frozenset({"BatchDataset", "PaddedBatchDataset", "ParallelBatchDataset", "MapAndBatchDataset"})


def calls_captured(op_def: OpDef | None) -> bool:
    """Return whether the kernel of an op calls functions as datasets do."""
    return op_def is not None and "Dataset" in op_def.name and "func" in op_def.attr_types.values()


def is_dataset_op(op: str, definition: OpDef | None, out_types: Sequence[int]) -> bool:
    """Return whether an op makes a dataset (DatasetOpKernel::IsDatasetOp, tensorflow/core/framework/dataset.cc).

    The definition decides, where there is one: what a walk through a dataset returns may be a variant, too. The types
    of the outputs count for an eager op that is run as a function, `__wrapped__MapDataset_device_...`.
    """
    declared = out_types if definition is None else [arg.type for arg in definition.outputs]
    if list(declared) != [DataType.DT_VARIANT]:
        return False
    return _DATASET.fullmatch(op.split("_")[4] if op.startswith("__wrapped__") else op) is not None


def makes_dataset(op_def: OpDef | None) -> bool:
    """Return whether an op of tf.data gives a dataset, also one that it wraps for a copy to another device."""
    if op_def is None or "Dataset" not in op_def.name:
        return False
    return [arg.type for arg in op_def.outputs] == [DataType.DT_VARIANT]


def describe_role(op: str, attr: str) -> str:
    """Return what a function is for the dataset that an op makes, in a few words.

    >>> describe_role("ParallelMapDatasetV2", "f"), describe_role("GroupByWindowDataset", "key_func")
    ('map function', 'group by window key function')
    """
    words = split_dataset_op(op) or [op]
    parts = attr.removesuffix("_func").split("_") if attr.endswith("_func") else []
    return " ".join([*words, *parts, "function"])


def takes_default(op: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether what requests no device in the functions of a dataset op goes to the op's device."""
    return op != _WITHOUT_DEFAULT and attrs.get("use_default_device") is not False


def makes_batches(op: str) -> bool:
    """Return whether a dataset op joins elements into batches: those that its own function returns, if it has one.

    >>> makes_batches("BatchDatasetV2"), makes_batches("PrefetchDataset")
    (True, False)
    """
    return op.removesuffix("V2") in _BATCHES


def count_rewrites(op: str) -> int:
    """Return how often TensorFlow rewrites the functions of an op as part of a dataset's graph before it is used.

    That is once, unless the log tells otherwise (compare/logged_functions.py); an op that itself walks through a
    dataset keeps its own function as it is.
    """
    return 0 if op == _WITHOUT_DEFAULT else 1


def find_captured_slots(op_def: OpDef, attr: str, attrs: Mapping[str, Any]) -> range:
    """Return the inputs of a dataset op that its function `attr` captures."""
    own = (f"{attr}_other_arguments", f"{attr}_other_args")
    ranges = {name: range(start, stop) for name, start, stop in argument_ranges(op_def, op_def.inputs, attrs)}
    return next((ranges[name] for name in (*own, "other_arguments") if name in ranges), range(0))
