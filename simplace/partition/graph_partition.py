"""Partition a placed graph into one subgraph per device, connected by sends and receives.

Mirrors tensorflow/core/graph/graph_partition.cc, and of graph_constructor.cc the order in which the edges of a
subgraph are made: the executor serves successors in that order. Beyond eight successors TensorFlow's own order
depends on addresses; here it stays the order of making. Receives inside loops belong to the loop of their send. A
session's graph on a cluster is partitioned by task first, then each part by device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL, SOURCE
from simplace.graph.dtypes import DataType, base_type, is_ref
from simplace.graph.op_kinds import is_enter, is_exit, is_next_iteration
from simplace.partition.collective_members import Collective, find_collectives
from simplace.partition.rewrite_graph import rewrite_placed_graph
from simplace.partition.rewritten_graph import MADE_BY, Rewritten
from simplace.partition.shapes import TensorSizes
from simplace.partition.traffic import Traffic, count_traffic
from simplace.partition.transfers import Copy, CopyColumns, Location, find_transfers
from simplace.partition.worker_graphs import Written, build_worker_graph, by_device, by_task, has_master
from simplace.program.placed_graph import PlacedGraph

Role = Literal["op", "source", "send", "recv"]
LeftOut = Literal["unused", "merged", "folded"]


class PartNode(NamedTuple):
    """Record of one node of a subgraph.

    `device` is a full name, `origin` the node of the placed graph (-1: made by the partition), `copy` the number of
    the copy that a send or receive serves (-1: none).
    """

    name: str
    op: str
    device: str
    role: Role
    origin: int = -1
    copy: int = -1


class PartEdge(NamedTuple):
    """Record of an edge between two nodes; slots are -1 for a control edge, 0 from a send to its receive."""

    src: int
    src_slot: int
    dst: int
    dst_slot: int


@dataclass(frozen=True)
class PartitionedGraph:
    """Record of the subgraphs of all devices in one numbering.

    `rewritten` is the graph that was partitioned: the `origin` of a node, and the ends of a copy, are ids of that.
    `outs` lists the edges out of each node as TensorFlow's executor walks them: data edges, then control edges.
    A send has no edge; `receiver` maps it to its receive. `left_out` says why ops, by `origin`, were taken out before
    the step: nothing needs them, an equal one stands for them, or they depend on constants alone. `targets` name the
    nodes that a session's run asks for, for what they do and not for a value.
    """

    rewritten: Rewritten
    nodes: tuple[PartNode, ...]
    copies: tuple[Copy, ...]
    outs: tuple[tuple[PartEdge, ...], ...]
    receiver: dict[int, int]
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        lines = []
        for device in self.devices:
            lines.append(f"{device}:")
            inside = [i for i, node in enumerate(self.nodes) if node.device == device]
            lines += [f"  {self._format_node(i)}" for i in inside]
        return "\n".join(lines)

    @property
    def placed(self) -> PlacedGraph:
        """Return the placed graph as it was partitioned."""
        return self.rewritten.placed

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """List the devices that have a subgraph, in the device set's order."""
        used = {node.device for node in self.nodes}
        return tuple(device.name for device in self.placed.devices if device.name in used)

    @cached_property
    def ins(self) -> tuple[tuple[PartEdge, ...], ...]:
        """List the edges into each node: data by slot, then control."""
        lists: list[list[PartEdge]] = [[] for _ in self.nodes]
        for edges in self.outs:
            for edge in edges:
                lists[edge.dst].append(edge)
        return tuple(tuple(sorted(edges, key=_inputs_first)) for edges in lists)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """List the `_SOURCE` of each subgraph, by device."""
        by_device = {node.device: i for i, node in enumerate(self.nodes) if node.role == "source"}
        return tuple(by_device[device] for device in self.devices)

    @cached_property
    def node_of_origin(self) -> Mapping[int, int]:
        """Map the ids of the graph that was partitioned to those of its nodes here."""
        return {node.origin: i for i, node in enumerate(self.nodes) if node.role == "op"}

    @cached_property
    def memory_copies(self) -> Mapping[int, int]:
        """Map the receives of copies between the memories of one device to their sends.

        TensorFlow adds these when it has optimized the subgraph (EnsureMemoryTypes of common_runtime/memory_types.cc).
        """
        copies = ((send, receive, self.copies[self.nodes[send].copy]) for send, receive in self.receiver.items())
        return {receive: send for send, receive, copy in copies if copy.source == copy.target}

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """List the collectives; members are ids of the graph that was partitioned."""
        return find_collectives(self.placed, CopyColumns.of(self.copies))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """List the nodes of this graph that take part in each collective: none where it is made of copies."""
        number = self.node_of_origin
        return tuple(
            () if one.copies else tuple(number[node] for node in one.members if node in number)
            for one in self.collectives
        )

    @cached_property
    def collective_of(self) -> Mapping[int, int]:
        """Map the nodes that take part in a collective to its number."""
        return {node: number for number, members in enumerate(self.members) for node in members}

    @cached_property
    def traffic(self) -> Traffic:
        """Return how much a step sends, copies that were left out with the ops for which they are made as well."""
        return count_traffic(CopyColumns.of(self.copies), self.collectives)

    def node_of_program(self, node: int) -> int:
        """Return the id that a node has in the graph that was placed, -1 for what was made after it was placed."""
        return self._program_nodes[node]

    @cached_property
    def _program_nodes(self) -> list[int]:
        origins, back = self.placed.graph.origins, self.rewritten.origin
        own = (node.origin for node in self.nodes)
        return [back[one] if one >= 0 and origins[one].made_by != MADE_BY else -1 for one in own]

    def attrs_of(self, node: int) -> Mapping[str, object]:
        """Return the attributes of a node's op in the graph that was partitioned, none for what the partition made."""
        origin = self.nodes[node].origin
        return self.placed.graph.attrs[origin] if origin >= 0 else {}

    def source_line(self, node: int) -> str:
        """Return the user's "file:line" of a node; that of its producer for a send or receive."""
        part = self.nodes[node]
        origin = self.copies[part.copy].producer if part.copy >= 0 else part.origin
        return self.placed.notes(origin).at if origin >= 0 else ""

    def _format_node(self, i: int) -> str:
        node = self.nodes[i]
        inputs = []
        for edge in self.ins[i]:
            name = self.nodes[edge.src].name
            port = f":{edge.src_slot}" if edge.src_slot > 0 else ""
            inputs.append(f"^{name}" if edge.dst_slot == CONTROL else name + port)
        return f"{node.name} = {node.op}({', '.join(inputs)})"


def partition_graph(placed: PlacedGraph, rewritten: Rewritten | None = None) -> PartitionedGraph:
    """Partition a placed graph; every node must have a device.

    `rewritten` is what `rewrite_placed_graph` makes of it, where one has that already.
    """
    return partition_rewritten(rewritten or rewrite_placed_graph(placed))


def partition_rewritten(rewritten: Rewritten) -> PartitionedGraph:
    """Partition a rewritten graph; a cluster's is partitioned by task first."""
    if not has_master(rewritten.placed):
        return _Partitioner(rewritten).finished(rewritten)
    between = _Partitioner(rewritten, by_task)
    return _for_workers(between).finished(rewritten)


@dataclass(frozen=True, slots=True)
class _Before:
    """Record of the partition by task: its nodes and copies; `sizes` are of the graph that was partitioned."""

    parts: Sequence[PartNode]
    copies: tuple[Copy, ...]
    sizes: TensorSizes

    def described(self, copy: Copy) -> Copy:
        """Return a copy in the ids of the partitioned graph; what it sends may be what an earlier copy received."""
        producer = self.parts[copy.producer - 2]
        consumers = tuple(origin for node in copy.consumers if (origin := self.parts[node - 2].origin) >= 0)
        known = replace(copy, producer=producer.origin, consumers=consumers)
        if producer.copy >= 0:
            first = self.copies[producer.copy]
            known = replace(known, producer=first.producer, slot=first.slot, tensor=first.tensor)
        if copy.is_control:
            name = known.tensor.removeprefix("^").partition(":")[0]
            return replace(known, slot=CONTROL, tensor=f"^{name}")
        if known.is_control:
            return known
        shape, size = self.sizes.shape(known.producer, known.slot), self.sizes.size(known.producer, known.slot)
        return replace(known, shape=shape, size=size)


class _Partitioner:
    def __init__(self, rewritten: Rewritten, location: Location = by_device, before: _Before | None = None) -> None:
        self.rewritten = rewritten
        self.placed = rewritten.placed
        self.loop_merges = rewritten.loop_merges
        self.graph = self.placed.graph
        self.memory = rewritten.memory
        is_shared = location is by_device
        self.transfers = rewritten.transfers if is_shared else find_transfers(self.placed, self.memory, location)
        self.before = before
        self.copies = self.transfers.copies
        if before is not None:
            self.copies = (*before.copies, *map(before.described, self.copies))
        self.nodes: list[PartNode] = []
        self.edges: list[list[PartEdge]] = []  # into each node, as its NodeDef would list them
        self.number: dict[int, int] = {}
        self.written: list[int] = []  # in the order of TensorFlow's file: nodes by id, sends and receives as needed
        self.receives: dict[int, int] = {}
        self.receiver: dict[int, int] = {}
        for node in self.graph.op_ids:
            self.add_with_inputs(node)

    def add_with_inputs(self, node: int) -> None:
        graph = self.graph
        here = self.number_of(node)
        self.written.append(here)
        controls = [edge for edge in graph.in_edges[node] if graph.is_control(edge)]
        merges = [graph.edge_src[edge] for edge in controls if graph.edge_src[edge] in self.loop_merges]
        plain: list[int] = []  # what a receive of a reference waits for
        references: list[int] = []
        received = 0
        for edge in (*graph.data_in_edges(node), *controls):
            source, slot = graph.edge_src[edge], graph.edge_src_slot[edge]
            if source < 2 or (slot == CONTROL and source in self.loop_merges):
                continue
            copy = self.transfers.of_edge.get(edge, -1)
            is_new = copy >= 0 and copy not in self.receives
            start = self.number_of(source) if copy < 0 else self.receive_of(copy, edge)
            start_slot = slot if copy < 0 or slot == CONTROL else 0
            self.edges[here].append(PartEdge(start, start_slot, here, graph.edge_dst_slot[edge]))
            is_reference = slot != CONTROL and is_ref(graph.out_types[source][slot])
            if is_reference and copy >= 0:
                references.append(start)
            elif not is_reference:
                plain.append(start)
            made = self.transfers.copies[copy] if is_new else None
            if merges and made is not None and made.source != made.target:
                self.add_control(self.number_of(merges[0]), start)
                received += 1
        for receive in references:
            for before in plain:
                self.add_control(before, receive)
        if received < len(merges):
            self.add_control(self.number_of(merges[0]), here)

    def add_control(self, start: int, end: int) -> None:
        self.edges[end].append(PartEdge(start, CONTROL, end, CONTROL))

    def number_of(self, node: int) -> int:
        """Number a node when it is first named, which may be before it is written."""
        if node not in self.number:
            self.number[node] = self.named(self.part(node))
        return self.number[node]

    def part(self, node: int) -> PartNode:
        if self.before is not None:
            return self.before.parts[node - 2]
        return PartNode(self.graph.names[node], self.graph.ops[node], self.placed.device(node), "op", node)

    def receive_of(self, copy: int, edge: int) -> int:
        """Return the receive of a copy; made with its send at the first edge that needs it."""
        if copy in self.receives:
            return self.receives[copy]
        made = self.transfers.copies[copy]
        number = copy - len(self.transfers.copies) + len(self.copies)
        tensor = self.copies[number].tensor
        producer, slot = self.number_of(made.producer), made.slot
        if made.is_control:
            dummy = self.append(PartNode(f"{self.graph.names[made.producer]}/_order", "Const", made.source, "op"))
            self.add_control(producer, dummy)
            producer, slot = dummy, 0
        from_host, to_host = self.ends_on_host(made, edge)
        send_op, receive_op = "_HostSend" if from_host else "_Send", "_HostRecv" if to_host else "_Recv"
        send = self.append(PartNode(f"{tensor}/_send_{number}", send_op, made.source, "send", copy=number))
        self.edges[send].append(PartEdge(producer, slot, send, 0))
        receive = self.append(PartNode(f"{tensor}/_recv_{number}", receive_op, made.target, "recv", copy=number))
        self.receiver[send] = self.receives[copy] = receive
        return receive

    def dtype(self, part: PartNode) -> int:
        """Return the type of what a send, a receive or the constant in front of one handles."""
        copy = self.transfers.copies[part.copy] if part.copy >= 0 else None
        if copy is None or copy.is_control:
            return DataType.DT_FLOAT
        return base_type(self.graph.out_types[copy.producer][copy.slot])

    def ends_on_host(self, copy: Copy, edge: int) -> tuple[bool, bool]:
        """Return which ends the kernels keep in host memory; on a CPU only what can be nowhere else."""
        if copy.is_control:
            return False, False
        to_host = self.memory.of(self.graph.edge_dst[edge])[0][self.graph.edge_dst_slot[edge]]
        return self.memory.of(copy.producer)[1][copy.slot], to_host

    def append(self, node: PartNode) -> int:
        self.written.append(self.named(node))
        return self.written[-1]

    def named(self, node: PartNode) -> int:
        self.nodes.append(node)
        self.edges.append([])
        return len(self.nodes) - 1

    def renumber(self) -> None:
        """Number the nodes as they were written."""
        place = [0] * len(self.nodes)
        for i, node in enumerate(self.written):
            place[node] = i
        self.nodes = [self.nodes[node] for node in self.written]
        self.edges = [
            [PartEdge(place[edge.src], edge.src_slot, place[edge.dst], edge.dst_slot) for edge in self.edges[node]]
            for node in self.written
        ]
        self.receiver = {place[send]: place[receive] for send, receive in self.receiver.items()}

    def finished(self, rewritten: Rewritten) -> PartitionedGraph:
        """Return the subgraphs; `rewritten` is what they are of."""
        self.renumber()
        devices = sorted({node.device for node in self.nodes})
        source_of = {device: self.append(PartNode(SOURCE, "NoOp", device, "source")) for device in devices}
        outs: list[list[PartEdge]] = [[] for _ in self.nodes]
        order = _construction_order(self.nodes, self.edges, self.receiver)
        for i in order:
            for edge in self.edges[i]:
                outs[edge.src].append(edge)
        in_loops = _in_loops(self.nodes, outs, self.receiver)
        for i, node in enumerate(self.nodes):
            if not self.edges[i] and node.role != "source" and i not in in_loops:
                outs[source_of[node.device]].append(PartEdge(source_of[node.device], CONTROL, i, CONTROL))
        ordered = tuple(tuple(sorted(edges, key=lambda edge: edge.dst_slot == CONTROL)) for edges in outs)
        return PartitionedGraph(rewritten, tuple(self.nodes), self.copies, ordered, self.receiver)


def _for_workers(between: _Partitioner) -> _Partitioner:
    """Partition the parts of the tasks by device."""
    between.renumber()
    within = {
        send: receive
        for send, receive in between.receiver.items()
        if between.nodes[send].device == between.nodes[receive].device
    }
    order = _construction_order(between.nodes, between.edges, within)
    place = {node: i for i, node in enumerate(order)}
    parts = [between.nodes[node] for node in order]
    written = [Written(part.name, part.op, part.device, part.origin, between.dtype(part)) for part in parts]
    edges = [[(place[e.src], e.src_slot, i, e.dst_slot) for e in between.edges[node]] for i, node in enumerate(order)]
    before = _Before(parts, between.copies, TensorSizes(between.placed))
    work = _Partitioner(build_worker_graph(between.rewritten, written, edges), before=before)
    for send, receive in between.receiver.items():
        work.receiver[work.number[place[send] + 2]] = work.number[place[receive] + 2]
    return work


def _construction_order(
    nodes: Sequence[PartNode], edges: Sequence[Sequence[PartEdge]], receiver: dict[int, int]
) -> list[int]:
    """Order nodes as a GraphConstructor makes them: of those whose inputs exist, the one written first.

    The edge from a NextIteration counts as made already. Sends hold their receives back here, which changes
    nothing in the order within one device.
    """
    waiting = [sum(not is_next_iteration(nodes[edge.src].op) for edge in into) for into in edges]
    following: list[list[int]] = [[] for _ in nodes]
    for i, into in enumerate(edges):
        for edge in into:
            if not is_next_iteration(nodes[edge.src].op):
                following[edge.src].append(i)
    for send, receive in receiver.items():
        following[send].append(receive)
        waiting[receive] += 1
    order = order_by_inputs(waiting, following.__getitem__)
    assert len(order) == len(nodes), "a placed graph has no cycle outside its loops"
    return order


def _in_loops(nodes: Sequence[PartNode], outs: Sequence[Sequence[PartEdge]], receiver: dict[int, int]) -> set[int]:
    """Return the nodes that run once an iteration: those behind an Enter, up to the Exits of its loop.

    Unlike `build_control_flow_info`, whose first input decides, this counts a node with any input from a loop: else a
    loop that reads a tensor past its Enters, which TensorFlow refuses when it runs the graph, would wait for ever.
    """
    depth: dict[int, int] = {}
    work = [i for i, node in enumerate(nodes) if is_enter(node.op)]
    depth.update(dict.fromkeys(work, 1))
    while work:
        i = work.pop()
        below = depth[i] - is_exit(nodes[i].op)
        after = [edge.dst for edge in outs[i]] + ([receiver[i]] if i in receiver else [])
        for node in after if below > 0 else ():
            wanted = below + is_enter(nodes[node].op)
            if wanted > depth.get(node, 0):
                depth[node] = min(wanted, len(nodes))
                work.append(node)
    return {i for i, level in depth.items() if level - is_enter(nodes[i].op) > 0}


def _inputs_first(edge: PartEdge) -> tuple[bool, int]:
    return edge.dst_slot == CONTROL, edge.dst_slot
