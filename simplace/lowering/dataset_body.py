"""The datasets that a function makes, as tf.data's optimizers change them: by name, with what it returns."""

from __future__ import annotations

from collections.abc import Mapping

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue, FunctionDef, NodeDef, TensorInfo
from simplace.lowering.fusion_utils import make_unique_name
from simplace.lowering.topological_sort import sort_nodes


class DatasetBody:
    """A function's nodes by name and the tensors that it returns, to be changed."""

    def __init__(self, function: FunctionDef) -> None:
        self.nodes = {node.name: node for node in function.nodes}
        self.ret = dict(function.ret)
        self.made_of: dict[str, str] = {}
        self._arguments = dict.fromkeys(arg.name for arg in function.inputs)
        self._ends = len(function.inputs) + len(function.outputs)

    def find_input(self, name: str, slot: int = 0) -> NodeDef | None:
        """Return the node that makes an input of a node, None for an argument of the function."""
        return self.nodes.get(_name_of(self.nodes[name].inputs[slot]))

    def sort_nodes(self) -> list[NodeDef]:
        """Return the nodes with each after what it takes."""
        return sort_nodes(self._arguments, [*self.nodes.values()])

    def make_name(self, prefix: str) -> str:
        """Return a name for another node."""
        return make_unique_name(prefix, {*self._arguments, *self.nodes}, len(self.nodes) + self._ends)

    def add_fused(
        self, name: str, op: str, inputs: tuple[str, ...], attrs: Mapping[str, AttrValue], fused: NodeDef
    ) -> None:
        """Add a dataset that others are fused to; `fused` is the first of them."""
        self.nodes[name] = NodeDef(name, op, "", inputs, attrs)
        self.made_of[name] = fused.name

    def add_constant(self, dtype: DataType, value: int) -> str:
        """Add a constant, a scalar; return its tensor."""
        name = self.make_name("Const")
        attrs = {"dtype": dtype, "value": TensorInfo(dtype, (), value)}
        self.nodes[name] = NodeDef(name, "Const", "", (), attrs)
        return f"{name}:output:0"

    def lacks_nodes(self) -> bool:
        """Return whether a node takes a tensor of one that was removed."""
        taken = {_name_of(ref) for node in self.nodes.values() for ref in node.inputs}
        return not {*self._arguments, *self.nodes}.issuperset(taken)

    def hand_over(self, name: str, tensor: str) -> None:
        """Let what takes the dataset that a node makes, or runs after it, take another one."""

        def exchange(ref: str) -> str:
            if _name_of(ref) != name:
                return ref
            return f"^{_name_of(tensor)}" if ref.startswith("^") else tensor

        for node in self.nodes.values():
            if any(_name_of(ref) == name for ref in node.inputs):
                self.nodes[node.name] = node._replace(inputs=tuple(map(exchange, node.inputs)))
        self.ret = {result: exchange(ref) for result, ref in self.ret.items()}

    def remove(self, nodes: list[NodeDef]) -> None:
        """Remove nodes."""
        for node in nodes:
            self.nodes.pop(node.name, None)


def list_data(node: NodeDef) -> list[str]:
    """Return the tensors that a node takes."""
    return [ref for ref in node.inputs if not ref.startswith("^")]


def _name_of(ref: str) -> str:
    return ref.removeprefix("^").partition(":")[0]
