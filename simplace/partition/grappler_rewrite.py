"""Have TensorFlow's Grappler optimize a placed graph before it is partitioned, for devices that need not be there.

Mirrors where `OptimizeFunctionGraph` of tensorflow/core/common_runtime/optimize_function_graph_utils.cc, and for
sessions GraphExecutionState::OptimizeGraph of graph_execution_state.cc, call Grappler: with the devices of nodes, for
the results, and for what a function, or a run, lists as what must run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from simplace.errors import SimplaceError
from simplace.graph import protos
from simplace.graph.attr_values import write_attrs
from simplace.graph.builder import Origin
from simplace.graph.dtypes import DataType, data_type_size
from simplace.graph.graph import Graph
from simplace.graph.graph_def import parse_graph_def
from simplace.graph.node_def import AttrValue, NodeDef, Shape, ShapeAttr, TensorInfo
from simplace.graph.op_kinds import ARGS, IDENTITIES, RETVALS, is_constant
from simplace.partition.rewritten_graph import Rewritten
from simplace.partition.shapes import TensorSizes
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import Program
from simplace.program.run_ends import FED_SHAPE

MADE_BY = "Grappler"
_READS = "ReadVariableOp"
_CONTENT = bytes(range(1, 62))  # of any type, numbers that are neither zero nor one, nor all alike
_SHAPES, _GROUP = "_output_shapes", "_class"
_NAMED_GROUP = "_colocated_with"  # Python's entrance to Grappler erases the other one
_IN_DATASETS = b"\x08\x02\x18\x02"  # layout_optimizer and constant_folding, fields 1 and 3 of RewriterConfig, are OFF
_PRESERVED = "_grappler_do_not_remove"  # as what has state, without allow_pruning_stateful_and_dataset_ops
_GIVEN = "_given_shapes"  # of an argument: what Grappler knows, in TensorFlow as well

Construct = Callable[[Sequence[NodeDef]], Graph]  # builds the graph of NodeDefs
Optimize = Callable[[bytes, Sequence[str], Mapping[str, bytes]], bytes]


def rewriter_of(program: Program) -> bytes:
    """Return the serialized RewriterConfig that a program's graph is optimized with.

    That of a dataset's function is its program's without two of the optimizers (core/data/captured_function.cc).
    """
    return program.rewriter + _IN_DATASETS if program.kind == "dataset" else program.rewriter


def optimize_with_grappler(
    placed: PlacedGraph, effects: Iterable[str], optimize: Optimize, construct: Construct, *, is_run: bool = False
) -> Rewritten:
    """Return the graph as Grappler leaves it; its nodes lead back to those that have their name in the placed graph.

    `effects` names the nodes that must run besides the results. `optimize` asks Grappler, with a serialized GraphDef,
    the names of the nodes to keep, and the variables among the arguments, each as a serialized VarHandleOp. That of a
    session's run (`is_run`) is optimized before it is pruned: what is fetched is kept, and results come later. Raises
    `ProgramError` where TensorFlow is not there or fails, `SimplaceError` for a graph of which nobody knows what is
    needed.
    """
    graph, ids = placed.graph, placed.graph.ids
    wanted = {i for i in graph.op_ids if graph.ops[i] in RETVALS}.union(ids[name] for name in effects if name in ids)
    if not wanted:
        raise SimplaceError(f"{placed.program.title} has neither results nor effects: Grappler would remove all of it")
    written, results = _write_graph(placed), protos.message_class("GraphDef")()
    if is_run:
        results.node.extend(node for node in written.node if node.op in RETVALS)
        for i in reversed(range(len(written.node))):
            if written.node[i].op in RETVALS:
                del written.node[i]
        first_inputs = graph.first_inputs
        wanted = {graph.edge_src[first_inputs[i]] if graph.ops[i] in RETVALS else i for i in wanted}
    kept = [graph.names[i] for i in sorted(wanted)]
    answer = optimize(written.SerializeToString(), kept, dict(_list_variables(placed)))
    optimized = parse_graph_def(answer + results.SerializeToString())  # one after the other they are one message
    made = construct(optimized.nodes)
    origin = tuple(_find_original(ids, name) for name in made.names)
    origins = [
        Origin("", name) if i < 0 else graph.origins[i]._replace(made_by=MADE_BY)
        for name, i in zip(made.names, origin, strict=True)
    ]
    given = {node.name: node.device for node in optimized.nodes}
    device_of = [given.get(name, "") for name in made.names]
    return Rewritten(replace(placed, graph=replace(made, origins=origins), device_of=device_of), origin)


def list_changed(before: Graph, after: Graph) -> set[str]:
    """Return the names of nodes that are another op than before, or have other attributes that count."""
    return {
        name
        for i, name in enumerate(after.names)
        if (old := before.ids.get(name)) is not None and _describe(before, old) != _describe(after, i)
    }


def _describe(graph: Graph, node: int) -> tuple[str, dict[str, AttrValue]]:
    attrs = graph.attrs[node]
    return graph.ops[node], {name: attrs[name] for name in attrs if not name.startswith("_")}


def _find_original(ids: Mapping[str, int], name: str) -> int:
    """Return the node that a node of the optimized graph is, or was made for; -1 for none.

    >>> _find_original({"conv": 4}, "conv-0-TransposeNHWCToNCHW-LayoutOptimizer"), _find_original({"conv": 4}, "x")
    (4, -1)
    """
    return ids.get(name, ids.get(name.partition("-")[0], -1))


def _list_variables(placed: PlacedGraph) -> Iterator[tuple[str, bytes]]:
    """Yield each argument that is known to be a variable, with a VarHandleOp of the variable's type and shape.

    The inputs of the first call tell, as in TensorFlow (`SetArgShape` of optimize_function_graph_utils.cc), else what
    reads the variable.
    """
    graph, sizes = placed.graph, TensorSizes(placed)
    found: dict[str, tuple[int, Shape]] = {}
    for i in graph.op_ids:
        if graph.ops[i] in ARGS:
            given = placed.program.resources.get(graph.attrs[i].get("index", -1))
            if given is not None and given.dtype is not None:
                found[graph.names[i]] = given.dtype, given.shape
    for i in graph.op_ids:
        handles = graph.walk_first_inputs(i) if graph.ops[i] == _READS else ()
        handle = next((handle for handle in handles if graph.ops[handle] not in IDENTITIES), -1)
        if handle >= 0 and graph.ops[handle] in ARGS:
            found.setdefault(graph.names[handle], (graph.attrs[i]["dtype"], sizes.shape(i, 0)))
    for name, (dtype, shape) in found.items():
        made = protos.message_class("NodeDef")(name=name, op="VarHandleOp")
        write_attrs(made.attr, {"dtype": DataType(dtype), "shape": ShapeAttr(shape)})
        yield name, made.SerializeToString()


def _write_graph(placed: PlacedGraph) -> Any:
    graph, sizes = placed.graph, TensorSizes(placed)
    message = protos.message_class("GraphDef")()
    message.versions.producer = placed.program.graph.producer
    for i in graph.op_ids:
        node = message.node.add(name=graph.names[i], op=graph.ops[i], device=placed.device(i))
        node.input.extend(graph.input_names(i))
        shapes = tuple(ShapeAttr(sizes.shape(i, slot)) for slot in range(len(graph.out_types[i])))
        attrs = {**graph.attrs[i], _SHAPES: shapes}
        if graph.ops[i] in ARGS and _SHAPES in graph.attrs[i] and FED_SHAPE not in graph.attrs[i]:
            attrs[_GIVEN] = graph.attrs[i][_SHAPES]
        if _GROUP in attrs:  # nodes that it names may go; devices are assigned already, but only equal ones are merged
            attrs[_NAMED_GROUP] = attrs.pop(_GROUP)
        if placed.program.kind == "dataset" and placed.is_stateful(graph.ops[i]):
            attrs[_PRESERVED] = True
        write_attrs(node.attr, attrs)
        value = attrs.get("value")
        if is_constant(graph.ops[i]) and isinstance(value, TensorInfo) and not value.content:
            _write_content(node.attr["value"].tensor, value)
    return message


def _write_content(message: Any, tensor: TensorInfo) -> None:
    """Fill a large constant, whose values are not known, with some that no rewrite takes for zeros or ones."""
    width = data_type_size(tensor.dtype)
    if width and tensor.shape is not None and tensor.value is None:
        size = prod(tensor.shape) * width
        message.tensor_content = (_CONTENT * (size // len(_CONTENT) + 1))[:size]
