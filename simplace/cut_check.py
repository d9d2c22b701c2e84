"""Compare the sends and receives of a placed graph with those in the subgraphs that TensorFlow cut it into."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from simplace.graph import dtypes
from simplace.graph.build import CONTROL
from simplace.graph.node_def import GraphDef, NodeDef
from simplace.oracle.observation import Cut
from simplace.partition.constants import REPLICA
from simplace.partition.loops import CONTROL_LOOP
from simplace.partition.partition import PartitionedGraph, PartNode, partition
from simplace.partition.pruning import prune
from simplace.partition.rewrite import before_pruning
from simplace.placement.placement import Placement

_NUMBER = re.compile(rf"(?<={re.escape(REPLICA)})\d+")
_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")


@dataclass(frozen=True, slots=True, order=True)
class Transfer:
    """Describe a send with its receive, in terms that do not depend on generated names.

    `tensor` is "node:output", or "^node" for a control edge; `source` and `target` are full device names. `consumers`
    are the nodes behind the receive, `after` what it waits for besides its send; the nodes of TensorFlow's control
    loops are all called "_cloop" there.
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
    """Show one transfer that differs; None stands for one that TensorFlow or simplace does not have."""

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
    """Count the copies that both make alike, out of all that either makes, over all cuts of a graph."""

    same: int
    total: int
    differences: tuple[CopyDifference, ...] = ()

    @property
    def holds(self) -> bool:
        """Say whether there is no difference at all."""
        return not self.differences

    def __str__(self) -> str:
        return f"{self.same}/{self.total} copies"


def check_cuts(placement: Placement, cuts: Iterable[Cut]) -> CopyAgreement | None:
    """Cut a placement as each of TensorFlow's cuts was made, and compare; None where TensorFlow made none."""
    if placement.refusal is not None:
        return None
    same = total = 0
    differences: list[CopyDifference] = []
    cuts = tuple(cuts)
    for cut in cuts:
        ours, theirs = Counter(_own_transfers(placement, cut)), Counter(transfers_in(cut.subgraphs))
        found = list(_differences(ours - theirs, theirs - ours))
        both = (ours & theirs).total()
        same, total = same + both, total + both + len(found)
        differences += found
    return CopyAgreement(same, total, tuple(differences)) if cuts else None


def transfers_of(graph: PartitionedGraph) -> list[Transfer]:
    """List the transfers of our own cut."""
    found = []
    for send, receive in graph.receiver.items():
        copy = graph.copies[graph.nodes[send].copy]
        consumers = {_canonical(graph.nodes[edge.dst].name) for edge in graph.outs[receive]}
        after = {
            _our_name(graph, graph.nodes[edge.src])
            for edge in graph.ins[receive]
            if edge.dst_slot == CONTROL and graph.nodes[edge.src].role != "source"
        }
        found.append(
            Transfer(
                _canonical(copy.tensor), copy.source, copy.target, copy.dtype.removesuffix("_ref"),
                graph.nodes[send].op, graph.nodes[receive].op, tuple(sorted(consumers)), tuple(sorted(after)),
            )
        )  # fmt: skip
    return found


def transfers_in(subgraphs: Iterable[GraphDef]) -> list[Transfer]:
    """List the transfers in the subgraphs of one cut by TensorFlow."""
    return list(_Reader(subgraphs).transfers())


def _own_transfers(placement: Placement, cut: Cut) -> list[Transfer]:
    """List our transfers; a run that names a node which only TensorFlow has can have none."""
    names = () if cut.run is None else (*cut.run.feeds, *cut.run.fetches, *cut.run.targets)
    if any(_node_of(name) not in placement.graph.ids for name in names):
        return []
    return transfers_of(
        partition(placement if cut.run is None else prune(before_pruning(placement), cut.run).placement)
    )


def _our_name(graph: PartitionedGraph, node: PartNode) -> str:
    return _canonical(graph.copies[node.copy].tensor if node.copy >= 0 else node.name)


def _canonical(name: str) -> str:
    if name.startswith(CONTROL_LOOP):
        return CONTROL_LOOP
    return _NUMBER.sub("", name)


def _differences(ours: Counter[Transfer], theirs: Counter[Transfer]) -> Iterator[CopyDifference]:
    """Pair what differs by tensor and devices."""
    by_ends: dict[tuple[str, str, str], tuple[list[Transfer], list[Transfer]]] = {}
    for side, transfers in enumerate((ours, theirs)):
        for one in sorted(transfers.elements()):
            by_ends.setdefault((one.tensor, one.source, one.target), ([], []))[side].append(one)
    for mine, other in by_ends.values():
        yield from (CopyDifference(a, b) for a, b in zip_longest(mine, other))


class _Reader:
    """Read TensorFlow's sends and receives, which know each other by their `tensor_name`."""

    def __init__(self, subgraphs: Iterable[GraphDef]) -> None:
        self._nodes: dict[str, NodeDef] = {}
        self._readers: dict[str, list[NodeDef]] = {}
        self._sends: list[NodeDef] = []
        self._receives: dict[str, NodeDef] = {}
        for node in (node for graph in subgraphs for node in graph.nodes):
            self._nodes[node.name] = node
            if node.op in _SENDS:
                self._sends.append(node)
            elif node.op in _RECEIVES:
                self._receives[_text(node.attrs, "tensor_name")] = node
            for name in node.inputs:
                self._readers.setdefault(_node_of(name), []).append(node)

    def transfers(self) -> Iterator[Transfer]:
        """Yield them in the order of the sends."""
        for send in self._sends:
            receive = self._receives[_text(send.attrs, "tensor_name")]
            tensor = self._tensor(send)
            after = {self._name(name[1:]) for name in receive.inputs if name.startswith("^") and name[1:] != send.name}
            yield Transfer(
                tensor,
                _text(send.attrs, "send_device"),
                _text(send.attrs, "recv_device"),
                dtypes.name(dtypes.base(receive.attrs["tensor_type"])),
                send.op,
                receive.op,
                tuple(sorted({_canonical(node.name) for node in self._consumers(receive, tensor)})),
                tuple(sorted(after)),
            )

    def _tensor(self, send: NodeDef) -> str:
        """Name what is sent; a control edge is sent as a constant of its own (`AddDummyConst`)."""
        name = send.inputs[0]
        source = _text(send.attrs, "_src")
        is_control = _node_of(name) != source and self._nodes[_node_of(name)].inputs == (f"^{source}",)
        return f"^{_canonical(source)}" if is_control else _canonical(name if ":" in name else f"{name}:0")

    def _consumers(self, receive: NodeDef, tensor: str) -> list[NodeDef]:
        readers = self._readers.get(receive.name, [])
        if not tensor.startswith("^"):
            return readers
        (identity,) = readers  # a control edge goes through an Identity behind its receive (`AddRecv`)
        return self._readers.get(identity.name, [])

    def _name(self, name: str) -> str:
        """Name a node that a receive waits for; another receive by what it receives."""
        node = self._nodes[name]
        if node.op == "Identity" and node.inputs and self._nodes[_node_of(node.inputs[0])].op in _RECEIVES:
            node = self._nodes[_node_of(node.inputs[0])]
        if node.op not in _RECEIVES:
            return _canonical(name)
        return next(self._tensor(s) for s in self._sends if s.attrs["tensor_name"] == node.attrs["tensor_name"])


def _node_of(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def _text(attrs: Mapping[str, object], key: str) -> str:
    value = attrs[key]
    assert isinstance(value, bytes), f"TensorFlow writes {key} as a string"
    return value.decode()
