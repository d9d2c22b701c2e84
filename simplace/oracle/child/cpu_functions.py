"""Functions computed on the CPU, after TensorFlow has placed them on emulated GPUs: copies without any device.

Emulated GPUs compute nothing, so what a function returns is computed by a copy of it and of all that it calls, in which
no node requests a device, nothing is colocated and nothing is compiled by XLA. Replicas that would exchange values
(CollectiveReduceV2, NcclAllReduce) do so inside of the copy, which contains all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import MUST_COMPILE
from simplace.oracle.child.collectives import replace_collectives
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.tensors import find_host, to_device
from simplace.oracle.child.tf_private import cancellation, context, core, function_pb2, pywrap_tfe, record

_PREFIX = "simplace_cpu_"
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_DROPPED = ("_class", MUST_COMPILE, "_xla_compile_id")
_LACKS = (
    "No OpKernel was registered",
    "only supports NHWC",
    "only supports the NHWC",
    "Could not find device for node",
)


class CpuFunctions:
    """Make and call the copies of functions."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._known: set[str] = set()

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """Compute a function; raise what TensorFlow raises, also at the end of an iterator."""
        self._add_copies(name)
        results = len(self._functions.definition(name).signature.output_arg)
        handle, attrs = context.context()._handle, ("config_proto", b"", "executor_type", "")
        with lend_to_host(inputs) as lent, record.stop_recording():
            given = [to_device(tensor, find_host()) for tensor in lent]
            try:
                return list(_execute_function(handle, find_host(), _PREFIX + name, given, attrs, results))
            except core._NotOkStatusException as error:  # what older versions raise
                error.message = error.message.replace(_PREFIX, "")
                raise
            except tf.errors.OpError as error:
                error._message = error._message.replace(_PREFIX, "")
                raise

    def _add_copies(self, name: str) -> None:
        names = [each for each in self._functions.reached(name) if each not in self._known]
        for each in reversed(names):  # a function comes after those that it calls
            context.context().add_function_def(_copy_definition(self._functions.definition(each), self._functions))
        self._known.update(names)


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
    node = _NODE.search(said) if computes_nothing(error) else None
    if node:
        return f"{node[1]} has a kernel for GPUs only."
    return said.partition("\n")[0].partition(" [[")[0].rstrip(". ") + "."


def _copy_definition(definition: function_pb2.FunctionDef, functions: Functions) -> function_pb2.FunctionDef:
    """Copy one function without devices, its references to other functions renamed."""
    made = function_pb2.FunctionDef()
    made.CopyFrom(definition)
    made.signature.name = _PREFIX + made.signature.name
    for key in _DROPPED:
        made.attr.pop(key, None)
    replace_collectives(made)
    for node in made.node_def:
        node.device = ""
        if functions.exists(node.op):
            node.op = _PREFIX + node.op
        for key in _DROPPED:
            node.attr.pop(key, None)
        for value in node.attr.values():
            _rename_functions(value, functions)
    return made


def _rename_functions(value: Any, functions: Functions) -> None:
    """Rename the functions that an attribute refers to."""
    kind = value.WhichOneof("value")
    called: Iterable[Any] = (value.func,) if kind == "func" else value.list.func if kind == "list" else ()
    for func in called:
        if functions.exists(func.name):
            func.name = _PREFIX + func.name
