"""The options of datasets by which tf.data fuses functions: serialized, where a later message changes a former one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplace.oracle.child.tf_private import dataset_options_pb2

_OP = "OptionsDataset"
_ATTR = "serialized_options"
_FUSIONS = ("map_fusion", "filter_fusion", "map_and_filter_fusion")


def read_options(op: str, attrs: Mapping[str, Any]) -> bytes:
    """Return the options that an op sets for a dataset, b"" for another op."""
    found = attrs.get(_ATTR, b"") if op == _OP else b""
    return found.encode() if isinstance(found, str) else found


def fuses_functions(options: bytes) -> bool:
    """Return whether options let tf.data fuse functions."""
    found = dataset_options_pb2.Options.FromString(options).optimization_options
    return any(getattr(found, name) for name in _FUSIONS)


def keep_functions(options: bytes) -> bytes:
    """Return the same options but that functions stay as they are."""
    added = dataset_options_pb2.Options()
    added.optimization_options.MergeFrom(dataset_options_pb2.OptimizationOptions(**dict.fromkeys(_FUSIONS, False)))
    return bytes(options + added.SerializeToString())


def fuse_as_inside(options: bytes) -> bytes:
    """Return options by which the functions of a dataset are fused as they are where another one's function makes it.

    There tf.data makes no map parallel (grappler/optimizers/data/map_parallelization.cc).
    """
    added = dataset_options_pb2.Options()
    added.optimization_options.map_parallelization = False
    return bytes(options + added.SerializeToString())


def add_options(definition: Any, dataset: Any, output: str, options: bytes) -> str:
    """Add a node to a function that sets the options of a dataset which a node makes; return its tensor's name."""
    made = definition.node_def.add(name=f"{dataset.name}/simplace/options", op=_OP)
    made.input.append(output)
    made.attr[_ATTR].s = options
    for key, names in (("output_types", ("output_types", "Toutput_types")), ("output_shapes", ("output_shapes",))):
        made.attr[key].CopyFrom(next(dataset.attr[name] for name in names if name in dataset.attr))
    return f"{made.name}:handle:0"


def exchange_options(op: str, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an op's attributes, names and values in turn, with options that keep functions as they are.

    What tf.data fuses of copies of functions would have the names that it has for the program's own.
    """
    if op != _OP:
        return attrs
    i = attrs.index(_ATTR) + 1
    return (*attrs[:i], keep_functions(read_options(op, {_ATTR: attrs[i]})), *attrs[i + 1 :])
