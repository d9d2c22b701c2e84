"""Colocation groups: which nodes must share a device, the constraints of each group, the edges that formed it.

Mirrors ColocationGraph and Member (tensorflow/core/common_runtime/colocation_graph.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from simplace.devices.device_name import DeviceConflict, DeviceName
from simplace.devices.device_set import COMPOSITE, Device, DeviceSet, type_order
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import REF_OFFSET, DataType
from simplace.graph.graph import Graph
from simplace.kernels.dataset_ops import is_dataset_op
from simplace.kernels.kernel_lookup import UnknownConstraintError
from simplace.placement import error_messages
from simplace.placement.candidates import CandidateFinder, Candidates
from simplace.placement.exemptions import EXEMPT_FROM_INPUT_COLOCATION
from simplace.placement.kernel_support import KernelSupport, Types
from simplace.program.status import Refused, internal_error, invalid_argument

_NOWHERE = DeviceName()
_TYING = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})
_XLA = frozenset({"XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT", "XLA_CPU", "XLA_GPU", "TPU"})


class ColocationEdgeKind(Enum):
    """The kinds of colocation edges between two nodes."""

    RESOURCE = "resource edge"
    REFERENCE = "reference edge"
    DATASET = "dataset edge"
    CLASS = "colocation attribute"
    CALL = "resource passed through a call"


@dataclass(frozen=True, slots=True)
class ColocationEdge:
    """Record of a colocation edge; `group` is the name after `loc:@` for a colocation attribute."""

    kind: ColocationEdgeKind
    first: int
    second: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Record what TensorFlow only mentions in its log: a request or a colocation that it dropped.

    `dropped` is the ignored device of `node` for an edge from `other`, or "" for an ignored colocation with group
    `group`, for the reason `why`.
    """

    node: int
    other: int = -1
    dropped: str = ""
    kept: str = ""
    group: str = ""
    why: str = ""


class ColocationGroups:
    """Colocate nodes and keep the constraints of each group, in a union-find over node ids."""

    def __init__(
        self, graph: Graph, devices: DeviceSet, support: KernelSupport, finder: CandidateFinder, soft: bool
    ) -> None:
        count = len(graph)
        self.graph = graph
        self.devices = devices
        self.support = support
        self.soft = soft
        self.chosen: list[str] = list(graph.assigned)  # full device names, filled in as the placer decides
        self.colocation_edges: list[ColocationEdge] = []
        self.failed: ColocationEdge | None = None  # the last colocation edge that could not be added
        self.notices: list[Notice] = []
        self.own_types: list[Types] = [()] * count
        self.host_only: set[int] = set()
        self._finder = finder
        self._parent = list(range(count))
        self._rank = [0] * count
        self._requested = [_NOWHERE] * count
        self._assigned = [_NOWHERE] * count
        self._resource = [_NOWHERE] * count
        self._types: list[Types] = [()] * count
        self._settled: list[DeviceName] = [_NOWHERE] * count
        # By the ids of what is limited, which the last entry keeps alive.
        self._limits: dict[tuple[int, ...], tuple[DeviceName, DeviceName, DeviceName, tuple[DeviceName, ...]]] = {}

    def for_body(self, body: Graph) -> ColocationGroups:
        """Make the groups of a called function's body, under the same devices and settings."""
        return ColocationGroups(body, self.devices, self.support, self._finder, self.soft)

    # -- what the placer asks -----------------------------------------------------------------------------------

    def root(self, node: int) -> int:
        """Return the node that stands for the whole group."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def every_device(self) -> list[Device]:
        """List all devices in the order of TensorFlow's own set."""
        return self._finder.devices()

    def candidates(self, node: int) -> Candidates:
        """Return the devices that the node's group may have; raise `Refused` where there is none."""
        root = node if self._parent[node] == node else self.root(node)
        found = self._finder.find(self._requested[root], self._assigned[root], self._resource[root], self._types[root])
        if not found.devices:
            raise self._no_candidates(node, root)
        return found

    def types(self, node: int) -> Types:
        """Return the device types that every member of the node's group can run on."""
        return self._types[self.root(node)]

    def requested(self, node: int) -> DeviceName:
        """Return what the node's group requests, merged over its members."""
        return self._requested[self.root(node)]

    def resource(self, node: int) -> DeviceName:
        """Return the device of the variable or other resource in the node's group."""
        return self._resource[self.root(node)]

    def assigned(self, node: int) -> DeviceName:
        """Return the device to which the node's group is already fixed."""
        return self._assigned[self.root(node)]

    def members(self) -> dict[int, list[int]]:
        """List the groups by root, members by id."""
        groups: dict[int, list[int]] = {}
        for node in self.graph.op_ids:
            groups.setdefault(self.root(node), []).append(node)
        return groups

    def limit_to_assigned(self, node: int, device: DeviceName) -> None:
        """Fix the node's group to the device that the node just got (ColocationGraph::LimitToAssignedDevice)."""
        root = node if self._parent[node] == node else self.root(node)
        if self._settled[root] is device or self._settled[root] == device:
            return
        self._settled[root] = device
        if self._is_free(root):
            self._assigned[root] = self._resource[root] = self._requested[root] = device
            return
        before = (self._assigned[root], self._resource[root], self._requested[root], device)
        ids = (id(before[0]), id(before[1]), id(before[2]), id(device))
        known = self._limits.get(ids)  # most groups share the very objects, which takes no hash of names to see
        if known is None:
            known = self._limits[ids] = (*self._limited(*before, node), before)
        self._assigned[root], self._resource[root], self._requested[root], _ = known

    def _limited(
        self, assigned: DeviceName, resource: DeviceName, requested: DeviceName, device: DeviceName, node: int
    ) -> tuple[DeviceName, DeviceName, DeviceName]:
        limited = []
        for what, known in (("assigned", assigned), ("resource", resource), ("requested", requested)):
            try:
                limited.append(known.merged(device, "strict" if what == "assigned" else "override"))
            except DeviceConflict as conflict:
                raise internal_error(
                    error_messages.constraining_failed(what, known, device, str(conflict)), node
                ) from None
        return limited[0], limited[1], limited[2]

    # -- steps of Initialize ------------------------------------------------------------------------------------

    def add_members(self) -> None:
        """Read the types and devices of every node (InitializeMember)."""
        graph, types_of = self.graph, self.support.types
        rows = zip(graph.ops, graph.attrs, graph.requested, graph.assigned, strict=True)
        for node, (op, attrs, requested, assigned) in enumerate(rows):
            if node < 2:
                continue
            try:
                types = types_of(op, attrs, requested)
            except UnknownConstraintError as error:
                raise invalid_argument(str(error), node, (node,)) from None
            self.own_types[node] = self._types[node] = types
            if assigned:
                self._add_assigned(node, types)
            elif not types:
                raise invalid_argument(error_messages.no_kernel_registered(graph, node, self.support), node, (node,))
            elif requested:
                self._add_requested(node)

    def join_resource_edges(self, inspected: frozenset[int]) -> None:
        """Colocate the ends of resource, reference and dataset edges, by edge number.

        Edges at nodes in `inspected` are left to the inspection of the called function.
        """
        graph = self.graph
        in_types = graph.in_types
        if not any(dtype in _TYING or dtype > REF_OFFSET for types in set(in_types) for dtype in types):
            return
        rows = zip(graph.edge_src, graph.edge_dst, graph.edge_dst_slot, strict=True)
        for src, dst, slot in rows:
            if slot == CONTROL:
                continue
            dtype = in_types[dst][slot]
            if dtype not in _TYING and dtype <= REF_OFFSET:
                continue
            if src in inspected or dst in inspected:
                continue
            if dtype == DataType.DT_VARIANT:
                if self._is_dataset(src) and self._is_dataset(dst):
                    self.join_resource(src, dst, ColocationEdgeKind.DATASET)
            elif graph.ops[dst] not in EXEMPT_FROM_INPUT_COLOCATION:
                kind = ColocationEdgeKind.RESOURCE if dtype == DataType.DT_RESOURCE else ColocationEdgeKind.REFERENCE
                self.join_resource(src, dst, kind)

    def join_classes(self) -> None:
        """Colocate the nodes that name each other in `_class`, by id (ColocateAllNodes)."""
        graph = self.graph
        shared = {id(attrs): attrs for attrs in graph.attrs if "_class" in attrs}  # the graph keeps its attributes
        groups_of = {key: class_groups(attrs) for key, attrs in shared.items()}
        named = {node: groups_of[key] for node, key in enumerate(map(id, graph.attrs)) if key in groups_of}
        groups = {group for own in named.values() for group in own}
        if not groups:
            return
        anchors: dict[str, int] = {}
        for node in [i for i, name in enumerate(graph.names) if i in named or (name in groups and i > 1)]:
            for group in (*named.get(node, ()), graph.names[node]):
                anchor = anchors.setdefault(group, node)
                if anchor != node:
                    self._join_class(node, anchor, group)

    def join_resource(self, src: int, dst: int, kind: ColocationEdgeKind) -> None:
        """Colocate two nodes by a resource: its device overrides the consumer's request (ColocateResourceOrRefEdge)."""
        source, target = self.root(src), self.root(dst)
        if self._leaves_composite(source, target):
            return
        self._require_compatible(src, dst, source, target, kind)
        if not self._requested[source].compatible_with(self._requested[target]):
            kept = self._requested[source]
            self.notices.append(Notice(dst, src, str(self._requested[target]), str(kept)))
            self._requested[target] = kept.overwritten_by(self._assigned[target]).overwritten_by(self._resource[target])
        try:
            self.join(ColocationEdge(kind, src, dst))
        except Refused as refused:
            message = error_messages.joined_by_resource(self.graph, refused.refusal.message, dst)
            raise invalid_argument(message, dst, refused.refusal.ends) from None

    def join(self, join: ColocationEdge) -> None:
        """Put two nodes in one group or raise `Refused` (ColocateNodes).

        Where only the device types do not fit, the group that would have won keeps the merged devices all the same:
        TensorFlow does not undo that either.
        """
        x, y = self.root(join.first), self.root(join.second)
        if x == y:
            return
        new, old = (y, x) if self._rank[x] < self._rank[y] else (x, y)
        self._merge_devices(new, old, join)
        types = self._common(self._types[new], self._types[old])
        if not types:
            self.failed = join
            message = error_messages.no_common_type(self, join.first, join.second, x, y)
            raise invalid_argument(message, join.first, (join.first, join.second))
        self._types[new] = types
        self._parent[old] = new
        self._rank[new] += self._rank[new] == self._rank[old]
        self.colocation_edges.append(join)

    def limit(self, node: int, requested: DeviceName, resource: DeviceName, types: Types) -> None:
        """Narrow a node's group to what a called function needs (LimitToPossibleDevices)."""
        root = self.root(node)
        try:
            wanted = self._requested[root].merged(requested, "soft" if self.soft else "strict")
            stays = self._resource[root].merged(resource, "strict")
        except DeviceConflict as conflict:
            raise invalid_argument(str(conflict), node) from None
        self._requested[root], self._resource[root] = wanted, stays
        narrowed = self._common(self._types[root], types)
        if narrowed:
            self._types[root] = narrowed

    def keep_on_host(self, node: int) -> None:
        """Narrow a node's group to the CPU because of what its input holds; no CPU kernel changes nothing."""
        root = self.root(node)
        on_cpu = tuple(entry for entry in self._types[root] if entry[0] == "CPU")
        self.host_only.add(node)
        if on_cpu:
            self._types[root] = on_cpu

    def exclude_xla(self) -> None:
        """Remove the XLA device types from the groups that name no such device (MaybeExcludeXlaDevices)."""
        if _XLA.isdisjoint(self.devices.types):
            return
        for root in {self.root(node) for node in self.graph.op_ids}:
            if any(
                specs[root].type in (*_XLA, COMPOSITE) for specs in (self._requested, self._assigned, self._resource)
            ):
                continue
            self._types[root] = tuple(entry for entry in self._types[root] if entry[0] not in _XLA) or self._types[root]

    # -- private ------------------------------------------------------------------------------------------------

    def _add_assigned(self, node: int, types: Types) -> None:
        name = self.graph.assigned[node]
        spec = DeviceName.parse(name)
        device = self.devices.by_name.get(name)
        if spec is None:
            raise internal_error(error_messages.malformed_assigned_device(self.graph, node), node)
        if device is None:
            raise internal_error(error_messages.assigned_device_unknown(self.graph, node, self.devices.by_name), node)
        if not any(device.counts_as(kind) for kind, _ in types):
            raise internal_error(error_messages.assigned_device_without_kernel(self.graph, node), node)
        self._assigned[node] = self._requested[node] = spec

    def _add_requested(self, node: int) -> None:
        graph = self.graph
        spec = DeviceName.parse(graph.requested[node])
        if spec is None:
            raise invalid_argument(error_messages.malformed_device(graph, node), node)
        self._requested[node] = spec
        if not graph.in_types[node] and len(graph.out_types[node]) == 1:
            made = graph.out_types[node][0]
            if made == DataType.DT_RESOURCE or made > REF_OFFSET:
                self._resource[node] = spec

    def _is_dataset(self, node: int) -> bool:
        op = self.graph.ops[node]
        return is_dataset_op(op, self.support.table.op(op), self.graph.out_types[node])

    def _leaves_composite(self, source: int, target: int) -> bool:
        for specs in (self._assigned, self._resource, self._requested):
            if specs[source].type == COMPOSITE and specs[target].type not in (None, COMPOSITE):
                return True
        return False

    def _common(self, new: Types, old: Types) -> Types:
        return merge_supported_devices(new, old, self.devices.type_order)

    def _require_compatible(self, src: int, dst: int, source: int, target: int, kind: ColocationEdgeKind) -> None:
        for what, specs in (("assigned", self._assigned), ("resource", self._resource)):
            if specs[source] is not specs[target] and not specs[source].compatible_with(specs[target]):
                self.failed = ColocationEdge(kind, src, dst)
                message = error_messages.incompatible_edge(self.graph, what, specs[source], specs[target], src, dst)
                raise invalid_argument(message, dst, (src, dst))

    def _join_class(self, node: int, anchor: int, group: str) -> None:
        try:
            self.join(ColocationEdge(ColocationEdgeKind.CLASS, node, anchor, group))
        except Refused as refused:
            message = refused.refusal.message
            if not self.soft:
                raise invalid_argument(
                    error_messages.attach_def(self.graph, message, node), node, refused.refusal.ends
                ) from None
            self.failed = None  # soft placement drops this colocation
            self.notices.append(Notice(node, anchor, group=group, why=message))

    def _merge_devices(self, new: int, old: int, join: ColocationEdge) -> None:
        if self._is_free(old) and self._assigned[new] is self._resource[new] is _NOWHERE:
            return
        try:
            assigned = self._assigned[new].merged(self._assigned[old], "strict")
            resource = self._resource[new].merged(self._resource[old], "strict")
            requested = self._requested[new].merged(self._requested[old], "soft" if self.soft else "strict")
        except DeviceConflict as conflict:
            message = error_messages.cannot_colocate(self.graph, join.first, join.second, str(conflict))
            self.failed = join
            raise invalid_argument(message, join.first, (join.first, join.second)) from None
        self._assigned[new] = assigned
        self._resource[new] = resource
        self._requested[new] = requested.overwritten_by(assigned).overwritten_by(resource)

    def _is_free(self, root: int) -> bool:
        return self._assigned[root] is self._resource[root] is self._requested[root] is _NOWHERE

    def _no_candidates(self, node: int, root: int) -> Refused:
        message = error_messages.no_candidates(self, node, root)
        return invalid_argument(error_messages.cannot_assign(self.graph, node, message), node, (node,))


def class_groups(attrs: Mapping[str, object]) -> list[str]:
    """List the group names of a node's `_class` attribute, without `loc:@`; a scalar attribute counts for nothing.

    >>> class_groups({"_class": (b"loc:@a", b"other")}), class_groups({"_class": b"loc:@a"})
    (['a'], [])
    """
    values = attrs.get("_class")
    if not isinstance(values, tuple):
        return []
    return [
        value[5:].decode(errors="replace")
        for value in values
        if isinstance(value, bytes) and value.startswith(b"loc:@")
    ]


def merge_supported_devices(new: Types, old: Types, type_order: Callable[[str], tuple[int, str]] = type_order) -> Types:
    """Keep the device types that both groups can use, best first (MergeSupportedDevices).

    Where both sides have priorities and they disagree on the order, all priorities are forgotten.

    >>> merge_supported_devices((("GPU", 0), ("CPU", 0)), (("CPU", 0),))
    (('CPU', 0),)
    """
    if new == old:
        return new
    kept = {kind for kind, _ in new} & {kind for kind, _ in old}
    mine = _by_preference((entry for entry in new if entry[0] in kept), type_order)
    theirs = _by_preference((entry for entry in old if entry[0] in kept), type_order)
    if not any(priority for _, priority in theirs):
        return mine
    if not any(priority for _, priority in mine):
        return theirs
    if [kind for kind, _ in mine] == [kind for kind, _ in theirs]:
        return mine
    return _by_preference(((kind, 0) for kind in kept), type_order)


def _by_preference(types: Iterable[tuple[str, int]], type_order: Callable[[str], tuple[int, str]]) -> Types:
    return tuple(sorted(types, key=lambda entry: (-entry[1], type_order(entry[0]))))
