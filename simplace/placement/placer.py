"""Place a prepared graph: colocate, then decide node by node in two passes.

Mirrors Placer::Run (tensorflow/core/common_runtime/placer.cc).
"""

from __future__ import annotations

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet
from simplace.graph.graph import Graph
from simplace.kernels.registry import KernelTable
from simplace.placement.candidates import CandidateFinder
from simplace.placement.colocation_graph import ColocationGroups
from simplace.placement.inspecting_placer import CalledBodies, CallStack, colocate_graph
from simplace.placement.kernel_support import KernelSupport
from simplace.placement.placement import Decision, Placement
from simplace.placement.rules import ALL_RULES, FOLLOWING_OPS, Rule, View, is_generator
from simplace.program.program import Program
from simplace.program.status import Refusal, Refused

IDENTITY_RULE_SINCE = (2, 17)


def place_graph(
    program: Program,
    graph: Graph,
    devices: DeviceSet,
    table: KernelTable,
    *,
    default: Device | None,
    soft_placement: bool,
    bodies: CalledBodies,
) -> Placement:
    """Return every node of a prepared graph a device with its reason.

    `default` is the device of the call for a function, None for a session. A graph that TensorFlow would refuse comes
    back with its refusal and the nodes that were placed before it.
    """
    if not len(devices):
        no_devices = Refusal("FAILED_PRECONDITION", "No devices are registered")
        return refused_placement(program, graph, devices, table, default, no_devices)
    client = devices.devices[0]  # direct_session.cc: the first device of a session is its client's
    local = DeviceName(*(default or client).spec[:3])
    support = KernelSupport(table, devices, local)
    finder = CandidateFinder(devices, default, soft_placement)
    groups = ColocationGroups(graph, devices, support, finder, soft_placement)
    decisions: dict[int, Decision] = {}
    refusal = None
    try:
        colocate_graph(groups, bodies, CallStack(program.function or ""))
        _Decider(groups, decisions, View(graph, groups.chosen, _has_identity_rule(table))).run()
    except Refused as refused:
        refusal = refused.refusal
    return Placement(program, devices, default, soft_placement, groups, decisions, list(decisions), refusal)


def refused_placement(
    program: Program, graph: Graph, devices: DeviceSet, table: KernelTable, default: Device | None, refusal: Refusal
) -> Placement:
    """Record of a refusal that comes before any node could be placed."""
    support = KernelSupport(table, devices, None)
    finder = CandidateFinder(devices, default, program.soft_placement)
    groups = ColocationGroups(graph, devices, support, finder, program.soft_placement)
    return Placement(program, devices, default, program.soft_placement, groups, {}, [], refusal)


class _Decider:
    """Decide node by node; nodes that take the first of the same candidates share one decision."""

    def __init__(self, groups: ColocationGroups, decisions: dict[int, Decision], view: View) -> None:
        self._groups = groups
        self._graph = groups.graph
        self._view = view
        self._decisions = decisions
        self._first: dict[int, Decision] = {}  # by id of the candidates, of which the finder keeps one each

    def run(self) -> None:
        graph = self._graph
        ops, assigned, in_types = graph.ops, graph.assigned, graph.in_types
        postponed: list[int] = []
        for node in graph.op_ids:
            if assigned[node]:
                self._settle(node, Decision(assigned[node], Rule.ASSIGNED))
            elif not in_types[node] and is_generator(graph, node):
                postponed.append(node)
            elif ops[node] in FOLLOWING_OPS:
                self._settle(node, self._choose(node))
            else:
                self._settle(node, self._first_choice(node))
        for node in postponed:
            self._settle(node, self._choose(node))

    def _choose(self, node: int) -> Decision:
        candidates = self._groups.candidates(node)
        for rule in ALL_RULES:
            answer = rule(self._view, node, candidates)
            if answer is not None:
                name, device, follows = answer
                return Decision(device, name, follows, candidates)
        raise AssertionError("the last rule always answers")

    def _first_choice(self, node: int) -> Decision:
        candidates = self._groups.candidates(node)
        known = self._first.get(id(candidates))
        if known is None:
            known = self._first[id(candidates)] = self._choose(node)
        return known

    def _settle(self, node: int, decision: Decision) -> None:
        self._groups.chosen[node] = decision.device
        spec = DeviceName.parse(decision.device)
        assert spec is not None, f"{decision.device} is the name of a device in the set"
        self._groups.limit_to_assigned(node, spec)
        self._decisions[node] = decision


def _has_identity_rule(table: KernelTable) -> bool:
    """Return whether the table's TensorFlow is new enough; one without a version counts as the newest."""
    if not table.version:
        return True
    return tuple(int(part) for part in table.version.split(".")[:2]) >= IDENTITY_RULE_SINCE
