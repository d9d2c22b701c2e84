"""The library functions that a traced call needs: their definitions, and notes on what made their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from simplace.graph.captured_variables import name_captured_variables
from simplace.graph.op_kinds import MUST_COMPILE, WHILES, is_while, is_write
from simplace.oracle.child.call_shapes import CallShapes, Shapes, Values, is_open, list_sizes
from simplace.oracle.child.called_functions import list_alike, list_called
from simplace.oracle.child.layer_scopes import list_layer_scopes
from simplace.oracle.child.list_shapes import STACK
from simplace.oracle.child.output_shapes import infer_output_shapes
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import describe_variable, read_integers
from simplace.oracle.child.tf_private import atomic_function, context, function_pb2
from simplace.oracle.child.waiting_ops import has_put, uses_container

_HANDS_ON = WHILES | {"Identity"}
_NOT_IN_NAMES = re.compile(r"[^\w.]+")


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """Record of an output of a function: what a placeholder value for it needs.

    `handed_through` is the number of the input that it is, if it is one. `optional` is the structure inside, if it is
    a `tf.experimental.Optional`.
    """

    dtype: Any
    shape: Any
    handed_through: int | None
    optional: Any


@dataclass(frozen=True, slots=True)
class CallKind:
    """Record of what a call of a function does, which decides how often it is computed.

    `is_step` tells that it takes an element from an iterator, and does more than to hand it on to others, and
    `uses_container` that calls may wait for each other, by a queue for example.
    """

    is_step: bool
    uses_container: bool


class Functions:
    """The traced functions of the program; each graph is kept until its notes are written."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._graphs: dict[str, Any] = {}
        self._outputs: dict[str, tuple[CapturedOutput, ...]] = {}
        self._definitions: dict[str, function_pb2.FunctionDef] = {}
        self._kinds: dict[str, CallKind] = {}
        self._of_calls: dict[tuple[str, ...], tuple[CapturedOutput, ...]] = {}
        self._open: dict[str, Shapes] = {}  # the shapes of functions that leave some open
        self._shapes = CallShapes(self.definition, self.reached, lambda name: self._open.get(name, {}))
        self._called: set[str] = set()

    def watch(self) -> None:
        """Record the graph of each function that is made from now on."""
        patch_method(atomic_function, "from_func_graph", self._note_graph)

    def _note_graph(self, make: Any) -> Any:
        def make_noted(name: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            made = make(name, graph, *args, **kwargs)
            self._graphs[made.name.decode()] = graph
            return made

        return make_noted

    def exists(self, name: str) -> bool:
        """Return whether TensorFlow's context has a function of this name."""
        return bool(context.context().has_function(name))

    def definition(self, name: str) -> function_pb2.FunctionDef:
        """Return a function of TensorFlow's context, fetched once."""
        known = self._definitions.get(name)
        if known is None:
            known = self._definitions[name] = context.context().get_function_def(name)
        return known

    def library(self, name: str) -> tuple[bytes, list[str]]:
        """Return the functions that `name` reaches, itself first: a serialized GraphDef and their names."""
        names = self.reached(name)
        return bytes(self._make_graph(names).SerializeToString()), names

    def graph_of_call(self, node: Any, names: Iterable[str]) -> bytes:
        """Serialize a GraphDef of one node with the functions of these names."""
        graph = self._make_graph(names)
        graph.node.append(node)
        return bytes(graph.SerializeToString())

    def _make_graph(self, names: Iterable[str]) -> Any:
        graph = tf.compat.v1.GraphDef()
        graph.versions.producer = tf.version.GRAPH_DEF_VERSION
        graph.library.function.extend(map(self.definition, names))
        return graph

    def kind_of(self, name: str) -> CallKind:
        """Return what a call of `name` does."""
        known = self._kinds.get(name)
        if known is None:
            known = self._kinds[name] = self._find_kind(name)
        return known

    def _find_kind(self, name: str) -> CallKind:
        types = {node.op for reached in self.reached(name) for node in self.definition(reached).node_def}
        returns_nothing = not self.definition(name).signature.output_arg
        is_producer = has_put(types) and returns_nothing and not any(map(is_write, types))
        takes_element = any(each.startswith("IteratorGetNext") for each in types)
        return CallKind(takes_element and not is_producer, uses_container(types))

    def reached(self, name: str) -> list[str]:
        """List the functions that `name` calls at any depth, or what may stand in for them, itself first."""
        seen = {name: None}
        names = [name]
        for reached in names:  # grows while it is walked
            definition = self.definition(reached)
            called = dict.fromkeys(list_called(definition.node_def, self.exists))
            called.update(dict.fromkeys(list_alike(definition, self._list_names(), self.definition)))
            names.extend(new for new in called if new not in seen)
            seen.update(called)
        return names

    def _list_names(self) -> Iterator[str]:
        """Yield the names of all functions of TensorFlow's context."""
        yield from context.context().list_function_names()

    def outputs(self, name: str) -> tuple[CapturedOutput, ...]:
        """Describe each output of a function."""
        self._remember_outputs(name)
        return self._outputs.get(name, ())

    def outputs_of_call(self, name: str, inputs: Sequence[Any]) -> tuple[CapturedOutput, ...]:
        """Describe each output of a call, with shapes as far as those of its inputs determine them."""
        outputs = self.outputs(name)
        if all(output.shape.is_fully_defined() or output.handed_through is not None for output in outputs):
            return outputs
        key = (name, *(str(tensor.shape) for tensor in inputs))
        known = self._of_calls.get(key)
        if known is None:
            known = self._of_calls[key] = tuple(self._inferred(name, inputs, outputs))
        return known

    def _inferred(
        self, name: str, inputs: Sequence[Any], outputs: Sequence[CapturedOutput]
    ) -> Iterator[CapturedOutput]:
        library = [self.definition(reached) for reached in self.reached(name)[1:]]
        traced = [output.shape for output in outputs]
        shapes = infer_output_shapes(self.definition(name), inputs, library, traced)
        yield from (replace(output, shape=shape) for output, shape in zip(outputs, shapes, strict=True))

    def write_notes(self, names: Iterable[str]) -> None:
        """Write the notes of functions that have none yet, then release their graphs."""
        for name in names:
            self._forget_deleted(name)
            self._remember_outputs(name)
            graph = self._graphs.pop(name, None)
            if graph is not None and self._recorder.wants_notes(name):
                notes = note_function(self.definition(name), graph, self._lines)
                self._recorder.notes(name, notes, list_layer_scopes(graph))
                shapes = {node: note[2] for node, note in notes.items()}
                if is_open(shapes):
                    self._open[name] = shapes

    def copy_notes(self, name: str, made: str) -> None:
        """Write the lines of a function's nodes for one that was made of it, whose nodes are named after them."""
        graph = self._graphs.get(name)
        if graph is None or not self._recorder.wants_notes(made):
            return
        notes = note_function(self.definition(name), graph, self._lines)
        found = {node.name: _find_by_scope(node.name, notes) for node in self.definition(made).node_def}
        self._recorder.notes(made, {node: [*note[:2], []] for node, note in found.items() if note}, {})

    def leaves_open(self, name: str, node: str) -> bool:
        """Return whether the shape of some output of a node of a function was left open when it was traced."""
        return is_open({node: self._open.get(name, {}).get(node, ())})

    def write_first_call(self, name: str, inputs: Sequence[Any], elements: Shapes) -> None:
        """Write what the first call of a function tells: the integers among its arguments, shapes that are left open.

        Loops and branches may ask for the integers. `elements` has the shapes of what its nodes took from iterators.
        """
        if name in self._called:
            return
        self._called.add(name)
        read = {number: read_integers(tensor) for number, tensor in enumerate(inputs)}
        values = {number: value for number, value in read.items() if value is not None}
        gives_sizes = self._write_shapes(name, inputs, elements, values)
        if values:
            self._recorder.event("given values", function=name, values=values, gives_sizes=gives_sizes)

    def _write_shapes(self, name: str, inputs: Sequence[Any], elements: Shapes, values: Values) -> bool:
        """Write the shapes of a call where its graph leaves them open; return whether some follow from its integers."""
        signature = self.definition(name).signature
        given = {
            arg.name: [list_sizes(tensor.shape)]
            for arg, tensor in zip(signature.input_arg, inputs, strict=True)
            if arg.type != tf.resource.as_datatype_enum and self.leaves_open(name, arg.name)
        }
        is_sized = bool(given or elements or self._stacks_open(name))
        if not is_sized and not (values and name in self._open):
            return False
        arguments = [describe_variable(tensor) or tensor.shape for tensor in inputs]
        found = self._shapes.infer(name, arguments, elements, {})
        numbered = self._shapes.infer(name, arguments, elements, values) if values and _leave_open(found) else {}
        gives_sizes = bool(numbered) and numbered != found
        if not is_sized and not gives_sizes:
            return False
        for function, shapes in (numbered or found).items():
            self._recorder.event("shapes", function=function, nodes=shapes)
        if given or elements:
            self._recorder.event("given shapes", function=name, nodes={**given, **elements})
        return gives_sizes

    def _stacks_open(self, name: str) -> bool:
        """Return whether a function that is reached makes a tensor of a list whose length its trace leaves open."""
        open_ones = [each for each in self.reached(name) if each in self._open]
        nodes = ((each, node) for each in open_ones for node in self.definition(each).node_def)
        return any(node.op == STACK and self.leaves_open(each, node.name) for each, node in nodes)

    def _forget_deleted(self, name: str) -> None:
        """Release the graph of a function that the context has no more: an imported graph may use its name."""
        if name in self._graphs and name not in self._definitions and not self.exists(name):
            del self._graphs[name]

    def _remember_outputs(self, name: str) -> None:
        graph = self._graphs.get(name)
        if graph is None or name in self._outputs:
            return
        places = {tensor.name: place for place, tensor in enumerate(graph.inputs)}
        optionals = _find_optionals(graph)
        count = len(self.definition(name).signature.output_arg)  # gradients add outputs to the graph later on
        self._outputs[name] = tuple(
            CapturedOutput(out.dtype, out.shape, places.get(_find_origin(out).name), optionals.get(out.name))
            for out in graph.outputs[:count]
        )


def _leave_open(found: Mapping[str, Shapes]) -> bool:
    return any(map(is_open, found.values()))


def _find_by_scope(name: str, notes: dict[str, Any]) -> Any:
    """Return the note of a node, or else of the innermost scope that is called as a node is."""
    while name and name not in notes:
        name = name.rpartition("/")[0]
    return notes.get(name)


def note_function(definition: Any, graph: Any, lines: SourceLines) -> dict[str, Any]:
    """Return the notes of a function's nodes, and of its arguments and results by TensorFlow's names for them."""
    signature = definition.signature
    notes = note_graph(graph, lines)
    variables = name_captured_variables(graph)
    for arg, tensor in zip(signature.input_arg, graph.inputs, strict=False):
        noted = _note_op(tensor.op, lines)
        notes[arg.name] = [*noted[:3], variables.get(tensor.name, ""), *noted[4:]]
    for arg, tensor in zip(signature.output_arg, graph.outputs, strict=False):
        notes[f"{arg.name}_RetVal"] = _note_op(tensor.op, lines)
    return notes


def note_graph(graph: Any, lines: SourceLines) -> dict[str, Any]:
    """Return the user's line, the line of the device scope and the output shapes of each op of a graph."""
    return {op.name: _note_op(op, lines) for op in graph.get_operations()}


def make_compiled_call(name: str, shown: str) -> Any:
    """Return the node that stands for a call which XLA compiles whole; its tensors are no part of it."""
    node = tf.compat.v1.NodeDef(name=_NOT_IN_NAMES.sub("_", shown), op="StatefulPartitionedCall")
    node.attr["f"].func.name = name
    node.attr[MUST_COMPILE].b = True
    for types in ("Tin", "Tout"):
        node.attr[types].list.SetInParent()
    return node


def _find_origin(tensor: Any) -> Any:
    """Return the tensor that a tensor is an unchanged copy of, through the ops that only forward it."""
    while tensor.op.type in _HANDS_ON:
        tensor = tensor.op.inputs[tensor.value_index if is_while(tensor.op.type) else 0]
    return tensor


def _find_optionals(graph: Any) -> dict[str, Any]:
    """Map the variant's name of each structured output that is an Optional to the structure of its element."""
    outputs = tf.nest.flatten(getattr(graph, "structured_outputs", None))
    found = [output for output in outputs if isinstance(output, tf.experimental.Optional)]
    flat = [tf.nest.flatten(output, expand_composites=True)[0] for output in found]
    names = {id(tensor): tensor.name for tensor in graph.outputs}
    return {names.get(id(variant), variant.name): each.element_spec for variant, each in zip(flat, found, strict=True)}


def _note_op(op: Any, lines: SourceLines) -> list[Any]:
    of_library = ["", True] if lines.is_of_library(op) else []
    return [lines.of_op(op), lines.of_device(op), [list_sizes(out.shape) for out in op.outputs], *of_library]
