"""Ops that walk through a dataset and call a function that TensorFlow places on a GPU: placed by a walk of no steps.

TensorFlow places the function, and those of the dataset, before the first step (kernels/data/reduce_dataset_op.cc). An
emulated GPU would end that step at some op, when others have had their effect. So TensorFlow is given a dataset that
has no elements, and what the op returns is computed with copies of the functions on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import tensorflow as tf

from simplace.graph.algorithm import reverse_reachable
from simplace.oracle.child import kernel_types
from simplace.oracle.child.called_functions import CPU_COPY
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.own_executor import run_at_once
from simplace.oracle.child.own_work import INSIDE
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.shared_rendezvous import run_alone
from simplace.oracle.child.tensors import find_host
from simplace.oracle.child.tf_private import context, function_pb2, pywrap_tfe

WALKS = frozenset({"ReduceDataset"})
_PLACING = f"{CPU_COPY}placing_"  # the prefix of a function that has nothing but the walks of another one
_READS = "ReadVariableOp"
_execute = run_alone(find_original(pywrap_tfe, "TFE_Py_Execute"))


def without_elements(inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs of a walk with an empty dataset."""
    return [make_empty_dataset(), *inputs[1:]]


def make_empty_dataset() -> Any:
    """Return the variant of a dataset without elements."""
    with INSIDE, tf.device(find_host()):
        return tf.raw_ops.RangeDataset(start=0, stop=0, step=1, output_types=[tf.int64], output_shapes=[[]])


def place_walks(definition: function_pb2.FunctionDef, inputs: Sequence[Any]) -> None:
    """Make TensorFlow place what the walks in a function call, where nothing else has to be computed for it."""
    made = _make_placing(definition)
    if made is None:
        return
    context.context().add_function_def(made)
    attrs = ("config_proto", b"", "executor_type", "")
    with run_at_once(), suppress(*FAILURES):  # what an emulated GPU would have to compute for a walk ends this
        _execute(context.context()._handle, find_host(), made.signature.name, list(inputs), attrs, 0)


def _make_placing(definition: function_pb2.FunctionDef) -> function_pb2.FunctionDef | None:
    """Return a function with the walks of another one, through datasets that are made as there, without elements."""
    walks = [node.name for node in definition.node_def if node.op in WALKS]
    if not walks:
        return None
    nodes = list_needed(definition, walks)
    if any(_has_effect(node.op) for node in nodes):
        return None
    made = function_pb2.FunctionDef()
    made.signature.name = _PLACING + definition.signature.name
    made.signature.input_arg.extend(definition.signature.input_arg)
    made.signature.control_output.extend(walks)
    for name in walks:
        made.control_ret[name] = name
    for node in nodes:
        copy = made.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(each for each in node.input if not each.startswith("^"))
        if node.op in WALKS:
            copy.input[0] = _add_empty(made, node)
    return made


def list_needed(definition: function_pb2.FunctionDef, names: Sequence[str]) -> list[Any]:
    """Return nodes and those that their tensors are computed from."""
    data = {node.name: [each for each in node.input if not each.startswith("^")] for node in definition.node_def}
    needed = reverse_reachable(names, lambda name: (each.partition(":")[0] for each in data.get(name, ())))
    return [node for node in definition.node_def if node.name in needed]


def _has_effect(op: str) -> bool:
    """Return whether an op may do more than read a variable, make a dataset, or walk through one."""
    definition = kernel_types.find_op_def(op)
    if definition is None or not definition.is_stateful or op == _READS or op in WALKS:
        return definition is None
    return all(arg.type != tf.variant.as_datatype_enum for arg in definition.output_arg)


def _add_empty(made: function_pb2.FunctionDef, walk: Any) -> str:
    """Add a dataset that makes the iterator of a walk's dataset and takes nothing from it; return its tensor's name."""
    prefix = f"{walk.name}/simplace"
    for name, value in (("nothing", 0), ("one", 1)):
        constant = made.node_def.add(name=f"{prefix}/{name}", op="Const")
        constant.attr["dtype"].type = tf.int64.as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int64))
    chosen = made.node_def.add(name=f"{prefix}/chosen", op="RangeDataset")
    chosen.input.extend(f"{prefix}/{name}:output:0" for name in ("nothing", "nothing", "one"))
    chosen.attr["output_types"].list.type.append(tf.int64.as_datatype_enum)
    chosen.attr["output_shapes"].list.shape.add()
    empty = made.node_def.add(name=f"{prefix}/empty", op="DirectedInterleaveDataset")
    empty.input.extend([f"{chosen.name}:handle:0", walk.input[0]])
    empty.attr["N"].i = 1
    for dtype in _list_element_types(walk):
        empty.attr["output_types"].list.type.append(dtype)
        empty.attr["output_shapes"].list.shape.add(unknown_rank=True)
    return f"{empty.name}:handle:0"


def _list_element_types(walk: Any) -> Iterator[int]:
    args = context.context().get_function_def(walk.attr["f"].func.name).signature.input_arg
    before, after = len(walk.attr["Tstate"].list.type), len(walk.attr["Targuments"].list.type)
    return (arg.type for arg in args[before : len(args) - after])
