"""The shapes of all tensors of a call, where the graph leaves them open: what TensorFlow infers from the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import CASES, IFS, PARTITIONED_CALLS, WHILES
from simplace.oracle.child.output_shapes import NOT_IMPORTED
from simplace.oracle.child.tf_private import function_def_to_graph

Sizes = list[int] | None  # -1 for an unknown size, None for an unknown rank
Shapes = Mapping[str, Sequence[Sizes]]  # of the outputs of each node
_GIVEN = "_output_shapes"  # an attribute that TensorFlow's importer takes for what is known of a node's outputs
_ROUNDS = 4  # how often the shapes of a loop's variables are weakened before those of the trace are taken


class CallShapes:
    """Infer shapes, function by function, from what each is called with first.

    `definition` returns a function of TensorFlow's context by name, `reached` the functions that one calls at any
    depth, itself first, `traced` the shapes of its nodes as they were traced.
    """

    def __init__(
        self,
        definition: Callable[[str], Any],
        reached: Callable[[str], Sequence[str]],
        traced: Callable[[str], Shapes],
    ) -> None:
        self._definition = definition
        self._reached = reached
        self._traced = traced
        self._graphs: dict[tuple[str, ...], Any] = {}  # imported bodies by function and shapes of arguments

    def infer(self, name: str, arguments: Sequence[Any], elements: Shapes) -> dict[str, dict[str, list[Sizes]]]:
        """Return the shapes of the nodes of each function that a call reaches, by function and node.

        `arguments` are TensorShapes. `elements` has the shapes of what nodes of the function took from iterators.
        What a function is called with twice, in two shapes, stays as it was traced; so does all where TensorFlow
        finds that the shapes do not fit, as the call itself will, or no longer imports an op.
        """
        try:
            return self._infer(name, arguments, elements)
        except NOT_IMPORTED:
            return {}

    def _infer(self, name: str, arguments: Sequence[Any], elements: Shapes) -> dict[str, dict[str, list[Sizes]]]:
        self._graphs.clear()
        found: dict[str, dict[str, list[Sizes]]] = {}
        called: dict[str, list[str]] = {}
        mixed: set[str] = set()
        waiting = [(name, list(arguments), elements)]
        while waiting:
            function, given, known = waiting.pop(0)
            key = [str(shape) for shape in given]
            if function in called:
                if called[function] != key:
                    mixed.add(function)
                continue
            called[function] = key
            if not self._traced(function):
                continue
            graph = self._infer_body(function, given, known)
            found[function] = self._read(function, graph)
            waiting += [(callee, shapes, {}) for callee, shapes in self._calls(graph)]
        return {function: shapes for function, shapes in found.items() if function not in mixed}

    def _infer_body(self, name: str, arguments: Sequence[Any], known: Shapes) -> Any:
        """Return the body of a function with the shapes that branches and loops in it return."""
        key = (name, *map(str, arguments))
        graph = self._graphs.get(key) or self._import(name, arguments, known)
        for _ in range(_ROUNDS):
            refined = {op.name: shapes for op in graph.get_operations() if (shapes := self._refine(op))}
            if not refined:
                break
            known = {**known, **refined}
            graph = self._import(name, arguments, known)
        self._graphs[key] = graph
        return graph

    def _refine(self, op: Any) -> list[Sizes]:
        """Return the shapes that a branch or a loop returns, [] where TensorFlow knows as much of its outputs."""
        if op.type in WHILES:
            after = self._of_every_round(op.get_attr("body").name, [tensor.shape for tensor in op.inputs])
        elif op.type in IFS or op.type in CASES:
            ways = [self._results(callee, shapes) for callee, shapes in _list_calls(op)]
            after = [_agree(each) for each in zip(*ways, strict=True)]
        else:
            return []
        merged = [
            out.shape.merge_with(shape) if out.shape.is_compatible_with(shape) else out.shape
            for out, shape in zip(op.outputs, after, strict=True)
        ]
        is_new = any(str(out.shape) != str(shape) for out, shape in zip(op.outputs, merged, strict=True))
        return [list_sizes(shape) for shape in merged] if is_new else []

    def _results(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Return the shapes of a function's results."""
        graph, ends = self._infer_body(name, arguments, {}), self._ends(self._definition(name))
        return [graph.get_operation_by_name(node).outputs[slot].shape for node, slot in ends.values()]

    def _import(self, name: str, arguments: Sequence[Any], known: Shapes) -> Any:
        """Return the body of a function as a graph, its shapes inferred by TensorFlow."""
        definition = self._definition(name)
        made, _ = function_def_to_graph.function_def_to_graph_def(definition)
        made.library.function.extend(self._definition(each) for each in self._reached(name)[1:])
        traced = self._traced(name)
        for node, arg, shape in zip(made.node, definition.signature.input_arg, arguments, strict=False):
            if arg.type != tf.resource.as_datatype_enum and "shape" in node.attr:
                node.attr["shape"].shape.CopyFrom(shape.as_proto())
        for node in made.node[len(definition.signature.input_arg) :]:
            shapes = known.get(node.name, traced.get(node.name))
            if shapes:
                node.attr[_GIVEN].list.shape.extend(_to_shape(sizes).as_proto() for sizes in shapes)
        graph = tf.Graph()
        with graph.as_default():
            tf.graph_util.import_graph_def(made, name="")
        return graph

    def _read(self, name: str, graph: Any) -> dict[str, list[Sizes]]:
        """Return the shapes in an imported body, by the names that notes have."""
        signature, definition = self._definition(name).signature, self._definition(name)
        found = {op.name: [list_sizes(out.shape) for out in op.outputs] for op in graph.get_operations()}
        ends = self._ends(definition)
        for arg in signature.output_arg:
            node, slot = ends[arg.name]
            found[f"{arg.name}_RetVal"] = [found[node][slot]]
        return found

    def _ends(self, definition: Any) -> dict[str, tuple[str, int]]:
        _, names = function_def_to_graph.function_def_to_graph_def(definition)
        tensors = {arg.name: names[definition.ret[arg.name]] for arg in definition.signature.output_arg}
        return {end: (name.partition(":")[0], int(name.partition(":")[2] or 0)) for end, name in tensors.items()}

    def _calls(self, graph: Any) -> Iterator[tuple[str, list[Any]]]:
        """Yield the functions that an imported body calls, each with the shapes of its arguments."""
        for op in graph.get_operations():
            for callee, shapes in _list_calls(op):
                body = op.get_attr("body").name if op.type in WHILES else ""
                yield callee, self._of_every_round(body, shapes) if body else shapes

    def _of_every_round(self, body: str, shapes: list[Any]) -> list[Any]:
        """Return the shapes that the variables of a loop keep from round to round."""
        traced = self._argument_shapes(body)
        if not self._traced(body):
            return traced
        for _ in range(_ROUNDS):
            after = self._results(body, shapes)
            kept = [
                one if str(one) == str(other) else weaker
                for one, other, weaker in zip(shapes, after, traced, strict=True)
            ]
            if list(map(str, kept)) == list(map(str, shapes)):
                return shapes
            shapes = kept
        return traced

    def _argument_shapes(self, name: str) -> list[Any]:
        """Return the shapes that a function was traced with."""
        made, _ = function_def_to_graph.function_def_to_graph_def(self._definition(name))
        count = len(self._definition(name).signature.input_arg)
        return [tf.TensorShape(node.attr["shape"].shape) for node in made.node[:count]]


def _list_calls(op: Any) -> list[tuple[str, list[Any]]]:
    """List the functions that an op calls, each with the shapes of the arguments that it gives."""
    shapes = [tensor.shape for tensor in op.inputs]
    if op.type in PARTITIONED_CALLS:
        return [(op.get_attr("f").name, shapes)]
    if op.type in IFS:
        return [(op.get_attr(branch).name, shapes[1:]) for branch in ("then_branch", "else_branch")]
    if op.type in CASES:
        return [(called.name, shapes[1:]) for called in op.get_attr("branches")]
    return [(op.get_attr(part).name, shapes) for part in ("cond", "body")] if op.type in WHILES else []


def _agree(shapes: Sequence[Any]) -> Any:
    """Return what shapes have in common."""
    first = shapes[0]
    for each in shapes[1:]:
        first = first.most_specific_compatible_shape(each)
    return first


def infer_fed_graph(graph: Any, fed: Shapes, traced: Shapes) -> dict[str, list[Sizes]]:
    """Return the shapes of the nodes of a session's graph, serialized, where the outputs of some are fed.

    There are none where TensorFlow finds that what is fed does not fit, as the run itself will.
    """
    for node in graph.node:
        shapes = fed.get(node.name, traced.get(node.name))
        if node.name in fed and "shape" in node.attr:
            node.attr["shape"].shape.CopyFrom(_to_shape(fed[node.name][0]).as_proto())
        elif shapes:
            node.attr[_GIVEN].list.shape.extend(_to_shape(sizes).as_proto() for sizes in shapes)
    made = tf.Graph()
    try:
        with made.as_default():
            tf.graph_util.import_graph_def(graph, name="")
    except NOT_IMPORTED:
        return {}
    return {op.name: [list_sizes(out.shape) for out in op.outputs] for op in made.get_operations()}


def is_open(shapes: Shapes) -> bool:
    """Return whether some shape is not fully known.

    >>> is_open({"a": [[2, 3], []]}), is_open({"a": [[2, -1]]}), is_open({"a": [None]})
    (False, True, True)
    """
    return any(sizes is None or -1 in sizes for node in shapes.values() for sizes in node)


def list_sizes(shape: Any) -> Sizes:
    """List the sizes of a shape, -1 for an unknown one; iterated, TensorFlow 1's rules would give `Dimension`s."""
    return None if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]


def _to_shape(sizes: Sizes) -> Any:
    return tf.TensorShape(None if sizes is None else [None if size < 0 else size for size in sizes])
