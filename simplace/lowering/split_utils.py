"""Split a function in two, of which the second takes what the first computes.

Mirrors `SplitFunction` of tensorflow/core/grappler/optimizers/data/split_utils.cc.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from simplace.graph.dtypes import DataType, base_type
from simplace.graph.node_def import ArgDef, FunctionDef, NodeDef
from simplace.graph.op_kinds import is_control_flow
from simplace.lowering.fusion_utils import CONTEXT, OF_DATASETS, FunctionLibrary
from simplace.lowering.op_signatures import Signatures


class CannotSplitError(Exception):
    """Say that TensorFlow does not split a function (UNIMPLEMENTED)."""


def split_function(
    function: FunctionDef, moved: Set[str], captured: int, library: FunctionLibrary, signatures: Signatures
) -> tuple[FunctionDef, FunctionDef]:
    """Return a function's nodes that are moved as a first one, and the others as a second; add both to the library.

    The last `captured` arguments are those of both. Raises `CannotSplitError`.
    """
    if not {OF_DATASETS, CONTEXT}.issuperset(function.attrs):
        raise CannotSplitError
    if any(is_control_flow(node.op) or node.op == "ControlTrigger" for node in function.nodes):
        raise CannotSplitError
    edges = _Edges(function, moved, captured, signatures)
    rest = [node for node in function.nodes if node.name not in moved]
    nodes = tuple(node._replace(inputs=tuple(filter(None, map(edges.cross, node.inputs)))) for node in rest)
    ret = {result.name: edges.cross(function.ret[result.name]) for result in function.outputs}
    if not edges.outputs:
        raise CannotSplitError
    attrs = {key: value for key, value in function.attrs.items() if key == CONTEXT}
    plain = replace(function, attrs=attrs, control_outputs=(), arg_attrs={})
    first = replace(
        plain,
        name=library.make_name(f"{function.name}_first_split"),
        outputs=tuple(edges.outputs),
        nodes=tuple(node for node in function.nodes if node.name in moved),
        ret=edges.returned,
        control_ret={key: node for key, node in function.control_ret.items() if node in moved},
    )
    second = replace(
        plain,
        name=library.make_name(f"{function.name}_second_split"),
        inputs=(*edges.inputs, *function.inputs[len(function.inputs) - captured :]),
        nodes=nodes,
        ret=ret,
        control_ret={key: node for key, node in function.control_ret.items() if node not in moved},
    )
    for made in (first, second):
        library.add(made, {node.name: (function.name, node.name) for node in made.nodes})
    return first, second


class _Edges:
    """The tensors that go from the first function to the second, each once (`InputRewriter`)."""

    def __init__(self, function: FunctionDef, moved: Set[str], captured: int, signatures: Signatures) -> None:
        self.outputs: list[ArgDef] = []
        self.inputs: list[ArgDef] = []
        self.returned: dict[str, str] = {}
        self._moved = moved
        self._signatures = signatures
        self._nodes: dict[str, NodeDef] = {node.name: node for node in function.nodes}
        self._given = {arg.name: arg for arg in function.inputs[: len(function.inputs) - captured]}
        self._captured = {arg.name for arg in function.inputs[len(function.inputs) - captured :]}
        self._used = {*self._nodes, *self._given, *self._captured}
        self._known: dict[str, str] = {}

    def cross(self, ref: str) -> str:
        """Return what an input of the second function's nodes becomes, "" for one that goes."""
        if ref not in self._known:
            self._known[ref] = self._change(ref)
        return self._known[ref]

    def _change(self, ref: str) -> str:
        name = ref.removeprefix("^").partition(":")[0]
        if ref.startswith("^"):
            return "" if name in self._moved else ref
        if name in self._given:
            return self._add(ref, self._given[name])
        return self._add(ref, self._find_output(ref)) if name in self._moved else ref

    def _find_output(self, ref: str) -> ArgDef:
        name, output, *_ = ref.split(":")
        node = self._nodes[name]
        ranges = {arg: (first, stop) for arg, first, stop in self._signatures.outputs_of(node.op, node.attrs)}
        first, stop = ranges[output]
        if stop - first != 1:  # a list of tensors
            raise CannotSplitError
        return ArgDef(output, DataType(base_type(self._signatures.types_of(node.op, node.attrs)[1][first])))

    def _add(self, ref: str, arg: ArgDef) -> str:
        result = replace(arg, name=f"output_{len(self.outputs)}")
        self.outputs.append(result)
        self.returned[result.name] = ref
        given = replace(arg, name=self._make_name(f"input_{len(self.inputs)}"))
        self.inputs.append(given)
        return given.name

    def _make_name(self, prefix: str) -> str:
        name, number = prefix, 0
        while name in self._used:
            name, number = f"{prefix}_{number}", number + 1
        self._used.add(name)
        return name
