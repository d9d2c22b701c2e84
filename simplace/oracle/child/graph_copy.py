"""A copy of a session's graph with each node on a CPU, which grows as the graph does.

In it collectives are ops of one device, and what is called on a GPU by its name is called on the CPU of its task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import IMPLEMENTS, PREFERRED_DEVICE
from simplace.oracle.child.called_functions import CPU_COPY, rename_called
from simplace.oracle.child.collective_rewrite import is_collective, list_replacements

_COLOCATION = "_class"
_REMOTE_CALL = "RemoteCall"


def needs_copy(graph: Any) -> bool:
    """Return whether some op of a graph, or one still to come, can run without GPUs only in a copy.

    Collectives come where a second GPU or CPU has been asked for.
    """
    types = {op.type for op in graph.get_operations()}
    if _REMOTE_CALL in types or any(map(is_collective, types)):
        return True
    return any(_is_second(device) for device in {op.device for op in graph.get_operations()})


def copy_to_cpus(graph: Any, copy: Any, homes: Mapping[str, str]) -> None:
    """Add to a copy of a graph what it lacks, each node on a CPU: of the task that `homes` has for it, by name."""
    if copy.version >= graph.version:
        return
    known = {op.name for op in copy.get_operations()}
    definition = graph.as_graph_def()
    new = [node for node in definition.node if node.name not in known]
    nodes = {node.name: node for node in definition.node}
    new += [*list_replacements({node.name: node for node in new}), *_list_targets(new, nodes)]
    del definition.node[:]
    definition.node.extend(new)
    copies = _copy_functions(definition.library)
    given: dict[str, Any] = {}
    waits: list[tuple[str, str]] = []
    for node in definition.node:
        rename_called(node, copies)
        node.device = _name_cpu(homes.get(node.name, node.device))
        node.attr.pop(_COLOCATION, None)  # all have a device
        inputs = [name for name in node.input if name.removeprefix("^").partition(":")[0] in known]
        waits += [(node.name, name[1:]) for name in inputs if name.startswith("^")]
        tensors = (name if ":" in name else f"{name}:0" for name in inputs if not name.startswith("^"))
        given |= {name: copy.get_tensor_by_name(name) for name in tensors}
        kept = [name for name in node.input if not (name.startswith("^") and name in inputs)]
        del node.input[:]
        node.input.extend(kept)
    with copy.as_default():
        tf.import_graph_def(definition, given, name="")
    for name, before in waits:
        copy.get_operation_by_name(name)._add_control_input(copy.get_operation_by_name(before))


def _copy_functions(library: Any) -> dict[str, str]:
    """Put the nodes of functions on CPUs, and give functions names of their own, by which TensorFlow logs them."""
    copies = {function.signature.name: CPU_COPY + function.signature.name for function in library.function}
    for function in library.function:
        function.signature.name = copies[function.signature.name]
        for key in (IMPLEMENTS, PREFERRED_DEVICE):  # by which a call of the copy would become one of the original
            function.attr.pop(key, None)
        for node in function.node_def:
            node.device = _name_cpu(node.device)
            rename_called(node, copies)
    for gradient in library.gradient:
        gradient.function_name = copies.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = copies.get(gradient.gradient_func, gradient.gradient_func)
    return copies


def _list_targets(new: Iterable[Any], nodes: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a constant for each call on a device that a constant names, which then names a CPU."""
    for node in new:
        source = nodes.get(node.input[0].partition(":")[0]) if node.op == _REMOTE_CALL else None
        if source is not None and source.op == "Const":
            target = tf.make_ndarray(source.attr["value"].tensor).item().decode()
            made = tf.compat.v1.NodeDef(name=f"{node.name}/simplace_target", op="Const")
            made.attr["dtype"].type = tf.string.as_datatype_enum
            made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(_name_cpu(target)))
            node.input[0] = made.name
            yield made


def _is_second(device: str) -> bool:
    return bool(tf.DeviceSpec.from_string(device).device_index)


def _name_cpu(device: str) -> str:
    spec = tf.DeviceSpec.from_string(device)
    return device if spec.device_type == "CPU" else str(spec.replace(device_type="CPU", device_index=0).to_string())
