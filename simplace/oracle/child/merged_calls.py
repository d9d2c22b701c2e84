"""Calls of replicas merged where what they call exchanges values: one If, While or PartitionedCall for all replicas.

A replica that reduces or gathers inside of a branch, a loop or a function of its own (as IndexedSlices are reduced:
tensorflow/python/distribute/cross_device_utils.py) meets the others there, each in a function of its own. Merged, these
functions are one, in which all members of the collective are at hand. Replicas take the same branch and make the same
number of rounds, or else they would wait for each other without end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.collective_rewrite import is_collective
from simplace.oracle.child.tf_private import function_pb2

Fetch = Callable[[str], function_pb2.FunctionDef]

_BODIES = {
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
}
_LISTS = ("Tin", "Tout", "T", "output_shapes")  # attributes with an entry for each input or output
_DROPPED = ("_read_only_resource_inputs", "_num_original_outputs")  # attributes that number the inputs or outputs


def is_call(op: str) -> bool:
    """Return whether an op calls functions whose nodes are placed with those around it."""
    return op in _BODIES


class MergedCalls:
    """Merge the calls of functions, and keep the functions that this makes."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._made: dict[str, function_pb2.FunctionDef] = {}
        self._exchanging: dict[str, bool] = {}

    def definition(self, name: str) -> function_pb2.FunctionDef:
        """Return a function, one that merging has made among them."""
        return self._made[name] if name in self._made else self._fetch(name)

    def exists(self, name: str) -> bool:
        """Return whether merging has made a function."""
        return name in self._made

    def merge(self, definition: function_pb2.FunctionDef) -> None:
        """Merge the calls in one function."""
        for nodes in self._list_groups(definition):
            if len(nodes) > 1 and not _depend_on_each_other(definition, nodes):
                self._merge_nodes(definition, nodes)

    def _list_groups(self, definition: function_pb2.FunctionDef) -> list[list[Any]]:
        """List the calls of replicas that belong together: the first one of each device, the second, and so on."""
        groups: dict[Any, list[Any]] = {}
        count: Counter[Any] = Counter()
        for node in definition.node_def:
            if node.op in _BODIES and any(self._exchanges(node.attr[key].func.name) for key in _BODIES[node.op]):
                types = (node.attr[each].SerializeToString() for each in ("Tin", "Tout", "T") if each in node.attr)
                key = (node.op, *types)
                groups.setdefault((key, count[key, node.device]), []).append(node)
                count[key, node.device] += 1
        return list(groups.values())

    def _exchanges(self, name: str) -> bool:
        """Return whether a function has a collective, at any depth."""
        if name not in self._exchanging:
            self._exchanging[name] = False
            nodes = self.definition(name).node_def
            self._exchanging[name] = any(
                is_collective(node.op)
                or (node.op in _BODIES and any(self._exchanges(node.attr[key].func.name) for key in _BODIES[node.op]))
                for node in nodes
            )
        return self._exchanging[name]

    def _merge_nodes(self, definition: function_pb2.FunctionDef, nodes: Sequence[Any]) -> None:
        """Put one call in the place of several."""
        first = nodes[0]
        made = tf.compat.v1.NodeDef()
        made.CopyFrom(first)
        made.name = f"{first.name}_merged"
        for key in _BODIES[first.op]:
            bodies = [self.definition(node.attr[key].func.name) for node in nodes]
            is_cond = key == "cond"
            made.attr[key].func.name = self._merge_bodies(bodies, is_cond=is_cond)
        for key in _LISTS:
            if key in made.attr:
                for node in nodes[1:]:
                    made.attr[key].list.MergeFrom(node.attr[key].list)
        for key in _DROPPED:
            made.attr.pop(key, None)
        own = 1 if "If" in first.op else 0  # the condition: that of the first stands for all
        data = [name for i, node in enumerate(nodes) for name in _data(node)[own if i else 0 :]]
        members = {f"^{node.name}" for node in nodes}
        control = (name for node in nodes for name in node.input if name[0] == "^" and name not in members)
        made.input[:] = [*data, *dict.fromkeys(control)]
        _redirect(definition, made.name, nodes)
        for node in nodes:
            definition.node_def.remove(node)
        definition.node_def.append(made)

    def _merge_bodies(self, bodies: Sequence[Any], *, is_cond: bool) -> str:
        """Make one function of several, side by side; return its name. Of conditions the first counts."""
        made = function_pb2.FunctionDef()
        made.signature.name = f"merged_{len(self._made)}_{bodies[0].signature.name}"
        made.signature.is_stateful = any(body.signature.is_stateful for body in bodies)
        for number, body in enumerate(bodies):
            own = body if not is_cond or number == 0 else _without_nodes(body)
            _add_body(made, own, f"r{number}_", f"replica {number}")
        self._made[made.signature.name] = made
        return str(made.signature.name)


def _without_nodes(body: Any) -> Any:
    """Return a function with the same arguments that computes nothing."""
    made = function_pb2.FunctionDef()
    made.signature.input_arg.extend(body.signature.input_arg)
    return made


def _add_body(made: Any, body: Any, prefix: str, place: str) -> None:
    """Add one function's arguments, nodes and results; `place` stands for the device of its nodes from now on."""
    offset = len(made.signature.input_arg)
    ours, theirs = made.signature, body.signature
    for args, into in ((theirs.input_arg, ours.input_arg), (theirs.output_arg, ours.output_arg)):
        for arg in args:
            into.add().CopyFrom(arg)
            into[-1].name = prefix + arg.name
    for index, attrs in body.arg_attr.items():
        made.arg_attr[index + offset].CopyFrom(attrs)
    for node in body.node_def:
        added = made.node_def.add()
        added.CopyFrom(node)
        added.name, added.device = prefix + node.name, place
        added.input[:] = [_prefixed(name, prefix) for name in node.input]
    for key, name in body.ret.items():
        made.ret[prefix + key] = _prefixed(name, prefix)
    for key, name in body.control_ret.items():
        made.control_ret[prefix + key] = prefix + name
        made.signature.control_output.append(prefix + key)


def _prefixed(name: str, prefix: str) -> str:
    return f"^{prefix}{name[1:]}" if name[0] == "^" else prefix + name


def _data(node: Any) -> list[str]:
    return [name for name in node.input if name[0] != "^"]


def _redirect(definition: Any, name: str, nodes: Sequence[Any]) -> None:
    """Make those that take from the nodes take from the one that stands for them."""
    renamed: dict[str, str] = {}
    offset = 0
    for node in nodes:
        renamed[f"^{node.name}"] = f"^{name}"
        outputs = len((node.attr["Tout"] if "Tout" in node.attr else node.attr["T"]).list.type)
        for i in range(outputs):
            renamed[f"{node.name}:output:{i}"] = f"{name}:output:{offset + i}"
        offset += outputs
    for node in definition.node_def:
        for i, each in enumerate(node.input):
            node.input[i] = renamed.get(each, each)
    for key, each in definition.ret.items():
        definition.ret[key] = renamed.get(each, each)
    for key, each in definition.control_ret.items():
        definition.control_ret[key] = renamed.get(f"^{each}", f"^{each}")[1:]


def _depend_on_each_other(definition: Any, nodes: Sequence[Any]) -> bool:
    """Return whether one of the nodes needs another, other than by a control edge from it."""
    by_name = {node.name: node for node in definition.node_def}
    members = {node.name for node in nodes}
    waiting = [producer for node in nodes for producer in _producers(node, by_name) if producer.name not in members]
    taken = {name.partition(":")[0] for node in nodes for name in _data(node)}
    waiting += [by_name[name] for name in taken & members]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node.name in members:
            return True
        if node.name not in seen:
            seen.add(node.name)
            waiting += _producers(node, by_name)
    return False


def _producers(node: Any, by_name: Mapping[str, Any]) -> Iterator[Any]:
    for name in node.input:
        producer = by_name.get(name.lstrip("^").partition(":")[0])
        if producer is not None:
            yield producer
