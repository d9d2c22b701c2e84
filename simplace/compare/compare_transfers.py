"""Compare the sends and receives of a placed graph with those in TensorFlow's partition graphs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from simplace.graph import dtypes
from simplace.graph.builder import CONTROL
from simplace.graph.node_def import GraphDef, NodeDef
from simplace.graph.op_kinds import RECVS, SENDS
from simplace.partition.control_loops import CONTROL_LOOP
from simplace.partition.graph_partition import PartitionedGraph, PartNode, partition_graph
from simplace.partition.replicate_constants_pass import REPLICA
from simplace.partition.rewrite_graph import before_pruning
from simplace.partition.session_subgraph import rewrite_for_run
from simplace.placement.placement import Placement
from simplace.program.observation import Partitioning

_NUMBER = re.compile(rf"(?<={re.escape(REPLICA)})\d+")
_Ends = tuple[str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class Transfer:
    """Record of a send with its receive, in terms that do not depend on generated names.

    `tensor` is "node:output", or "^node" for a control edge, also where a task sends on what it received from another
    one; `source` and `target` are full device names. `consumers` are the nodes of the graph behind the receive, `after`
    what it waits for besides its send; the nodes of TensorFlow's control loops are all called "_cloop" there.
    """

    tensor: str
    source: str
    target: str
    dtype: str
    sent_by: str
    received_by: str
    consumers: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        after = f" after {', '.join(self.after)}" if self.after else ""
        return f"{self.sent_by} and {self.received_by} of {self.dtype} for {', '.join(self.consumers)}{after}"


@dataclass(frozen=True, slots=True)
class CopyDifference:
    """Record of one transfer that differs; None stands for one that TensorFlow or simplace does not have."""

    ours: Transfer | None
    theirs: Transfer | None

    @property
    def transfer(self) -> Transfer:
        """Return either of the two: tensor and devices are the same in both."""
        known = self.ours or self.theirs
        assert known is not None, "one of the two has a transfer"
        return known


@dataclass(frozen=True, slots=True)
class CopyAgreement:
    """Record of how many copies both make alike, out of all that either makes, over all partitionings of a graph."""

    same: int
    total: int
    differences: tuple[CopyDifference, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether there is no difference at all."""
        return not self.differences

    def __str__(self) -> str:
        return f"{self.same}/{self.total} copies"


def compare_partitions(placement: Placement, partitionings: Iterable[Partitioning]) -> CopyAgreement | None:
    """Partition a placement as each of TensorFlow's partitionings was made, and compare; None where there is none."""
    if placement.refusal is not None:
        return None
    same = total = 0
    differences: list[CopyDifference] = []
    partitionings = tuple(partitionings)
    for partitioning in partitionings:
        ours, theirs = Counter(_own_transfers(placement, partitioning)), Counter(transfers_in(partitioning.subgraphs))
        found = list(_pair_differences(ours - theirs, theirs - ours))
        both = (ours & theirs).total()
        same, total = same + both, total + both + len(found)
        differences += found
    return CopyAgreement(same, total, tuple(differences)) if partitionings else None


def transfers_of(graph: PartitionedGraph) -> list[Transfer]:
    """Return the transfers of our own partitioning."""
    found = []
    for send, receive in graph.receiver.items():
        copy = graph.copies[graph.nodes[send].copy]
        ends = (graph.nodes[edge.dst] for edge in graph.outs[receive])
        consumers = {_canonicalize_tensor(node.name) for node in ends if node.origin >= 0}
        after = {
            _our_name(graph, graph.nodes[edge.src])
            for edge in graph.ins[receive]
            if edge.dst_slot == CONTROL and graph.nodes[edge.src].role != "source"
        }
        found.append(
            Transfer(
                _canonicalize_tensor(copy.tensor), copy.source, copy.target, copy.dtype.removesuffix("_ref"),
                graph.nodes[send].op, graph.nodes[receive].op, tuple(sorted(consumers)), tuple(sorted(after)),
            )
        )  # fmt: skip
    return found


def transfers_in(subgraphs: Iterable[GraphDef]) -> list[Transfer]:
    """Return the transfers in the subgraphs of one partitioning by TensorFlow."""
    return list(_SubgraphReader(subgraphs).transfers())


def _own_transfers(placement: Placement, partitioning: Partitioning) -> list[Transfer]:
    """Return our transfers; none for a run that names a node which only TensorFlow has."""
    names = (
        ()
        if partitioning.run is None
        else (*partitioning.run.feeds, *partitioning.run.fetches, *partitioning.run.targets)
    )
    if any(_node_of(name) not in placement.graph.ids for name in names):
        return []
    placed = placement.placed
    return transfers_of(
        partition_graph(
            placed if partitioning.run is None else rewrite_for_run(before_pruning(placed), partitioning.run).placed
        )
    )


def _our_name(graph: PartitionedGraph, node: PartNode) -> str:
    return _canonicalize_tensor(graph.copies[node.copy].tensor if node.copy >= 0 else node.name)


def _canonicalize_tensor(name: str) -> str:
    if name.startswith(CONTROL_LOOP):
        return CONTROL_LOOP
    return _NUMBER.sub("", name)


def _pair_differences(ours: Counter[Transfer], theirs: Counter[Transfer]) -> Iterator[CopyDifference]:
    """Pair what differs by tensor and devices."""
    by_ends: dict[tuple[str, str, str], tuple[list[Transfer], list[Transfer]]] = {}
    for side, transfers in enumerate((ours, theirs)):
        for one in sorted(transfers.elements()):
            by_ends.setdefault((one.tensor, one.source, one.target), ([], []))[side].append(one)
    for mine, other in by_ends.values():
        yield from (CopyDifference(a, b) for a, b in zip_longest(mine, other))


class _InPart(NamedTuple):
    """Pair a node with the number of its subgraph: two of different tasks may have one name."""

    part: int
    node: NodeDef


class _SubgraphReader:
    """Reader of TensorFlow's sends and receives, which are paired by their devices and `tensor_name`."""

    def __init__(self, subgraphs: Iterable[GraphDef]) -> None:
        self._nodes: dict[tuple[int, str], NodeDef] = {}
        self._readers: dict[tuple[int, str], list[_InPart]] = {}
        self._sends: dict[_Ends, _InPart] = {}
        self._receives: dict[_Ends, _InPart] = {}
        for part, node in ((part, node) for part, graph in enumerate(subgraphs) for node in graph.nodes):
            self._nodes[part, node.name] = node
            if _is_cut(node, SENDS):
                self._sends[_read_ends(node)] = _InPart(part, node)
            elif _is_cut(node, RECVS):
                self._receives[_read_ends(node)] = _InPart(part, node)
            for name in node.inputs:
                self._readers.setdefault((part, _node_of(name)), []).append(_InPart(part, node))
        self._orders = {(send.part, send.node.inputs[0]) for send in self._sends.values() if self._is_order(send)}

    def transfers(self) -> Iterator[Transfer]:
        """Yield them in the order of the sends."""
        for ends, send in self._sends.items():
            receive = self._receives[ends]
            waits = (name[1:] for name in receive.node.inputs if name.startswith("^"))
            after = {self._name(receive.part, name) for name in waits if name != send.node.name}
            yield Transfer(
                self._tensor(send),
                _read_string(send.node.attrs, "send_device"),
                _read_string(send.node.attrs, "recv_device"),
                dtypes.format_dtype(dtypes.base_type(receive.node.attrs["tensor_type"])),
                send.node.op,
                receive.node.op,
                tuple(sorted({_canonicalize_tensor(node.name) for node in self._consumers(receive)})),
                tuple(sorted(after)),
            )

    def _is_order(self, send: _InPart) -> bool:
        """Return whether a control edge is sent, as a constant of its own (`AddDummyConst`)."""
        source, given = _read_string(send.node.attrs, "_src"), send.node.inputs[0]
        return _node_of(given) != source and self._nodes[send.part, given].inputs == (f"^{source}",)

    def _tensor(self, send: _InPart) -> str:
        """Name what is sent; what was received before by what that was."""
        if self._is_order(send):
            return f"^{_node_of(self._name(send.part, _read_string(send.node.attrs, '_src')))}"
        name = send.node.inputs[0]
        received = self._received(send.part, _node_of(name))
        return received or _canonicalize_tensor(name if ":" in name else f"{name}:0")

    def _consumers(self, receive: _InPart) -> Iterator[NodeDef]:
        """Yield the nodes of the graph behind a receive; those of a control edge are behind an Identity (`AddRecv`)."""
        for reader in self._readers.get((receive.part, receive.node.name), ()):
            if reader.node.op == "Identity" and self._is_order(self._sends[_read_ends(receive.node)]):
                behind = self._readers.get((reader.part, reader.node.name), ())
                yield from (each.node for each in behind if self._is_of_graph(each))
            elif self._is_of_graph(reader):
                yield reader.node

    def _is_of_graph(self, reader: _InPart) -> bool:
        return (reader.part, reader.node.name) not in self._orders and not _is_cut(reader.node, SENDS | RECVS)

    def _name(self, part: int, name: str) -> str:
        """Name a node that a receive waits for; another receive by what it receives."""
        return self._received(part, name) or _canonicalize_tensor(name)

    def _received(self, part: int, name: str) -> str:
        """Name the tensor that a node receives, or forwards as the Identity of a control edge; "" for other nodes."""
        node = self._nodes[part, name]
        is_behind = node.op == "Identity" and bool(node.inputs)
        received = self._nodes[part, _node_of(node.inputs[0])] if is_behind else node
        if not _is_cut(received, RECVS):
            return ""
        send = self._sends[_read_ends(received)]
        return "" if is_behind and not self._is_order(send) else self._tensor(send)


def _is_cut(node: NodeDef, ops: frozenset[str]) -> bool:
    """Return whether the partitioning made a send or receive: those of a master's feeds and fetches name no edge."""
    return node.op in ops and "_src" in node.attrs


def _read_ends(node: NodeDef) -> _Ends:
    return (
        _read_string(node.attrs, "tensor_name"),
        _read_string(node.attrs, "send_device"),
        _read_string(node.attrs, "recv_device"),
    )


def _node_of(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def _read_string(attrs: Mapping[str, object], key: str) -> str:
    value = attrs[key]
    assert isinstance(value, bytes), f"TensorFlow writes {key} as a string"
    return value.decode()
