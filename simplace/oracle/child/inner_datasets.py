"""Datasets that a dataset's function makes: TensorFlow places their functions by iterators that take no element.

What a dataset with a twin yields is made by the twin, and so are the datasets inside of it. TensorFlow places what
these call when it makes an iterator over one of them (kernels/data/flat_map_dataset_op.cc and its like), so a function
is called that makes them as the program's does, from zeros for an element, and an iterator over each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import CALLS_OF_PYTHON
from simplace.oracle.child import kernel_types
from simplace.oracle.child.called_functions import CPU_COPY
from simplace.oracle.child.captured_inputs import find_captured
from simplace.oracle.child.dataset_options import add_options, fuse_as_inside, fuses_functions
from simplace.oracle.child.dataset_walks import list_needed, make_empty_dataset
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.own_executor import run_at_once
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.shared_rendezvous import run_alone
from simplace.oracle.child.tensors import find_host, input_device, make_placeholder
from simplace.oracle.child.tf_private import context, function_pb2, pywrap_tfe

_ITERATING = f"{CPU_COPY}iterating_"  # the prefix of a function that makes the datasets of another one
_HOST = "/device:CPU:0"
_READS = "ReadVariableOp"
_SHAPES = "_output_shapes"
_execute = run_alone(find_original(pywrap_tfe, "TFE_Py_Execute"))


@dataclass(frozen=True, slots=True)
class Maker:
    """Record of a function that a dataset calls, and of the tensors that it captures, the last of its arguments."""

    function: str
    captured: tuple[Any, ...]


class InnerDatasets:
    """Make TensorFlow place what the datasets call that functions make, once for each function and set of devices."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._placed: set[tuple[str, ...]] = set()

    def list_makers(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Iterator[Maker]:
        """Yield the functions of an op that makes a dataset, given the names of them among its attributes."""
        for attr in kernel_types.find_op_def(op).attr:
            if attr.type == "func" and self._functions.exists(attrs.get(attr.name, "")):
                yield Maker(attrs[attr.name], tuple(find_captured(op, attr.name, inputs, attrs)))

    def place(self, maker: Maker, options: bytes = b"") -> None:
        """Make TensorFlow place what the datasets call that a function makes, at any depth.

        `options` are those of the dataset that calls it, by which tf.data may fuse functions.
        """
        fusing = fuse_as_inside(options) if fuses_functions(options) else b""
        key = (maker.function, str(fusing), *(input_device(tensor, find_host()) for tensor in maker.captured))
        if key in self._placed:
            return
        self._placed.add(key)
        definition = self._functions.definition(maker.function)
        made = _make_iterating(definition, fusing)
        if made is None:
            return
        context.context().add_function_def(made)
        attrs = ("config_proto", b"", "executor_type", "")
        args = [*_make_elements(definition, len(maker.captured)), *maker.captured]
        with run_at_once(), suppress(*FAILURES):  # where nothing can be computed from zeros, or on emulated GPUs
            _execute(context.context()._handle, find_host(), made.signature.name, args, attrs, 0)
        self.place_in(definition, maker.captured, options)

    def place_in(self, definition: Any, captured: Sequence[Any], options: bytes = b"") -> None:
        """Make TensorFlow place what the functions make and call that the datasets of a function call."""
        for maker in self._list_makers_in(definition, captured):
            self.place(maker, options)

    def _list_makers_in(self, definition: Any, captured: Sequence[Any]) -> Iterator[Maker]:
        """Yield the functions of the datasets that a function makes, those of which all resources are known."""
        for node in definition.node_def:
            if kernel_types.makes_dataset(node.op):
                inputs = [_find_given(definition, name, captured) for name in node.input if not name.startswith("^")]
                for maker in self.list_makers(node.op, inputs, _read_attrs(node)):
                    args = self._functions.definition(maker.function).signature.input_arg
                    types = [tf.as_dtype(arg.type) for arg in args[len(args) - len(maker.captured) :]]
                    given = [_fill(*each) for each in zip(maker.captured, types, strict=True)]
                    if all(tensor is not None for tensor in given):
                        yield Maker(maker.function, tuple(given))


def _make_iterating(definition: function_pb2.FunctionDef, options: bytes) -> function_pb2.FunctionDef | None:
    """Return a function that makes the datasets of another one, and iterators over them; None where there are none.

    There is none either where they depend on something that has an effect.
    """
    datasets = [node for node in definition.node_def if kernel_types.makes_dataset(node.op)]
    taken = {name.partition(":")[0] for node in datasets for name in node.input}
    last = [node for node in datasets if node.name not in taken]
    nodes = list_needed(definition, [node.name for node in last])
    if not last or any(_has_effect(node.op) for node in nodes):
        return None
    made = function_pb2.FunctionDef()
    made.signature.name = _ITERATING + definition.signature.name
    made.signature.input_arg.extend(definition.signature.input_arg)
    for node in nodes:
        copy = made.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(each for each in node.input if not each.startswith("^"))
    for node in last:
        name = _add_iterator(made, node, options)
        made.signature.control_output.append(name)
        made.control_ret[name] = name
    return made


def _add_iterator(made: function_pb2.FunctionDef, dataset: Any, options: bytes) -> str:
    """Add an iterator over a dataset, with options if any; return the name of the node that initializes it."""
    prefix = f"{dataset.name}/simplace"
    tensor = f"{dataset.name}:{kernel_types.find_op_def(dataset.op).output_arg[0].name}:0"
    if options:
        tensor = add_options(made, dataset, tensor, options)
    iterator = made.node_def.add(name=f"{prefix}/iterator", op="AnonymousIteratorV3", device=_HOST)
    types = next(dataset.attr[name].list.type for name in kernel_types.TYPE_ATTRS if name in dataset.attr)
    for dtype in types:
        iterator.attr["output_types"].list.type.append(dtype)
        iterator.attr["output_shapes"].list.shape.add(unknown_rank=True)
    start = made.node_def.add(name=f"{prefix}/start", op="MakeIterator", device=_HOST)
    start.input.extend([tensor, f"{iterator.name}:handle:0"])
    return str(start.name)


def _has_effect(op: str) -> bool:
    """Return whether an op may do more than compute, read a variable or make a dataset, such as to run Python."""
    definition = kernel_types.find_op_def(op)
    if definition is None or op in CALLS_OF_PYTHON:
        return True
    return definition.is_stateful and op != _READS and not kernel_types.makes_dataset(op)


def _make_elements(definition: Any, captured: int) -> Iterator[Any]:
    """Yield zeros for the arguments of a function that are no captured tensors."""
    args = definition.signature.input_arg
    for i, arg in enumerate(args[: len(args) - captured]):
        shapes = definition.arg_attr[i].attr[_SHAPES].list.shape if i in definition.arg_attr else ()
        yield _make_zeros(tf.as_dtype(arg.type), tf.TensorShape(shapes[0] if shapes else []))


def _make_zeros(dtype: Any, shape: Any) -> Any:
    return make_empty_dataset() if dtype == tf.variant else make_placeholder(find_host(), dtype, shape)


def _find_given(definition: Any, name: str, captured: Sequence[Any]) -> Any:
    """Return the captured tensor that is an input of a node, None for one that is computed."""
    nodes = {node.name: node for node in definition.node_def}
    name = name.partition(":")[0]
    while name in nodes and nodes[name].op == "Identity":
        name = nodes[name].input[0].partition(":")[0]
    args = [arg.name for arg in definition.signature.input_arg]
    place = args.index(name) - len(args) + len(captured) if name in args else -1
    return captured[place] if place >= 0 else None


def _fill(tensor: Any, dtype: Any) -> Any:
    """Return a captured tensor, or zeros for one that is not known; None for a resource that is not known."""
    if tensor is not None or dtype == tf.resource:
        return tensor
    return _make_zeros(dtype, tf.TensorShape([]))


def _read_attrs(node: Any) -> dict[str, Any]:
    """Return a node's attributes as those of an eager op: lists of types, numbers and the names of functions."""
    return {name: _read_attr(value) for name, value in node.attr.items()}


def _read_attr(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return value.func.name if kind == "func" else list(value.list.type) if kind == "list" else value.i
