"""Functions computed on the CPU, after TensorFlow has placed them on emulated GPUs: copies without any device.

Emulated GPUs compute nothing, so what a function returns is computed by a copy of it and of all that it calls, in which
no node requests a device, nothing is colocated and nothing is compiled by XLA. Replicas that would exchange values
(CollectiveReduceV2, NcclAllReduce) do so inside of the copy, which contains all of them.

An iterator may be on a GPU, and so is what takes an element from it. TensorFlow would find the sizes of an element
there, too (heuristic B of placer.cc): the ops that do so request the CPU.

What a dataset calls is placed anew by its kernel, which prefers GPUs in some (ReduceDataset): there each node requests
the CPU, but for those that take a resource, which may be on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import IMPLEMENTS, METADATA, MUST_COMPILE, PREFERRED_DEVICE
from simplace.oracle.child.called_functions import CPU_COPY, list_called, rename_called
from simplace.oracle.child.collective_rewrite import replace_collectives
from simplace.oracle.child.cudnn_layers import LACK, replace_cudnn_layers
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.element_shapes import TAKES, add_shapes_of_elements
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.host_variables import lend_to_host, return_lent
from simplace.oracle.child.merged_calls import MergedCalls, is_call
from simplace.oracle.child.packed_handles import is_packed, list_members, split_arguments, spread_inputs
from simplace.oracle.child.patches import find_original, patch_method
from simplace.oracle.child.tensors import find_host, to_device
from simplace.oracle.child.tf_private import (
    cancellation,
    context,
    core,
    function_pb2,
    op_def_registry,
    pywrap_tfe,
    record,
)

_TAKING = f"{CPU_COPY}taking_"  # the prefix of one that is called, and returns the shapes of elements, too
_PACKED = f"{CPU_COPY}packed_"  # that of one with the handles of packed variables for arguments
_COMPILED = f"{CPU_COPY}xla_"  # that of one that XLA compiles where the program says so
_OF_DATASETS = "simplace_dataset_"  # the prefix of what datasets call
_RESOURCE = tf.resource.as_datatype_enum
_HOST = "/device:CPU:0"
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_COLOCATION = ("_class",)
# Of a function: a call of a copy would become one of the original, if that is for CPUs (implementation_selector.cc).
_STANDS_IN = (IMPLEMENTS, PREFERRED_DEVICE)
_DROPPED = (*_COLOCATION, MUST_COMPILE, "_xla_compile_id")
_LACKS = (
    "No OpKernel was registered",
    "only supports NHWC",
    "only supports the NHWC",
    "Could not find device for node",
    LACK,
)


class CpuFunctions:
    """Make and call the copies of functions."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._known: set[str] = set()
        self._copies: dict[str, list[str]] = {}  # by function
        self._packed: dict[str, int] = {}  # a number for the devices of all packed variables of a call
        self._elements: dict[str, list[tuple[str, int]]] = {}  # by function: what further results are the shapes of
        self._shapes: dict[str, dict[str, list[list[int]]]] = {}  # the same by node, since the first call
        self._merged = MergedCalls(functions.definition)

    def watch(self) -> None:
        """Remove from TensorFlow the copies of each function that the program's own objects remove."""
        patch_method(context.Context, "remove_function", self._remove_copies)

    def _remove_copies(self, remove: Any) -> Any:
        def remove_with_copies(context_: Any, name: Any) -> None:
            remove(context_, name)
            for copy in self._copies.pop(tf.compat.as_str(name), ()):
                self._known.discard(copy)
                if context_.has_function(copy):
                    remove(context_, copy)

        return remove_with_copies

    def call(
        self, name: str, inputs: Sequence[Any], devices: Mapping[str, str], *, is_compiled: bool = False
    ) -> list[Any]:
        """Compute a function; raise what TensorFlow raises, also at the end of an iterator.

        `devices` are those that its nodes were placed on, by name. XLA compiles nothing, or what the program has it
        compile.
        """
        prefix = _TAKING if self._takes_open_elements(name) else CPU_COPY
        prefix = _COMPILED if is_compiled else prefix
        packed = [list_members(tensor) for tensor in inputs if is_packed(tensor)]
        if packed:
            prefix = f"{_PACKED}{self._packed.setdefault(str(packed), len(self._packed))}_"
        self._add_copy(name, prefix, partial(split_arguments, inputs=inputs, devices=devices) if packed else None)
        results = len(self._functions.definition(name).signature.output_arg)
        elements = self._elements.get(name, ()) if prefix == _TAKING else ()
        handle, executor = context.context()._handle, context.context().function_call_options.executor_type
        attrs = ("config_proto", b"", "executor_type", executor or "")
        own = list(spread_inputs(inputs))
        with lend_to_host(own) as lent, record.stop_recording():
            given = [to_device(tensor, find_host()) for tensor in lent]
            try:
                made = _execute_function(handle, find_host(), prefix + name, given, attrs, results + len(elements))
                self._note_elements(name, made[results:])
                return return_lent(made[:results], lent, own)
            except core._NotOkStatusException as error:  # what older versions raise
                error.message = error.message.replace(prefix, "").replace(CPU_COPY, "")
                raise
            except tf.errors.OpError as error:
                error._message = error._message.replace(prefix, "").replace(CPU_COPY, "")
                raise

    def take_elements(self, name: str) -> dict[str, list[list[int]]]:
        """Return the shapes of what nodes of a function took from iterators when it was computed first."""
        return self._shapes.get(name, {})

    def _takes_open_elements(self, name: str) -> bool:
        nodes = self._functions.definition(name).node_def
        return any(node.op == TAKES and self._functions.leaves_open(name, node.name) for node in nodes)

    def _note_elements(self, name: str, shapes: Sequence[Any]) -> None:
        if shapes and name not in self._shapes:
            found = self._shapes[name] = {}
            for (node, _), shape in zip(self._elements[name], shapes, strict=True):
                found.setdefault(node, []).append(shape.numpy().tolist())

    def copy_for_datasets(self, name: str) -> str:
        """Return the name of a copy of a function that a dataset may call."""
        return self._add_copy(name, _OF_DATASETS)

    def _add_copy(self, name: str, prefix: str, adapt: Callable[[Any], None] | None = None) -> str:
        """Add to TensorFlow the copy of a function, which may be adapted, after what it calls; return its name."""
        if prefix + name in self._known:
            return prefix + name
        self._known.add(prefix + name)
        self._copies.setdefault(name, []).append(prefix + name)
        made = function_pb2.FunctionDef()
        made.CopyFrom(self._merged.definition(name))
        self._merged.merge(made)
        replace_collectives(made)
        made.signature.name = prefix + name
        dropped = _COLOCATION if prefix == _COMPILED else _DROPPED
        _drop_attributes(made.attr, (*dropped, *_STANDS_IN))
        for node in made.node_def:
            is_called = self._exists(node.op)
            is_of_datasets = prefix == _OF_DATASETS or not (is_called or is_call(node.op))
            inner = _OF_DATASETS if is_of_datasets else _COMPILED if prefix == _COMPILED else CPU_COPY
            copies = {each: self._add_copy(each, inner) for each in list_called([node], self._exists)}
            rename_called(node, copies)
            is_bound = is_called or _takes_resource(node.op)
            node.device = _HOST if node.op in METADATA or (prefix == _OF_DATASETS and not is_bound) else ""
            _drop_attributes(node.attr, dropped)
        replace_cudnn_layers(made)
        if adapt is not None:
            adapt(made)
        if prefix == _TAKING:
            self._elements[name] = list(add_shapes_of_elements(made, partial(self._functions.leaves_open, name)))
        context.context().add_function_def(made)
        return prefix + name

    def _exists(self, name: str) -> bool:
        return self._merged.exists(name) or self._functions.exists(name)


def _execute_function(handle: Any, device: str, function: str, inputs: list[Any], attrs: Any, results: int) -> Any:
    """Call a function, so that the program can cancel it as it could cancel its own."""
    manager = cancellation.context()
    if manager is None:
        return find_original(pywrap_tfe, "TFE_Py_Execute")(handle, device, function, inputs, attrs, results)
    execute = find_original(pywrap_tfe, "TFE_Py_ExecuteCancelable")
    return execute(handle, device, function, inputs, attrs, manager._impl, results)


def lacks_kernel(error: Any) -> bool:
    """Return whether an error means that the CPU has no kernel for an op: there may be one for GPUs only."""
    return any(text in str(error) for text in _LACKS) or computes_nothing(error)


def explain_lack(error: Any) -> str:
    """Return a sentence on the node that the CPU has no kernel for, or else the first line of the error."""
    said = str(getattr(error, "message", error))
    if LACK in said:
        return f"it has {LACK}."
    node = _NODE.search(said) if computes_nothing(error) else None
    if node:
        return f"{node[1]} has a kernel for GPUs only."
    return said.partition("\n")[0].partition(" [[")[0].rstrip(". ") + "."


def _drop_attributes(attrs: Any, dropped: Sequence[str]) -> None:
    for key in dropped:
        attrs.pop(key, None)


def _takes_resource(op: str) -> bool:
    """Return whether an op takes a resource, which is where it has to run."""
    definition = op_def_registry.get(op)
    return definition is not None and any(arg.type == _RESOURCE for arg in definition.input_arg)
