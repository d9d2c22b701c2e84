"""Replace a function call by the nodes of the function's body.

Mirrors tensorflow/core/common_runtime/lower_function_call_op.cc and `InlineFunctionBody` of
tensorflow/core/common_runtime/inline_function_utils.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from simplace.devices.device_name import DeviceName
from simplace.errors import TargetError
from simplace.graph.builder import CONTROL, Edge, GraphBuilder, Node, Origin, control_inputs
from simplace.graph.dtypes import DataType, base_type, name_in_messages
from simplace.graph.op_kinds import IMPLEMENTS, NO_INLINE, is_enter, is_partitioned_call
from simplace.lowering.function_body import Body
from simplace.program.status import invalid_argument

LOWER_AS_MULTI_DEVICE = "_lower_as_multi_device_function"
COLOCATION = "_class"
GROUP = b"loc:@"
Attr = TypeVar("Attr")


def may_inline(call: Node, body: Body, function_attrs: Mapping[str, Any]) -> bool:
    """Return whether TensorFlow would put the body in the call's place (ValidateInlining)."""
    takes = tuple(base_type(node.out_types[0]) for node in body.args)
    gives = tuple(base_type(node.in_types[0]) for node in body.results)
    fits = call.in_types == takes and call.out_types == gives
    return fits and IMPLEMENTS not in function_attrs and function_attrs.get(NO_INLINE) is not True


def inline_function_body(graph: GraphBuilder, call: Node, body: Body, *, fetchable: bool) -> list[Node]:
    """Put the body in the place of `call`; return the nodes of the body that are now in the graph.

    The nodes of a PartitionedCall and of a branch or loop body may have devices of their own, those of a call by
    function name all take the call's. A node called like the call stays behind, so that control inputs by that name
    still mean something: a NoOp, or in a graph whose nodes may be fetched an IdentityN over the results.
    """
    work = _Inlining(graph, call, body)
    work.add_entry()
    work.add_inputs()
    work.clone_nodes()
    work.clone_edges()
    work.connect_inputs()
    work.add_outputs()
    work.add_exit()
    work.move_consumers()
    work.leave_stand_in(fetchable)
    graph.remove_node(call)
    return [clone for clone in work.clones.values() if graph.nodes[clone.id] is clone]


class _Inlining:
    def __init__(self, graph: GraphBuilder, call: Node, body: Body) -> None:
        self.graph = graph
        self.call = call
        self.body = body
        self.multi_device = is_partitioned_call(call.op) or call.attrs.get(LOWER_AS_MULTI_DEVICE) is True
        # A call that lowering made of an If, Case or While stands for that node.
        self.via = call.origin.via if call.origin.made_by.startswith("lower") else call.name
        self.made = Origin(call.origin.function, call.origin.name, self.via, "inline")
        self.entry: Node | None = None
        self.exit: Node | None = None
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.clones: dict[int, Node] = {}

    def add_entry(self) -> None:
        controls = [edge for edge in self.call.in_edges if edge.dst_slot == CONTROL]
        if controls:
            self.entry = self._control_node("input_control_node")
            for edge in controls:
                self.graph.add_edge(edge.src, CONTROL, self.entry, CONTROL)

    def add_inputs(self) -> None:
        edges = self.call.data_inputs()
        if len(edges) != len(self.body.args):
            raise TargetError(
                f"node {self.call.name!r} calls {self.body.name!r} with {len(edges)} inputs; "
                f"the function takes {len(self.body.args)}"
            )
        for edge in edges:
            device = (edge.src.assigned or edge.src.device) if self.multi_device else self.call.device
            self.inputs.append(self._identity("input", edge, device))

    def clone_nodes(self) -> None:
        prefix = f"{self.call.name}/"
        spec = DeviceName.parse(self.call.device)
        groups = {name: prefix + name for name in self.body.names}
        groups.update(zip((arg.name for arg in self.body.args), (node.name for node in self.inputs), strict=True))
        for node in self.body.graph.op_nodes():
            clone = self.graph.add_node(
                prefix + node.name,
                node.op,
                device=_merge_call_device(node.device, self.call.device, spec)
                if self.multi_device
                else self.call.device,
                attrs=_rename_attrs(node, prefix, groups),
                origin=Origin(self.body.name, node.name, self.via),
                types=(node.in_types, node.out_types),
            )
            self.clones[node.id] = clone
            if self.entry is not None and node.id in self.body.needs_entry:
                self.graph.add_edge(self.entry, CONTROL, clone, CONTROL)

    def clone_edges(self) -> None:
        clones = self.clones
        for edge in self.body.graph.edges:
            if edge is not None and edge.src.id in clones and edge.dst.id in clones:
                self.graph.add_edge(clones[edge.src.id], edge.src_slot, clones[edge.dst.id], edge.dst_slot)

    def connect_inputs(self) -> None:
        for arg, node in zip(self.body.args, self.inputs, strict=True):
            clone = self.clones[arg.id]
            if self.entry is not None:
                self.graph.add_edge(self.entry, CONTROL, node, CONTROL)
            for edge in clone.out_edges:
                self.graph.add_edge(node, edge.src_slot, edge.dst, edge.dst_slot)
            self.clones[arg.id] = node
            self.graph.remove_node(clone)

    def add_outputs(self) -> None:
        for result in self.body.results:
            clone = self.clones[result.id]
            node = self._identity("output", clone.data_input(0), "" if self.multi_device else self.call.device)
            self.outputs.append(node)
            for edge in clone.control_inputs():
                self.graph.add_edge(edge.src, CONTROL, node, CONTROL)
            self.graph.remove_node(clone)

    def add_exit(self) -> None:
        self.exit = self._control_node("output_control_node")
        must_run = [self.clones[node.id] for node in self.body.control_results]
        for node in must_run if self.multi_device else self.outputs:
            self.graph.add_edge(node, CONTROL, self.exit, CONTROL)
        if not self.exit.in_edges and self.entry is not None:
            self.graph.add_edge(self.entry, CONTROL, self.exit, CONTROL)

    def move_consumers(self) -> None:
        assert self.exit is not None, "the exit is made before the consumers are moved"
        for edge in self.call.out_edges:
            if edge.src_slot == CONTROL:
                self.graph.add_edge(self.exit, CONTROL, edge.dst, CONTROL)
            else:
                self.graph.add_edge(self.outputs[edge.src_slot], 0, edge.dst, edge.dst_slot)

    def leave_stand_in(self, fetchable: bool) -> None:
        assert self.exit is not None, "the exit is made before the stand-in"
        leave_stand_in(
            self.graph, self.call, [(node, 0) for node in self.outputs] if fetchable else [], self.exit, self.made
        )

    def _control_node(self, role: str) -> Node:
        name = self.graph.new_name(f"Func/{self.call.name}/{role}")
        return self.graph.add_node(name, "NoOp", device=self.call.device, origin=self.made, types=((), ()))

    def _identity(self, role: str, edge: Edge, device: str) -> Node:
        name = self.graph.new_name(f"Func/{self.call.name}/{role}")
        dtype = base_type(edge.src.out_types[edge.src_slot])
        attrs: dict[str, Any] = {"T": DataType(dtype)}
        if self.multi_device:
            attrs[COLOCATION] = (GROUP + edge.src.name.encode(),)
        return self.graph.add_node(
            name, "Identity", device=device, attrs=attrs, origin=self.made, types=((dtype,), (dtype,)),
            inputs=[(edge.src, edge.src_slot)],
        )  # fmt: skip


def leave_stand_in(
    graph: GraphBuilder, node: Node, outputs: list[tuple[Node, int]], after: Node | None, made: Origin
) -> Node:
    """Add a node of the same name and requested device: IdentityN over `outputs`, or a NoOp if there are none."""
    types = tuple(src.out_types[slot] for src, slot in outputs)
    return graph.add_node(
        node.name,
        "IdentityN" if outputs else "NoOp",
        device=node.device,
        attrs={"T": tuple(DataType(base_type(dtype)) for dtype in types)} if outputs else {},
        origin=made,
        types=(types, types),
        inputs=[*outputs, *control_inputs([] if after is None else [after])],
    )


def require_attr(node: Node, attr: str, kind: type[Attr]) -> Attr:
    """Return an attribute of a node; raise `TargetError` if it is not there or of another kind."""
    value = node.attrs.get(attr)
    if not isinstance(value, kind):
        raise TargetError(f"node {node.name!r} of op {node.op} needs the attribute {attr!r}")
    return value


def require_bool(graph: GraphBuilder, tensor: tuple[Node, int], argument: str, prefix: str, op: str) -> None:
    """Raise `Refused` where a tensor is no bool, as NodeDefBuilder::SingleInput does for a node that would read it.

    `prefix` is what the node's name would begin with, `op` what the message says of its op.
    """
    dtype = tensor[0].out_types[tensor[1]]
    if base_type(dtype) != DataType.DT_BOOL:
        name = graph.new_name(prefix)
        raise invalid_argument(
            f"Input '{argument}' passed {name_in_messages(dtype)} expected bool while building NodeDef '{name}' using "
            f"{op}"
        )


def _merge_call_device(requested: str, call_device: str, call_spec: DeviceName | None) -> str:
    """Fill what a body node leaves open from the device of the call (MultiDeviceFunctionBodyPlacer).

    >>> _merge_call_device("/device:CPU:0", "/job:a/device:GPU:1", DeviceName.parse("/job:a/device:GPU:1"))
    '/job:a/device:CPU:0'
    """
    if not requested:
        return call_device
    spec = None if call_spec is None else DeviceName.parse(requested)
    return requested if spec is None or call_spec is None else str(spec.filled_from(call_spec))


def _rename_attrs(node: Node, prefix: str, groups: Mapping[str, str]) -> Mapping[str, Any]:
    """Rename what names other nodes of the body: colocation groups, and the frame that an Enter opens."""
    attrs = node.attrs
    written = attrs.get(COLOCATION)
    if isinstance(written, tuple):
        attrs = {**attrs, COLOCATION: tuple(_rename_group(name, groups) for name in written)}
    if is_enter(node.op):
        attrs = {**attrs, "frame_name": prefix.encode() + require_attr(node, "frame_name", bytes)}
    return attrs


def _rename_group(name: bytes, groups: Mapping[str, str]) -> bytes:
    if not name.startswith(GROUP):
        return name
    renamed = groups.get(name[len(GROUP) :].decode(errors="replace"))
    return name if renamed is None else GROUP + renamed.encode()
