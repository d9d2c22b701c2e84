"""Turn While nodes into Enter, Merge, Switch, Exit and NextIteration nodes around calls of condition and body.

Mirrors tensorflow/core/common_runtime/lower_while_op.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplace.errors import TargetError
from simplace.graph.builder import CONTROL, GraphBuilder, Node, Origin, control_inputs
from simplace.graph.dtypes import DataType, base_type, is_ref
from simplace.graph.node_def import FuncRef, FunctionDef
from simplace.lowering.inline_function_utils import (
    LOWER_AS_MULTI_DEVICE,
    leave_stand_in,
    require_attr,
    require_bool,
)
from simplace.lowering.op_signatures import Signatures

_LOOP_COND = "Op<name=LoopCond; signature=input:bool -> output:bool>"


def lower_while(graph: GraphBuilder, node: Node, signatures: Signatures, *, fetchable: bool) -> list[Node]:
    """Replace a While by a loop; return the calls of its condition and its body.

    All nodes of a loop variable have the requested and the assigned device of the variable's source. A resource that
    the body hands on unchanged enters the loop as a constant and has no other nodes.
    """
    work = _LoopLowering(graph, node, signatures)
    work.add_enters()
    work.add_merges()
    work.add_condition()
    work.add_switches()
    work.add_body()
    work.add_exits(fetchable)
    work.close_loop()
    work.move_consumers()
    graph.remove_node(node)
    return [work.condition, work.body]


class _LoopLowering:
    """Add the nodes that take the place of one While; the lists are by loop variable, None for a carried resource."""

    condition: Node
    loop_condition: Node
    body: Node
    executed: Node

    def __init__(self, graph: GraphBuilder, node: Node, signatures: Signatures) -> None:
        self.graph = graph
        self.node = node
        self.edges = node.data_inputs()
        self.made = Origin(node.origin.function, node.origin.name, node.name, "lower While")
        variables = len(node.in_types)
        self.condition_ref = signatures.branch(node.attrs.get("cond"), node.name, variables, 1)
        self.body_ref = signatures.branch(node.attrs.get("body"), node.name, variables, variables)
        self.is_carried = _carried_resources(node, signatures.library[self.body_ref.name])
        if all(self.is_carried):
            raise TargetError(f"node {node.name!r} ({node.op}) has only resources as loop variables")
        self.condition_name = graph.new_name(f"{node.name}/cond")
        self.body_name = graph.new_name(f"{node.name}/body")
        self.enters: list[Node] = []
        self.merges: list[Node | None] = []
        self.switches: list[Node | None] = []
        self.exits: list[Node | None] = []

    def add_enters(self) -> None:
        attrs = {
            "frame_name": self.node.name.encode(),
            "parallel_iterations": require_attr(self.node, "parallel_iterations", int),
        }
        for edge, carried in zip(self.edges, self.is_carried, strict=True):
            own = {**_type_attr(edge.src, edge.src_slot), **attrs, "is_constant": carried}
            self.enters.append(self._add_like(edge.src, "enter", "Enter", [(edge.src, edge.src_slot)], own))
        control = [edge.src for edge in self.node.in_edges if edge.dst_slot == CONTROL]
        if control:
            gate = self._add("LoopControlInputs", "NoOp", [], {}, control)
            for enter in self.enters:
                self.graph.add_control_edge(gate, enter)

    def add_merges(self) -> None:
        for enter, carried in zip(self.enters, self.is_carried, strict=True):
            # The second input becomes the NextIteration once that exists.
            self.merges.append(
                None
                if carried
                else self._add_like(enter, "merge", "Merge", [(enter, 0), (enter, 0)], {**_type_attr(enter, 0), "N": 2})
            )

    def add_condition(self) -> None:
        inputs = [(merge or enter, 0) for merge, enter in zip(self.merges, self.enters, strict=True)]
        self.condition = self._add_call(self.condition_name, self.condition_ref, inputs)
        self.graph.add_control_edge(_find_first_node(self.merges), self.condition)
        require_bool(self.graph, (self.condition, 0), "input", f"{self.node.name}/LoopCond", _LOOP_COND)
        self.loop_condition = self._add("LoopCond", "LoopCond", [(self.condition, 0)], {})

    def add_switches(self) -> None:
        for edge, merge in zip(self.edges, self.merges, strict=True):
            if merge is None:
                self.switches.append(None)
                continue
            op = "RefSwitch" if is_ref(merge.out_types[0]) else "Switch"
            inputs = [(merge, 0), (self.loop_condition, 0)]
            self.switches.append(self._add_like(merge, f"{edge.src.name}_switch", op, inputs, _type_attr(merge, 0)))

    def add_body(self) -> None:
        inputs = [
            (enter, 0) if switch is None else (switch, 1)
            for switch, enter in zip(self.switches, self.enters, strict=True)
        ]
        self.body = self._add_call(self.body_name, self.body_ref, inputs)
        first = _find_first_node(self.switches)
        op = "RefIdentity" if is_ref(first.out_types[1]) else "Identity"
        control = self._add("loop_body_control", op, [(first, 1)], _type_attr(first, 1))
        self.graph.add_control_edge(control, self.body)

    def add_exits(self, fetchable: bool) -> None:
        for switch in self.switches:
            self.exits.append(
                None if switch is None else self._add_like(switch, "exit", "Exit", [(switch, 0)], _type_attr(switch, 0))
            )
        self.executed = self._add("LoopExecuted", "NoOp", [], {}, [node for node in self.exits if node is not None])
        outputs = [
            (edge.src, edge.src_slot) if exit is None else (exit, 0)
            for edge, exit in zip(self.edges, self.exits, strict=True)
        ]
        if fetchable:
            leave_stand_in(self.graph, self.node, outputs, None, self.made)
        else:
            leave_stand_in(self.graph, self.node, [], self.executed, self.made)

    def close_loop(self) -> None:
        ends = []
        for i, merge in enumerate(self.merges):
            if merge is not None:
                end = self._add_like(
                    merge, "next_iteration", "NextIteration", [(self.body, i)], _type_attr(self.body, i), [self.body]
                )
                ends.append((end, merge))
        for end, merge in ends:
            self.graph.update_edge(end, 0, merge, 1)

    def move_consumers(self) -> None:
        for edge in self.node.out_edges:
            if edge.src_slot == CONTROL:
                self.graph.add_control_edge(self.executed, edge.dst)
                continue
            exit = self.exits[edge.src_slot]
            origin = self.edges[edge.src_slot]
            src, slot = (origin.src, origin.src_slot) if exit is None else (exit, 0)
            self.graph.add_edge(src, slot, edge.dst, edge.dst_slot)

    def _add_like(
        self,
        model: Node,
        role: str,
        op: str,
        inputs: Sequence[tuple[Node, int]],
        attrs: Mapping[str, Any],
        after: Sequence[Node] = (),
    ) -> Node:
        """Add a node with the requested and the assigned device of `model`."""
        node = self._add(role, op, inputs, attrs, after, model.device)
        node.assigned = model.assigned
        return node

    def _add(
        self,
        role: str,
        op: str,
        inputs: Sequence[tuple[Node, int]],
        attrs: Mapping[str, Any],
        after: Sequence[Node] = (),
        device: str | None = None,
    ) -> Node:
        """Add a node that requests `device`, or that of the loop; it is assigned to none."""
        return self.graph.add_node(
            self.graph.new_name(f"{self.node.name}/{role}"), op, device=self.node.device if device is None else device,
            attrs=attrs, origin=self.made, inputs=[*inputs, *control_inputs(after)],
        )  # fmt: skip

    def _add_call(self, name: str, function: FuncRef, inputs: Sequence[tuple[Node, int]]) -> Node:
        attrs = {LOWER_AS_MULTI_DEVICE: True, **function.attrs}
        return self.graph.add_node(
            name, function.name, device=self.node.device, attrs=attrs, origin=self.made, inputs=inputs
        )


def _carried_resources(node: Node, body: FunctionDef) -> list[bool]:
    """Return for each loop variable whether it is a resource that the body returns unchanged, at any index."""
    returned = set(body.ret.values())
    return [
        dtype == DataType.DT_RESOURCE and arg.name in returned
        for dtype, arg in zip(node.in_types, body.inputs, strict=True)
    ]


def _find_first_node(nodes: Sequence[Node | None]) -> Node:
    return next(node for node in nodes if node is not None)


def _type_attr(node: Node, slot: int) -> dict[str, Any]:
    return {"T": DataType(base_type(node.out_types[slot]))}
