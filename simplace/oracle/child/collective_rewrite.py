"""Collective ops of a function or graph replaced by ops of one device: all their members are in it.

The members of a collective are the nodes with one group key and one instance key (tensorflow/core/kernels/
collective_ops.cc), or with one shared name (core/kernels/nccl_ops.cc).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import COLLECTIVE_KEY_INPUTS
from simplace.oracle.child.tf_private import function_pb2

_REDUCE = ("CollectiveReduceV2", "CollectiveReduce", "NcclAllReduce")
_GATHER = ("CollectiveGatherV2", "CollectiveGather")
_OUTPUT = re.compile(r"(.+):\w+:0")  # how a function names the first output of a node
_ONE = tf.compat.v1.AttrValue(i=1)
PAIRWISE = {"Max": "Maximum", "Min": "Minimum", "Mul": "Mul", "max": "Maximum", "min": "Minimum", "prod": "Mul"}


def is_collective(op: str) -> bool:
    """Return whether an op exchanges values with others of its kind."""
    return op in _REDUCE or op in _GATHER


def is_gather(op: str) -> bool:
    """Return whether each member of a collective gets the values of all, one after the other."""
    return op in _GATHER


def replace_collectives(definition: function_pb2.FunctionDef) -> None:
    """Replace every collective whose members are all in the function; others stay as they are."""
    nodes = {node.name: node for node in definition.node_def}
    renamed: dict[str, str] = {}
    for members in _list_collectives(nodes):
        made = _make_concat(members) if is_gather(members[0].op) else _make_reduction(members)
        definition.node_def.extend(made)
        result = f"{made[-1].name}:{_name_output(made[-1].op)}:0"
        for member in members:
            renamed[f"{member.name}:data:0"] = result
            _turn_into_no_op(member)
    if renamed:
        _redirect_inputs(definition, renamed)


def list_replacements(nodes: Mapping[str, Any]) -> list[Any]:
    """Replace every collective whose members are all among a graph's nodes; return the nodes that this takes.

    A member becomes the Identity of what all of them get, and so keeps its name.
    """
    found: list[Any] = []
    for members in _list_collectives(nodes):
        if _count_members(members[0], nodes) != len(members):
            continue
        made = _make_concat(members) if is_gather(members[0].op) else _make_reduction(members)
        for node in made:
            node.input[:] = [_OUTPUT.sub(r"\1", name) for name in node.input]
        for member in members:
            _turn_into_identity(member, made[-1].name)
        found += made
    return found


def _list_collectives(nodes: Mapping[str, Any]) -> list[list[Any]]:
    """List the members of each collective.

    Each replica may get the instance key as an argument of its own, so that only values show which nodes belong
    together: replicas are traced alike, so the first of one device goes with the first of every other, and so on.
    """
    groups: dict[Any, dict[tuple[str, int], list[Any]]] = {}
    count: Counter[Any] = Counter()
    for node in nodes.values():
        if is_collective(node.op):
            key = (
                node.op,
                node.attr["T"].type,
                node.attr["merge_op"].s,
                node.attr["final_op"].s,
                *_find_key(node, nodes),
            )
            place = (node.device, count[key, node.device])
            count[key, node.device] += 1
            groups.setdefault(key, {}).setdefault(place, []).append(node)
    found: dict[Any, list[Any]] = {}
    for key, places in groups.items():
        for (_, number), members in places.items():
            found.setdefault((key, number), []).extend(members)
    return list(found.values())


def _find_key(node: Any, nodes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what all members of a node's collective have in common, and most other nodes have not."""
    if node.op == "NcclAllReduce":
        return (node.attr["shared_name"].s,)
    if node.op in ("CollectiveReduce", "CollectiveGather"):
        return node.attr["group_key"].i, node.attr["instance_key"].i
    return (_trace_source(node.input[2], nodes),)


def _count_members(node: Any, nodes: Mapping[str, Any]) -> int:
    """Return how many members a graph's collective has; 0 where that is computed."""
    if node.op not in COLLECTIVE_KEY_INPUTS:
        return int(node.attr["num_devices" if node.op == "NcclAllReduce" else "group_size"].i)
    source = nodes.get(node.input[COLLECTIVE_KEY_INPUTS[node.op][0]].partition(":")[0])
    if source is None or source.op != "Const":
        return 0
    return int(tf.make_ndarray(source.attr["value"].tensor))


def _trace_source(name: str, nodes: Mapping[str, Any]) -> Any:
    """Return what a key is computed from: a constant's value, or the name of an output."""
    node = nodes.get(name.partition(":")[0])
    while node is not None and node.op == "Identity":
        name = node.input[0]
        node = nodes.get(name.partition(":")[0])
    return node.attr["value"].tensor.SerializeToString() if node is not None and node.op == "Const" else name


def _make_reduction(members: Sequence[Any]) -> list[Any]:
    first = members[0]
    merge = (first.attr["merge_op"].s or first.attr["reduction"].s).decode()
    inputs = [member.input[0] for member in members]
    made = [_make_sum(first, inputs)] if merge in ("Add", "sum") else _make_pairwise(first, inputs, PAIRWISE[merge])
    if first.attr["final_op"].s == b"Div":
        made += _make_division(first, f"{made[-1].name}:{_name_output(made[-1].op)}:0", len(members))
    return made


def _make_sum(first: Any, inputs: Sequence[str]) -> Any:
    return _make_node(f"{first.name}_sum", "AddN", inputs, T=first.attr["T"], N=tf.compat.v1.AttrValue(i=len(inputs)))


def _make_pairwise(first: Any, inputs: Sequence[str], op: str) -> list[Any]:
    made: list[Any] = []
    so_far = inputs[0]
    for i, other in enumerate(inputs[1:]):
        made.append(_make_node(f"{first.name}_{op}_{i}", op, (so_far, other), T=first.attr["T"]))
        so_far = f"{made[-1].name}:z:0"
    return made or [_make_sum(first, inputs)]


def _make_division(first: Any, total: str, count: int) -> list[Any]:
    dtype = first.attr["T"]
    const = _make_node(f"{first.name}_count", "Const", (), dtype=dtype, value=_make_scalar(count, dtype.type))
    return [const, _make_node(f"{first.name}_mean", "RealDiv", (total, f"{const.name}:output:0"), T=dtype)]


def _make_concat(members: Sequence[Any]) -> list[Any]:
    if len(members) == 1:
        return [_make_node(f"{members[0].name}_alone", "AddN", [members[0].input[0]], T=members[0].attr["T"], N=_ONE)]
    first, int32 = members[0], tf.compat.v1.AttrValue(type=tf.int32.as_datatype_enum)
    axis = _make_node(f"{first.name}_axis", "Const", (), dtype=int32, value=_make_scalar(0, int32.type))
    inputs = [*(member.input[0] for member in members), f"{axis.name}:output:0"]
    count = tf.compat.v1.AttrValue(i=len(members))
    return [axis, _make_node(f"{first.name}_concat", "ConcatV2", inputs, T=first.attr["T"], N=count, Tidx=int32)]


def _make_scalar(value: int, dtype: int) -> Any:
    return tf.compat.v1.AttrValue(tensor=tf.make_tensor_proto(value, tf.as_dtype(dtype), ()))


def _make_node(name: str, op: str, inputs: Sequence[str], **attrs: Any) -> Any:
    made = tf.compat.v1.NodeDef(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        made.attr[key].CopyFrom(value)
    return made


def _name_output(op: str) -> str:
    return {"AddN": "sum", "ConcatV2": "output"}.get(op, "z")


def _turn_into_no_op(node: Any) -> None:
    """Keep the node's name, for control edges that start at it; its data inputs become control inputs."""
    waits = [
        *(f"^{name.partition(':')[0]}" for name in node.input if ":" in name),
        *(n for n in node.input if n[0] == "^"),
    ]
    node.op = "NoOp"
    del node.input[:]
    node.input.extend(dict.fromkeys(waits))
    node.attr.clear()


def _turn_into_identity(node: Any, source: str) -> None:
    """Keep the node's name, for what reads it, fetches it or waits for it."""
    node.op = "Identity"
    node.input[:] = [source, *(name for name in node.input if name[0] == "^")]
    dtype = node.attr["T"].type
    node.attr.clear()
    node.attr["T"].type = dtype


def _redirect_inputs(definition: function_pb2.FunctionDef, renamed: Mapping[str, str]) -> None:
    for node in definition.node_def:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
    for key, name in definition.ret.items():
        definition.ret[key] = renamed.get(name, name)
