"""Turn If and Case nodes into Switch and Merge nodes around a call per branch.

Mirrors tensorflow/core/common_runtime/lower_if_op.cc and lower_case_op.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplace.errors import TargetError
from simplace.graph.builder import CONTROL, GraphBuilder, Node, Origin, control_inputs
from simplace.graph.dtypes import DataType, base_type
from simplace.graph.node_def import FuncRef
from simplace.lowering.inline_function_utils import (
    COLOCATION,
    GROUP,
    LOWER_AS_MULTI_DEVICE,
    leave_stand_in,
    require_bool,
)
from simplace.lowering.op_signatures import Signatures

Tensor = tuple[Node, int]

_SWITCH = "Op<name=Switch; signature=data:T, pred:bool -> output_false:T, output_true:T; attr=T:type>"


def lower_if(graph: GraphBuilder, node: Node, signatures: Signatures, *, fetchable: bool) -> list[Node]:
    """Replace an If by switches, a call of each branch and merges; return the two calls."""
    branches = [_find_branch(node, node.attrs.get(key), signatures) for key in ("then_branch", "else_branch")]
    names = [graph.new_name(f"{node.name}/{role}") for role in ("then", "else")]
    work = _BranchLowering(graph, node, "lower If", own_groups=True)
    predicate = work.inputs[0]
    require_bool(graph, predicate, "pred", f"{node.name}/switch_pred", _SWITCH)

    switch = work.add("switch_pred", "Switch", [predicate, predicate], _type_attr(predicate))
    pivot_else = work.add("pivot_f", "Identity", [(switch, 0)], _type_attr(predicate))
    pivot_then = work.add("pivot_t", "Identity", [(switch, 1)], _type_attr(predicate))
    switches = [work.add_data_switch("Switch", tensor, predicate, GROUP, {}) for tensor in work.inputs[1:]]
    work.move_control_inputs(switch)

    # Output 1 of a Switch is the true one.
    calls = [
        work.add_call(names[0], branches[0], [(s, 1) for s in switches], pivot_then, branches[0].attrs),
        work.add_call(names[1], branches[1], [(s, 0) for s in switches], pivot_else, branches[1].attrs),
    ]
    work.merge("output", calls, [pivot_then, pivot_else], fetchable)
    return calls


def lower_case(graph: GraphBuilder, node: Node, signatures: Signatures, *, fetchable: bool) -> list[Node]:
    """Replace a Case by switches, a call of each branch and merges; return the calls.

    The data switches get a `_class` without the prefix `loc:@`, as in TensorFlow, so it colocates nothing. The
    attributes of the branch functions are lost.
    """
    refs = node.attrs.get("branches")
    if not isinstance(refs, tuple) or not refs:
        raise TargetError(f"node {node.name!r} ({node.op}) has no branch functions")
    branches = [_find_branch(node, ref, signatures) for ref in refs]
    names = [graph.new_name(f"{node.name}/branch{b}") for b in range(len(branches))]
    work = _BranchLowering(graph, node, "lower Case", own_groups=False)
    index = work.inputs[0]
    outs = {"num_outs": len(branches)}

    switch = work.add("branch_index", "_SwitchN", [index, index], {**_type_attr(index), **outs})
    pivots = [work.add(f"pivot_{b}", "Identity", [(switch, b)], _type_attr(index)) for b in range(len(branches))]
    switches = [work.add_data_switch("_SwitchN", tensor, index, b"", outs) for tensor in work.inputs[1:]]
    work.move_control_inputs(switch)

    calls = [
        work.add_call(name, branch, [(s, b) for s in switches], pivot, {})
        for b, (name, branch, pivot) in enumerate(zip(names, branches, pivots, strict=True))
    ]
    work.merge("merge", calls, pivots, fetchable)
    return calls


class _BranchLowering:
    """Add the nodes that take the place of one If or Case."""

    def __init__(self, graph: GraphBuilder, node: Node, made_by: str, *, own_groups: bool) -> None:
        self.graph = graph
        self.node = node
        self.inputs: list[Tensor] = [(edge.src, edge.src_slot) for edge in node.data_inputs()]
        self.made = Origin(node.origin.function, node.origin.name, node.name, made_by)
        self.groups = {COLOCATION: node.attrs[COLOCATION]} if own_groups and COLOCATION in node.attrs else {}

    def add(
        self, role: str, op: str, inputs: Sequence[Tensor], attrs: Mapping[str, Any], after: Sequence[Node] = ()
    ) -> Node:
        return self.graph.add_node(
            self.graph.new_name(f"{self.node.name}/{role}"),
            op,
            device=self.node.device,
            attrs={**attrs, **self.groups},
            origin=self.made,
            inputs=[*inputs, *control_inputs(after)],
        )

    def add_data_switch(
        self, op: str, tensor: Tensor, selector: Tensor, prefix: bytes, attrs: Mapping[str, Any]
    ) -> Node:
        src = tensor[0]
        return self.graph.add_node(
            self.graph.new_name(f"{self.node.name}/{src.name}"),
            op,
            device=src.device,
            attrs={**_type_attr(tensor), **attrs, COLOCATION: (prefix + src.name.encode(),)},
            origin=self.made,
            inputs=[tensor, selector],
        )

    def move_control_inputs(self, switch: Node) -> None:
        for edge in self.node.in_edges:
            if edge.dst_slot == CONTROL:
                self.graph.add_control_edge(edge.src, switch)

    def add_call(
        self, name: str, branch: FuncRef, inputs: Sequence[Tensor], pivot: Node, attrs: Mapping[str, Any]
    ) -> Node:
        return self.graph.add_node(
            name, branch.name, device=self.node.device, attrs={LOWER_AS_MULTI_DEVICE: True, **attrs}, origin=self.made,
            inputs=[*inputs, (pivot, CONTROL)],
        )  # fmt: skip

    def merge(self, role: str, calls: list[Node], pivots: list[Node], fetchable: bool) -> None:
        count = {"N": len(calls)}
        merges = [
            self.add(role, "Merge", [(call, i) for call in calls], {**_type_attr((calls[0], i)), **count})
            for i in range(len(calls[0].out_types))
        ]
        executed = self.add(
            "branch_executed", "Merge", [(pivot, 0) for pivot in pivots], {**_type_attr((pivots[0], 0)), **count}, calls
        )
        outputs = [(merge, 0) for merge in merges] if fetchable else []
        leave_stand_in(self.graph, self.node, outputs, executed, self.made)
        for edge in self.node.out_edges:
            if edge.src_slot == CONTROL:
                self.graph.add_control_edge(executed, edge.dst)
            else:
                self.graph.add_edge(merges[edge.src_slot], 0, edge.dst, edge.dst_slot)
        self.graph.remove_node(self.node)


def _find_branch(node: Node, ref: object, signatures: Signatures) -> FuncRef:
    return signatures.branch(ref, node.name, len(node.in_types) - 1, len(node.out_types))


def _type_attr(tensor: Tensor) -> dict[str, Any]:
    src, slot = tensor
    return {"T": DataType(base_type(src.out_types[slot]))}
