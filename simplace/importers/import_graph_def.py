"""Refuse a graph that TensorFlow would not import, for the reason that TensorFlow would give.

Mirrors tensorflow/core/common_runtime/graph_constructor.cc as `tf.graph_util.import_graph_def` calls it: names, inputs,
the library, then node by node in topological order. What shape inference finds, `oracle/import_question.py` asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from simplace.errors import ImportRefusedError, TargetError
from simplace.graph import dtypes
from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType, TypeNumber
from simplace.graph.function_library import different_function
from simplace.graph.input_columns import InputColumns, UnknownInputError, has_mixed_inputs, number_nodes, resolve_inputs
from simplace.graph.node_def import AttrValue, FuncRef, FunctionDef, GraphDef, NodeDef, ShapeAttr, TensorInfo
from simplace.graph.op_kinds import PARTITIONED_CALLS, is_merge, is_next_iteration
from simplace.graph.tensor_id import Slot
from simplace.importers.device_spec import find_device_fault
from simplace.importers.function_body_fault import find_body_fault, op_of
from simplace.importers.node_names import find_name_fault, is_node_name
from simplace.importers.versions import find_version_fault, with_version_warning
from simplace.kernels.attr_value_util import find_type_fault
from simplace.kernels.node_def_util import find_node_fault
from simplace.kernels.op_def_util import find_deprecation_fault
from simplace.kernels.registry import AttrError, KernelTable, OpDef, argument_types, with_defaults

Types = tuple[tuple[int, ...], tuple[int, ...]]

_HAVE_INTERMEDIATES = frozenset({"If", "StatelessIf", "While", "StatelessWhile"})
_COLOCATED = b"loc:@"
_NO_TYPE = -1
_MESSAGES = {FuncRef: "NameAttrList", ShapeAttr: "TensorShapeProto", TensorInfo: "TensorProto"}


def refuse_import(graph: GraphDef, table: KernelTable) -> InputColumns:
    """Raise `ImportRefusedError` for a graph that the TensorFlow of a kernel table would not import.

    What the inputs of its nodes name is returned: whoever builds the graph needs it again.
    """
    fault, inputs = "", None
    if table.graph_def_version:
        fault = find_version_fault(graph, table.graph_def_version, table.version)
    if not fault:
        places = number_nodes(graph.nodes)
        fault, inputs = _find_input_fault(graph.nodes, places)
        if inputs is not None:
            fault = _find_fault(graph, table, places, inputs)
        if table.graph_def_version:
            fault = with_version_warning(fault, graph.producer, table.graph_def_version)
        fault = fault.partition("\0")[0] or _find_python_fault(graph)  # C++ hands Python a string that a NUL ends
    if fault or inputs is None:
        raise ImportRefusedError(f"TensorFlow would not import this graph: {fault}")
    return inputs


def refuse_function(graph: GraphDef, name: str, table: KernelTable) -> None:
    """Raise `ImportRefusedError` for a function, or one that it refers to, that TensorFlow would not load.

    Of the library's other functions, each op must be one that TensorFlow knows.
    """

    def look_up(op: str) -> OpDef | None:
        return op_of(graph.library[op]) if op in graph.library else table.op(op)

    waiting, seen = [FuncRef(name)], {name}
    while waiting:
        called = waiting.pop()
        function = graph.library[called.name]
        fault = find_body_fault(function, called.attrs, look_up)
        if fault:
            raise ImportRefusedError(f"TensorFlow would not load the function {called.name!r}: {fault}")
        found = [ref for node in function.nodes for ref in _function_references(node) if ref.name in graph.library]
        waiting += [ref for ref in {ref.name: ref for ref in found}.values() if ref.name not in seen]
        seen |= {ref.name for ref in found}
    for other in graph.library.values():
        unknown = next((node.op for node in other.nodes if look_up(node.op) is None), None)
        if unknown is not None:
            fault = f"Op type not registered '{unknown}'"
            raise ImportRefusedError(f"TensorFlow would not load the function {other.name!r}: {fault}")


def _function_references(node: NodeDef) -> Iterator[FuncRef]:
    yield FuncRef(node.op, node.attrs)
    for value in node.attrs.values():
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, FuncRef))


def _find_input_fault(nodes: Sequence[NodeDef], places: Mapping[str, Slot]) -> tuple[str, InputColumns | None]:
    """Look up what inputs name; find what is wrong with the names of nodes, and then with the inputs."""
    is_well_named = len(places) == len(nodes) and all(map(is_node_name, places))
    if not (is_well_named and all(map(itemgetter(1), nodes))):
        return _find_name_fault(nodes), None
    try:
        inputs = resolve_inputs(nodes, places)
    except UnknownInputError as unknown:
        fault = f"Node '{nodes[unknown.node].name}': Unknown input node '{unknown.text}'"
        return _find_name_fault(nodes) or fault, None
    return (_find_name_fault(nodes), None) if inputs.is_mixed else ("", inputs)


def _find_fault(graph: GraphDef, table: KernelTable, places: Mapping[str, Slot], inputs: InputColumns) -> str:
    fault = _find_library_fault(graph, table) or (_find_recursion(graph) if graph.library else "")
    return fault or _Importer(graph, table, places, inputs).find_fault()


def _find_recursion(graph: GraphDef) -> str:
    """Find a function that calls itself: an import looks into what is called, until the process is out of stack."""
    calls: dict[str, set[str]] = {}
    waiting = {called.name for node in graph.nodes if (called := _callee(graph, node)) is not None}
    while waiting:
        name = waiting.pop()
        function = graph.library.get(name)
        found = (_callee(graph, node) for node in function.nodes) if function is not None else ()
        calls[name] = {called.name for called in found if called is not None}
        waiting |= calls[name] - calls.keys()
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        names = " -> ".join(map(repr, reversed(error.args[1])))
        return f"The function {error.args[1][0]!r} calls itself ({names}), which ends TensorFlow's process."
    return ""


def _callee(graph: GraphDef, node: NodeDef) -> FuncRef | None:
    """Return the function that a node calls, where an import looks into it."""
    if node.op in graph.library:
        return FuncRef(node.op, node.attrs)
    called = node.attrs.get("f") if node.op in PARTITIONED_CALLS else None
    return called if isinstance(called, FuncRef) else None


def _find_python_fault(graph: GraphDef) -> str:
    """Find what Python refuses of what C++ has imported: groups, devices, the types of functions, their gradients."""
    for node in graph.nodes:
        if "_class" in node.attrs:
            fault = _find_group_fault(node) or _find_device_fault(node)
        else:
            fault = find_device_fault(node.device) if node.device else ""
        if fault:
            return fault
    if graph.gradient_fault:
        return graph.gradient_fault
    for function in graph.library.values():
        for arg in function.inputs:
            if fault := _find_type_fault(arg.dtype):
                return fault
        attrs = chain.from_iterable(node.attrs.items() for node in function.nodes)
        values = [value for name, value in attrs if not name.startswith("_")]  # `EqualNodeDef` skips internal ones
        if any(map(_has_no_type, chain(values, function.attrs.values()))):  # such a tensor is not equal to itself
            return different_function(function.name)
    return ""


def _find_type_fault(dtype: int) -> str:
    """Find what `as_dtype` of python/framework/dtypes.py refuses."""
    is_known = dtype != 0 and dtypes.base_type(int(dtype)) in DataType._value2member_map_
    return "" if is_known else f"Cannot convert the argument `type_value`: {int(dtype)} to a TensorFlow DType."


def _has_no_type(value: AttrValue) -> bool:
    """Return whether a value is a tensor without a type, or a function bound to one; a list is compared as bytes."""
    if isinstance(value, FuncRef):
        return any(map(_has_no_type, value.attrs.values()))
    return isinstance(value, TensorInfo) and not value.dtype


def _find_group_fault(node: NodeDef) -> str:
    """Find what `_GetColocationNames` of python/framework/importer.py cannot read."""
    groups = node.attrs.get("_class")
    if isinstance(groups, str):
        return f'Unsupported field type in placeholder: "{groups}"'
    if isinstance(groups, (DataType, TypeNumber)):
        return _find_type_fault(groups) or "'DType' object is not iterable"
    if isinstance(groups, (bool, int, float)):
        return f"'{type(groups).__name__}' object is not iterable"
    if groups and isinstance(groups, bytes):
        return f"Expected binary or unicode string, got {groups[0]}"
    if groups and isinstance(groups, tuple) and not isinstance(groups[0], bytes):
        return f"Expected binary or unicode string, got {groups[0]!r}"
    for group in groups if isinstance(groups, tuple) else ():
        try:
            _ = group.decode() if isinstance(group, bytes) else ""  # of several kinds, strings come first
        except UnicodeDecodeError as error:  # Python's own words, in both programs
            return str(error)
    kind = _MESSAGES.get(type(groups), "")
    return kind and f"'{kind}' object is not iterable"


def _find_device_fault(node: NodeDef) -> str:
    """Find what Python refuses of a node's device, which it does not look at where a group gives the device."""
    groups = node.attrs.get("_class")
    own = _COLOCATED + node.name.encode()
    others = [group for group in groups if group != own] if isinstance(groups, tuple) else []
    is_colocated = any(isinstance(group, bytes) and group.startswith(_COLOCATED) for group in others)
    return "" if not node.device or is_colocated else find_device_fault(node.device)


def _find_name_fault(nodes: Sequence[NodeDef]) -> str:
    """Find what `GraphConstructor::BuildNodeIndex` refuses."""
    seen: set[str] = set()
    for node in nodes:
        fault = find_name_fault(node.name, seen, is_node_name)
        if fault:
            return fault
        if not node.op:
            return f"Node '{node.name}' does not specify an operation"
        if has_mixed_inputs(node.inputs):
            return f"Node '{node.name}': Control dependencies must come after regular dependencies"
    return ""


def _find_library_fault(graph: GraphDef, table: KernelTable) -> str:
    """Find what `FunctionLibraryDefinition::AddLibrary` of framework/function.cc refuses."""
    for name in graph.library:
        if table.op(name) is not None:
            return f"Cannot add function '{name}' because an op with the same name already exists."
    return graph.library_fault


@dataclass(slots=True)
class _Importer:
    """Look at nodes as `GraphConstructor::Convert` does: all in one go, and once more in its order if any is wrong."""

    graph: GraphDef
    table: KernelTable
    places: Mapping[str, Slot]
    inputs: InputColumns
    seen: set[str] = field(default_factory=set)

    def find_fault(self) -> str:
        """Return the first reason in TensorFlow's order, "" if there is none."""
        nodes, known = self.graph.nodes, _Types(self.graph.library, self.table, self.graph.producer)
        types = list(map(known.of, nodes, self.inputs.data_counts))
        suspects = self._find_suspects(types)
        order = _in_order(nodes, self.inputs)
        steps: dict[int, int] = {}
        if suspects:
            steps = {node: step for step, node in enumerate(order)}
            for i in sorted(suspects & steps.keys(), key=steps.__getitem__):
                fault = self._find_node_fault(i, types, steps, known)
                if fault:
                    return fault
        if len(order) < len(nodes):
            return f"{len(nodes) - len(order)} nodes in a cycle"
        merges = (i for i in sorted(suspects) if is_merge(nodes[i].op))
        faults = (self._find_edge_fault(i, types, steps, back_edges=True) for i in merges)
        return next(filter(None, faults), "")

    def _find_suspects(self, types: Sequence[Types | None]) -> set[int]:
        """Return the nodes that may have a fault; finding which one takes longer."""
        library = self.graph.library
        found = {
            i
            for i, (node, own) in enumerate(zip(self.graph.nodes, types, strict=True))
            if own is None or node.op in PARTITIONED_CALLS or node.op in library or "_output_shapes" in node.attrs
            or ("_class" in node.attrs and self._find_colocation_fault(node))
        }  # fmt: skip
        return found | self._find_odd_edges(types)

    def _find_odd_edges(self, types: Sequence[Types | None]) -> set[int]:
        """Return the nodes with an input from a later node, from an output of another type, or from none at all."""
        inputs, odd = self.inputs, set()
        if not inputs.is_forward:
            odd = {dst for src, dst in zip(inputs.src, inputs.dst, strict=True) if src >= dst}
        src, slot, dst = inputs.data_edges()
        outputs = [() if own is None else own[1] for own in types]
        rows = zip(types, inputs.data_counts, strict=True)
        wanted = list(chain.from_iterable((_NO_TYPE,) * count if own is None else own[0] for own, count in rows))
        try:
            found = [outputs[node][one] for node, one in zip(src, slot, strict=True)]
        except IndexError:
            edges = zip(src, slot, strict=True)
            found = [outputs[node][one] if one < len(outputs[node]) else _NO_TYPE for node, one in edges]
        if found != wanted:
            odd |= {node for node, had, want in zip(dst, found, wanted, strict=True) if had != want}
        return odd

    def _find_node_fault(self, i: int, types: Sequence[Types | None], steps: Mapping[int, int], known: _Types) -> str:
        """Find what is refused of a node when it is its turn."""
        node = self.graph.nodes[i]
        return (
            self._find_colocation_fault(node)
            or self._find_output_fault(i, types, steps)
            or ("" if types[i] is not None else known.find_fault(node, self.inputs.data_counts[i]))
            or self._find_edge_fault(i, types, steps)
            or self._find_call_fault(node, types[i])
            or _find_shapes_fault(node, types[i])
        )

    def _find_colocation_fault(self, node: NodeDef) -> str:
        groups = node.attrs.get("_class")
        for group in groups if isinstance(groups, tuple) else ():
            if not isinstance(group, bytes) or not group.startswith(_COLOCATED):
                continue
            name = group.removeprefix(_COLOCATED).decode(errors="replace")
            if name not in self.places:
                return f"Node '{node.name}' expects to be colocated with unknown node '{name}'"
        return ""

    def _find_output_fault(self, i: int, types: Sequence[Types | None], steps: Mapping[int, int]) -> str:
        node, closes_a_loop = self.graph.nodes[i], False
        for src, slot in self.inputs.of(i):
            source, outputs = self.graph.nodes[src], types[src]
            if steps.get(src, len(steps)) >= steps[i]:
                closes_a_loop = True
            elif outputs is not None and slot >= len(outputs[1]):
                hint = " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
                return (
                    f"Node '{node.name}': Connecting to invalid output {slot} of source node {source.name} which has "
                    f"{len(outputs[1])} outputs.{hint if source.op in _HAVE_INTERMEDIATES else ''}"
                )
        if closes_a_loop and not is_merge(node.op):
            return f"Node '{node.name}' had a back edge, but only Merge nodes can have back edges."
        return ""

    def _find_edge_fault(
        self, i: int, types: Sequence[Types | None], steps: Mapping[int, int], *, back_edges: bool = False
    ) -> str:
        """Find what `GraphConstructor::MakeEdge` refuses, of the edges that close loops or of the others."""
        own, name = types[i], self.graph.nodes[i].name
        if own is None:
            return ""
        for k, (wanted, (src, slot)) in enumerate(zip(own[0], self.inputs.of(i), strict=False)):
            outputs, source = types[src], self.graph.nodes[src].name
            is_back_edge = steps.get(src, len(steps)) >= steps[i]
            if outputs is None or slot == CONTROL or is_back_edge != back_edges:
                continue
            if slot >= len(outputs[1]):
                return f"Output {slot} of node {source} does not exist. Node only has {len(outputs[1])} outputs."
            found = outputs[1][slot]
            if wanted not in (found, dtypes.base_type(found)):
                return (
                    f"Input {k} of node {name} was passed {dtypes.name_in_messages(found)} from {source}:{slot} "
                    f"incompatible with expected {dtypes.name_in_messages(wanted)}."
                )
        return ""

    def _find_call_fault(self, node: NodeDef, types: Types | None) -> str:
        """Find what `ShapeRefiner::InferShapesForFunction` refuses, in functions that a function calls, too."""
        if node.op in PARTITIONED_CALLS and isinstance(node.attrs.get("f"), str):
            return find_type_fault(node.attrs["f"], "func")
        waiting = [(node, types)]
        while waiting:
            node, types = waiting.pop()
            called = _callee(self.graph, node)
            function = self.graph.library.get(called.name) if called is not None else None
            if function is None or called is None:
                continue
            if function.name not in self.seen:
                self.seen.add(function.name)
                fault = find_body_fault(function, called.attrs, self.look_up)
                if fault:
                    return fault
                waiting += [(each, None) for each in function.nodes]
            for what, own, there in zip(
                ("input", "output"), types or (), (function.inputs, function.outputs), strict=False
            ):
                if len(there) > len(own):
                    return f"Function instantiation included invalid {what} index: {len(own)} not in [0, {len(own)})."
        return ""

    def look_up(self, op: str) -> OpDef | None:
        """Return the definition of an op, that of a function included."""
        function = self.graph.library.get(op)
        return self.table.op(op) if function is None else op_of(function)


class _Types:
    """Return the types of nodes, once for those with equal attributes; None for a node with a fault.

    Neither a fault nor a type of an op comes from what begins with an underscore, such as colocation groups.
    """

    def __init__(self, library: Mapping[str, FunctionDef], table: KernelTable, producer: int) -> None:
        self._library = library
        self._table = table
        self._producer = producer
        self._known: dict[tuple[str, int, int], Types | None] = {}
        self._alike: dict[tuple[object, ...], Types | None] = {}

    def of(self, node: NodeDef, inputs: int) -> Types | None:
        """Return (input types, output types) of a node with so many data inputs."""
        key = (node.op, id(node.attrs), inputs)
        if key not in self._known:
            self._known[key] = self._of_alike(node, inputs)
        return self._known[key]

    def _of_alike(self, node: NodeDef, inputs: int) -> Types | None:
        is_call = node.op in self._library  # whose attributes may have any name
        matters = [(name, id(value)) for name, value in node.attrs.items() if is_call or name[:1] != "_"]
        key = (node.op, inputs, *matters)  # the graph keeps the values, so that no other can come to have their ids
        if key not in self._alike:
            self._alike[key] = None if self.find_fault(node, inputs) else self._types(node)
        return self._alike[key]

    def find_fault(self, node: NodeDef, inputs: int) -> str:
        """Find what `GraphConstructor::ModifyNodeDefForImport` refuses, and `Graph::AddNode`."""
        function = self._library.get(node.op)
        if function is not None:
            return _find_call_fault(node, function, inputs, self._producer)
        op_def = self._table.op(node.op)
        if op_def is None:
            from simplace.kernels.op_kernels import hint_at_op

            return f"Op type not registered '{node.op}'; {hint_at_op(self._table, node.op)}"
        attrs = with_defaults(op_def, node.attrs)
        try:
            fault = find_node_fault(node.name, op_def, attrs, inputs) or find_deprecation_fault(op_def, self._producer)
            return fault if fault or argument_types(op_def, attrs) else ""
        except AttrError as error:
            raise TargetError(f"node {node.name!r}: {error}") from error

    def _types(self, node: NodeDef) -> Types:
        function = self._library.get(node.op)
        if function is not None:
            return function.call_types
        op_def: Any = self._table.op(node.op)
        return argument_types(op_def, with_defaults(op_def, node.attrs))


def _find_call_fault(node: NodeDef, function: FunctionDef, inputs: int, producer: int) -> str:
    unset = sorted(name for name, has_default in function.signature_attrs if not has_default and name not in node.attrs)
    if unset:
        named = "', '".join(unset)
        plural = "s"[: len(unset) - 1]
        return (
            f"NodeDef missing attr{plural} '{named}' from Op<name={function.name}>; NodeDef: {{{{node {node.name}}}}}"
        )
    missing = next((need.name for need in function.needs if need.name not in node.attrs), None)
    if missing is not None:
        return f"No attr named '{missing}' in NodeDef:"
    if inputs == len(function.inputs):
        op_def = OpDef(function.name, removed_in=function.removed_in)
        return find_deprecation_fault(op_def, producer)
    listed = ", ".join(map(dtypes.name_in_messages, function.call_types[0]))
    return (
        f"NodeDef expected inputs '{listed}' do not match {inputs} inputs specified; Op<name={function.name}>; "
        f"NodeDef: {{{{node {node.name}}}}}"
    )


def _find_shapes_fault(node: NodeDef, types: Types | None) -> str:
    """Find what `GraphConstructor::ValidateShape` refuses of the shapes that a node states itself."""
    shapes = node.attrs.get("_output_shapes", False)
    is_list = shapes is None or (isinstance(shapes, tuple) and all(isinstance(one, ShapeAttr) for one in shapes))
    if types is None or not is_list or len(shapes or ()) >= len(types[1]):
        return ""
    return (
        f"Node '{node.name}' has {len(types[1])} outputs but the _output_shapes attribute specifies shapes for "
        f"{len(shapes or ())} outputs"
    )


def _in_order(nodes: Sequence[NodeDef], inputs: InputColumns) -> Sequence[int]:
    """Order nodes as TensorFlow makes them; those in a cycle, and those behind one, are left out."""
    if inputs.is_forward:
        return range(len(nodes))
    pending = [stop - start for start, stop in pairwise(inputs.starts)]
    for i in [i for i, node in enumerate(nodes) if is_merge(node.op)]:
        if any(slot != CONTROL and is_next_iteration(nodes[src].op) for src, slot in inputs.of(i)):
            pending[i] += 1 - inputs.data_counts[i]
    takers: list[list[int]] = [[] for _ in nodes]
    for src, dst in zip(inputs.src, inputs.dst, strict=True):
        if not (is_next_iteration(nodes[src].op) and is_merge(nodes[dst].op)):
            takers[src].append(dst)
    return order_by_inputs(pending, takers.__getitem__)
