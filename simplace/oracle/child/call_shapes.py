"""The shapes of all tensors of a call, where the graph leaves them open: what TensorFlow infers from the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from simplace.graph.constant_numbers import Numbers
from simplace.graph.integer_ops import Value
from simplace.graph.op_kinds import CASES, IFS, PARTITIONED_CALLS, WHILES
from simplace.oracle.child.list_shapes import ANY_LIST, LIST_OPS, Given, ListShape, agree, follow_lists
from simplace.oracle.child.loop_integers import ImportedBody, follow_loop, read_values
from simplace.oracle.child.output_shapes import NOT_IMPORTED, make_constant, make_handle
from simplace.oracle.child.tensors import read_handle_data
from simplace.oracle.child.tf_private import function_def_to_graph, handle_data_util

Sizes = list[int] | None  # -1 for an unknown size, None for an unknown rank
Shapes = Mapping[str, Sequence[Sizes]]  # of the outputs of each node
Values = Mapping[int, Numbers]  # of arguments, by number
_Lists = Mapping[str, ListShape]  # of the variants in a body, by name
_GIVEN = "_output_shapes"  # an attribute that TensorFlow's importer takes for what is known of a node's outputs
_OBJECTS = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
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
        self._bodies: dict[tuple[str, ...], tuple[Any, _Lists]] = {}  # by function and shapes of arguments

    def infer(
        self, name: str, arguments: Sequence[Any], elements: Shapes, values: Values
    ) -> dict[str, dict[str, list[Sizes]]]:
        """Return the shapes of the nodes of each function that a call reaches, by function and node.

        `arguments` are TensorShapes, of variables' handles TensorSpecs of the values. `elements` has the shapes of what
        nodes of the function took from iterators, `values` the integers that arguments are, by number. What a function
        is called with twice, in two shapes, stays as it was traced; so does all where TensorFlow finds that the shapes
        do not fit, as the call itself will, or no longer imports an op.
        """
        try:
            return self._infer(name, arguments, elements, values)
        except NOT_IMPORTED:
            return {}

    def _infer(
        self, name: str, arguments: Sequence[Any], elements: Shapes, values: Values
    ) -> dict[str, dict[str, list[Sizes]]]:
        self._bodies.clear()
        found: dict[str, dict[str, list[Sizes]]] = {}
        called: dict[str, list[str]] = {}
        mixed: set[str] = set()
        signature = self._definition(name).signature
        given = [_of_argument(arg, shape) for arg, shape in zip(signature.input_arg, arguments, strict=False)]
        waiting = [(name, given, elements, values)]
        while waiting:
            function, given, known, numbers = waiting.pop(0)
            key = [str(shape) for shape in given]
            if function in called:
                if called[function] != key:
                    mixed.add(function)
                continue
            called[function] = key
            if not self._traced(function):
                continue
            graph, lists = self._infer_body(function, given, known, numbers)
            found[function] = self._read(function, graph)
            waiting += [(callee, shapes, {}, {}) for callee, shapes in self._calls(graph, lists)]
        return {function: shapes for function, shapes in found.items() if function not in mixed}

    def _infer_body(self, name: str, arguments: Sequence[Given], known: Shapes, values: Values) -> tuple[Any, _Lists]:
        """Return the body of a function with the shapes that branches, loops and lists in it have, and these lists."""
        key = (name, *map(str, arguments))
        if key in self._bodies:
            return self._bodies[key]
        graph = self._import(name, arguments, known, values)
        for _ in range(_ROUNDS):
            lists, refined = self._walk(name, graph, arguments)
            if not refined:
                break
            known = {**known, **refined}
            graph = self._import(name, arguments, known, values)
        self._bodies[key] = graph, lists
        return graph, lists

    def _walk(self, name: str, graph: Any, arguments: Sequence[Given]) -> tuple[_Lists, Shapes]:
        """Return the lists in a body, and the shapes of those nodes of which more is known than TensorFlow knows."""
        names = [f"{arg.name}:0" for arg in self._definition(name).signature.input_arg]
        lists = {name: given for name, given in zip(names, arguments, strict=False) if isinstance(given, ListShape)}
        refined: dict[str, list[Sizes]] = {}
        integers: dict[str, Value] = {}
        for op in graph.get_operations():
            after = self._follow(op, lists)
            if op.type in WHILES:
                ends = self._follow_rounds(op, ImportedBody(names, (), lists, integers), after)
                integers.update({out.name: value for out, value in zip(op.outputs, ends, strict=True)})
                after = [
                    replace(given, count=end) if isinstance(given, ListShape) and isinstance(end, int) else given
                    for given, end in zip(after, ends, strict=True)
                ]
            pairs = list(zip(op.outputs, after, strict=bool(after)))
            lists.update({out.name: given for out, given in pairs if isinstance(given, ListShape)})
            merged = [_merge(out.shape, given) for out, given in pairs]
            if any(str(out.shape) != str(shape) for (out, _), shape in zip(pairs, merged, strict=True)):
                refined[op.name] = [list_sizes(shape) for shape in merged]
        return lists, refined

    def _follow(self, op: Any, lists: _Lists) -> list[Given]:
        """Return what a branch, a loop or an op on lists makes, [] where TensorFlow knows as much of its outputs."""
        if op.type in WHILES:
            return self._of_every_round(op.get_attr("body").name, _list_inputs(op, lists))
        if op.type in IFS or op.type in CASES or (op.type in PARTITIONED_CALLS and any(map(_is_list, op.outputs))):
            ways = [self._results(callee, given) for callee, given in _list_calls(op, lists)]
            return [agree(each) for each in zip(*ways, strict=True)]
        return follow_lists(op, _list_inputs(op, lists)) if op.type in LIST_OPS else []

    def _follow_rounds(self, op: Any, around: ImportedBody, variables: list[Given]) -> list[Value]:
        """Return the integers that a loop returns, and the lengths of its lists, where these are known."""
        condition, body = (self._describe_body(op.get_attr(part).name, variables) for part in ("cond", "body"))
        return follow_loop(condition, body, read_values(op.inputs, around))

    def _describe_body(self, name: str, arguments: Sequence[Given]) -> ImportedBody:
        (graph, lists), definition = self._infer_body(name, arguments, {}, {}), self._definition(name)
        results = [graph.get_operation_by_name(node).outputs[slot] for node, slot in self._ends(definition).values()]
        return ImportedBody([f"{arg.name}:0" for arg in definition.signature.input_arg], results, lists, {})

    def _results(self, name: str, arguments: Sequence[Given]) -> list[Given]:
        """Return what is known of a function's results."""
        (graph, lists), ends = self._infer_body(name, arguments, {}, {}), self._ends(self._definition(name))
        found = (graph.get_operation_by_name(node).outputs[slot] for node, slot in ends.values())
        return [_describe(tensor, lists) for tensor in found]

    def _import(self, name: str, arguments: Sequence[Given], known: Shapes, values: Values) -> Any:
        """Return the body of a function as a graph, its shapes inferred by TensorFlow."""
        definition = self._definition(name)
        made, _ = function_def_to_graph.function_def_to_graph_def(definition)
        made.library.function.extend(self._definition(each) for each in self._reached(name)[1:])
        traced = self._traced(name)
        for node, arg, shape in zip(made.node, definition.signature.input_arg, arguments, strict=False):
            if isinstance(shape, tf.TensorSpec):
                make_handle(node, shape)
            elif arg.type not in _OBJECTS and "shape" in node.attr:
                node.attr["shape"].shape.CopyFrom(shape.as_proto())
        for number, value in values.items():
            make_constant(made.node[number], definition.signature.input_arg[number].type, value)
        for node in made.node[len(definition.signature.input_arg) :]:
            shapes = known.get(node.name, traced.get(node.name))
            if shapes:
                node.attr[_GIVEN].list.shape.extend(_to_shape(sizes).as_proto() for sizes in shapes)
        for node in made.node:
            node.attr.pop("_class", None)  # the lookup of a captured variable names its handle, which is not here
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

    def _calls(self, graph: Any, lists: _Lists) -> Iterator[tuple[str, list[Given]]]:
        """Yield the functions that an imported body calls, each with what is known of its arguments."""
        for op in graph.get_operations():
            for callee, shapes in _list_calls(op, lists):
                body = op.get_attr("body").name if op.type in WHILES else ""
                yield callee, self._of_every_round(body, shapes) if body else shapes

    def _of_every_round(self, body: str, shapes: list[Given]) -> list[Given]:
        """Return the shapes that the variables of a loop keep from round to round."""
        traced = self._argument_shapes(body)
        if not self._traced(body):
            return traced
        for _ in range(_ROUNDS):
            after = self._results(body, shapes)
            kept = [
                agree([one, other]) if isinstance(one, ListShape) or str(one) == str(other) else weaker
                for one, other, weaker in zip(shapes, after, traced, strict=True)
            ]
            if list(map(str, kept)) == list(map(str, shapes)):
                return shapes
            shapes = kept
        return traced

    def _argument_shapes(self, name: str) -> list[Given]:
        """Return the shapes that a function was traced with."""
        made, _ = function_def_to_graph.function_def_to_graph_def(self._definition(name))
        arguments = self._definition(name).signature.input_arg
        shapes = [tf.TensorShape(node.attr["shape"].shape) for node in made.node[: len(arguments)]]
        return [_of_argument(arg, shape) for arg, shape in zip(arguments, shapes, strict=True)]


def _is_list(tensor: Any) -> bool:
    return bool(tensor.dtype == tf.variant)


def _of_argument(arg: Any, shape: Any) -> Given:
    return ANY_LIST if arg.type == tf.variant.as_datatype_enum else shape


def _describe(tensor: Any, lists: _Lists) -> Given:
    if _is_list(tensor):
        return lists.get(tensor.name, ANY_LIST)
    data = handle_data_util.get_resource_handle_data(tensor) if tensor.dtype == tf.resource else None
    return read_handle_data(data) or tensor.shape


def _list_inputs(op: Any, lists: _Lists) -> list[Given]:
    return [_describe(tensor, lists) for tensor in op.inputs]


def _merge(shape: Any, given: Given) -> Any:
    """Return what two sources know of a tensor's shape."""
    is_shape = isinstance(given, tf.TensorShape)
    return shape.merge_with(given) if is_shape and shape.is_compatible_with(given) else shape


def _list_calls(op: Any, lists: _Lists) -> list[tuple[str, list[Given]]]:
    """List the functions that an op calls, each with what is known of the arguments that it gives."""
    shapes = _list_inputs(op, lists)
    if op.type in PARTITIONED_CALLS:
        return [(op.get_attr("f").name, shapes)]
    if op.type in IFS:
        return [(op.get_attr(branch).name, shapes[1:]) for branch in ("then_branch", "else_branch")]
    if op.type in CASES:
        return [(called.name, shapes[1:]) for called in op.get_attr("branches")]
    return [(op.get_attr(part).name, shapes) for part in ("cond", "body")] if op.type in WHILES else []


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
