"""Find what TensorFlow would not load of a SavedModel's functions and objects, called or not.

Mirrors what tensorflow/python/saved_model/load.py and function_deserialization.py refuse, as far as simplace reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import FuncRef, FunctionDef, GraphDef
from simplace.graph.op_kinds import PARTITIONED_CALLS
from simplace.importers.device_spec import find_device_fault
from simplace.importers.variable_shape import find_shape_fault

_KNOWN_TYPES = frozenset(map(int, DataType)) - {DataType.DT_INVALID}
_REFUSED = "TensorFlow would not load this SavedModel: "
_AGAIN = "save it again"
_GRADIENT_TYPE = "_gradient_op_type"
_CREATOR = "_create_resource"
_OPTIMIZERS = frozenset({"optimizer", "tf_deprecated_optimizer"})  # with these names Keras registers optimizers
_REGISTERED = frozenset({"tf.StaticHashTable", "tf.TrackableConstant"})  # the classes that TensorFlow itself registers
_TENSORS = frozenset({"variable", "asset", "constant", "captured_tensor", "resource"})  # get_tensor_from_node


def find_object_fault(meta: Any, graph: GraphDef) -> str:
    """Return what is wrong, "" for nothing; `graph` is that of the MetaGraph."""
    return next(_list_faults(meta.object_graph_def, graph, meta), "")


def _list_faults(objects: Any, graph: GraphDef, meta: Any) -> Iterator[str]:
    if not objects.nodes:
        yield f"its object graph is empty; {_AGAIN}"
    there = range(len(objects.nodes))
    from_end = range(-len(there), len(there))  # where TensorFlow looks into a list, -1 is its last object
    named = {name for node in objects.nodes for name in _list_functions(node)}
    for name in sorted(named.union(objects.concrete_functions)):
        if name not in graph.library:
            yield f"the function {name} is missing; save the model again"
    for name in sorted(objects.concrete_functions):
        bound = objects.concrete_functions[name].bound_inputs
        if any(node_id not in (there if name in named else from_end) for node_id in bound):
            yield f"{name} captures an object that does not exist; {_AGAIN}"
        for node_id in bound:
            yield from _list_capture_faults(name, objects.nodes[node_id])
    constants = {node.name for node in graph.nodes}
    for node in objects.nodes:
        yield from _list_object_faults(node, there)
        if any(child.node_id not in from_end for child in node.children):
            yield f"its object graph refers to objects that do not exist; {_AGAIN}"
        yield from _list_source_faults(node, constants, len(meta.asset_file_def))
        yield from _list_slot_faults(node, from_end)
    requested = {node.device for function in graph.library.values() for node in function.nodes}
    fault = graph.library_fault or next(filter(None, map(find_device_fault, sorted(requested))), "")
    if fault:
        yield _REFUSED + fault
    for function in graph.library.values():
        yield from _list_missing_nodes(function)
    if not _can_be_ordered(graph.library, meta.graph_def.library):
        yield f"{_REFUSED}There is a cyclic dependency between functions, or one that is not there"


def _list_functions(node: Any) -> Iterator[str]:
    kind = node.WhichOneof("kind")
    if kind == "function":
        yield from node.function.concrete_functions
    elif kind == "bare_concrete_function":
        yield node.bare_concrete_function.concrete_function_name
    elif kind == "captured_tensor":
        yield node.captured_tensor.concrete_function


def _list_capture_faults(name: str, node: Any) -> Iterator[str]:
    kind = node.WhichOneof("kind")
    if node.registered_name:
        return  # a class that is registered may be a tensor, and make its own resource
    if kind not in _TENSORS:
        yield f"{_REFUSED}{name} captures an object that is no tensor"
    if kind == "resource" and all(each.local_name != _CREATOR for each in (*node.children, *node.dependencies)):
        yield f"{_REFUSED}{name} captures a resource that nothing creates"


def _list_source_faults(node: Any, constants: Container[str], assets: int) -> Iterator[str]:
    kind = node.WhichOneof("kind")
    if kind == "constant" and node.constant.operation not in constants:
        yield f"the constant {node.constant.operation!r} is not in its graph; {_AGAIN}"
    if kind == "asset" and node.asset.asset_file_def_index not in range(-assets, assets):
        yield f"it has no asset number {node.asset.asset_file_def_index}; {_AGAIN}"


def _list_slot_faults(node: Any, from_end: range) -> Iterator[str]:
    if node.slot_variables and node.user_object.identifier not in _OPTIMIZERS:
        yield f"{_REFUSED}an object that is no optimizer has slots"
    pairs = [(slot.slot_variable_node_id, slot.original_variable_node_id) for slot in node.slot_variables]
    if any(node_id not in from_end for pair in pairs for node_id in pair):
        yield f"a slot of an optimizer, or its variable, does not exist; {_AGAIN}"


def _list_object_faults(node: Any, there: range) -> Iterator[str]:
    kind = node.WhichOneof("kind")
    if kind is None and node.registered_name not in _REGISTERED:
        yield f"{_REFUSED}an object is of no type that it knows"
    creators = [child for child in node.children if kind == "resource" and child.local_name == _CREATOR]
    if any(reference.node_id not in there for reference in (*node.dependencies, *creators)):
        yield f"an object depends on one that does not exist; {_AGAIN}"
    if kind == "variable":
        variable = node.variable
        if dtypes.base_type(variable.dtype) not in _KNOWN_TYPES:
            yield f"a variable has the unknown type {variable.dtype}; {_AGAIN}"
        fault = find_shape_fault(variable.shape)
        if fault:
            yield f"{_REFUSED}{fault}"
        for option in ("aggregation", "synchronization"):
            number = getattr(variable, option)
            if number not in variable.DESCRIPTOR.fields_by_name[option].enum_type.values_by_number:
                yield f"{_REFUSED}Invalid variable {option} mode: {number}"


def _list_missing_nodes(function: FunctionDef) -> Iterator[str]:
    known = {node.name for node in function.nodes}
    waits = [function.control_ret.get(output, "") for output in function.control_outputs]
    for node in (*waits, *function.control_ret.values()):
        if node not in known:
            yield f"the function {function.name} waits for {node!r}, which is not in it; {_AGAIN}"


def _can_be_ordered(library: Mapping[str, FunctionDef], functions: Any) -> bool:
    """Return whether each function can come after those that it calls (`_sort_function_defs`)."""
    registered = (one for one in functions.registered_gradients if one.registered_op_type)
    gradients = {one.registered_op_type.encode(): one.gradient_func for one in registered}
    called = {name: set(_list_called(function, library, gradients)) for name, function in library.items()}
    times = Counter(function.signature.name for function in functions.function)
    if any(count > 1 and called[name] for name, count in times.items()):
        return False  # it would come once
    if any(not each <= library.keys() for each in called.values()):
        return False
    try:
        TopologicalSorter(called).prepare()
    except CycleError:
        return False
    return True


def _list_called(
    function: FunctionDef, library: Mapping[str, FunctionDef], gradients: Mapping[bytes, str]
) -> Iterator[str]:
    for node in function.nodes:
        gradient = None
        if gradients and node.op not in PARTITIONED_CALLS:
            gradient = gradients.get(node.attrs.get(_GRADIENT_TYPE, b""))
        if node.op in library:
            yield node.op
        elif gradient is not None:
            yield gradient
        else:
            for value in node.attrs.values():
                every = value if isinstance(value, tuple) else (value,)
                yield from (one.name for one in every if isinstance(one, FuncRef))
