"""The doctor's examinations: each looks at a result for one thing that fails without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from simplace.call_device import call_device
from simplace.devices import DeviceName
from simplace.doctor import findings as found
from simplace.doctor.findings import Finding
from simplace.explain import explain_conflict, sentence
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import NodeDef
from simplace.importers.program import Program
from simplace.oracle.observation import PythonFact
from simplace.placement import reasons as why
from simplace.placement.placement import Placement
from simplace.result import Placed, Result
from simplace.surprises import Surprise, find_surprises

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_LABEL = b"loc:@"


@dataclass(frozen=True, slots=True)
class Patient:
    """Hold what is examined: a result, whether it is of a saved file, and the environment the program ran in."""

    result: Result
    is_saved: bool
    environment: Mapping[str, str]

    def facts(self, kind: str) -> list[PythonFact]:
        """List the facts of one kind that the running program showed."""
        return [fact for fact in self.result.python if fact.kind == kind]


def diagnose(result: Result, *, is_saved: bool, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """List the findings of a result, in the order of `ALL_FINDINGS`; what several programs share is said once.

    `is_saved` says that the target is a file, whose requests were written down on another machine. `environment` is
    that of the program (this process's own).
    """
    patient = Patient(result, is_saved, environment)
    every = [finding for look in _LOOKS for finding in look(patient)]
    once: dict[Finding, Finding] = {}
    for finding in every:
        once.setdefault(replace(finding, program="", nodes=()), finding)
    order = {kind: i for i, kind in enumerate(found.ALL_FINDINGS)}
    return tuple(sorted(once.values(), key=lambda finding: order[type(finding)]))


def _refused(patient: Patient) -> Iterator[Finding]:
    for placed in patient.result:
        refusal = placed.placement.refusal
        if refusal is None:
            continue
        graph = placed.placement.graph
        nodes = (graph.names[refusal.node],) if refusal.node >= 0 else ()
        at = placed.placement.notes(refusal.node).at if refusal.node >= 0 else ""
        message = refusal.message.split("\nColocation Debug Info")[0].splitlines()[0]
        yield found.Refused(at, placed.name, nodes, message, " ".join(explain_conflict(placed.placement)))


def _late_log_flag(patient: Patient) -> Iterator[Finding]:
    flags = patient.facts("log flag")
    if flags and all(fact.values["late"] for fact in flags):
        yield found.LateLogFlag(flags[0].at, "", ())


def _hidden_log(patient: Patient) -> Iterator[Finding]:
    if not patient.facts("log flag"):
        return
    own = patient.facts("log level")
    level = own[-1].values["level"] if own else patient.environment.get(_LOG_LEVEL, "")
    if level.strip().isdecimal() and int(level) > 0:
        yield found.HiddenLog(own[-1].at if own else "", "", (), level, inherited=not own)


def _baked_devices(patient: Patient) -> Iterator[Finding]:
    if not patient.is_saved:
        return
    for placed in patient.result:
        devices = placed.placement.devices
        asking: dict[str, list[str]] = {}
        for node in _all_nodes(placed.placement.program):
            spec = DeviceName.parse(node.device)
            if spec is not None and not devices.matching(spec):
                asking.setdefault(node.device, []).append(node.name)
        refused = placed.placement.refusal is not None
        for request, names in asking.items():
            yield found.BakedDevice("", placed.name, tuple(names), _short(request), str(devices), refused)


def _requests(patient: Patient) -> Iterator[Finding]:
    """Look at the requests that were not granted."""
    for placed in patient.result:
        for surprise in find_surprises(placed.placement):
            if surprise.kind == "not granted":
                yield from _request(patient, placed, surprise)


def _request(patient: Patient, placed: Placed, surprise: Surprise) -> Iterator[Finding]:
    placement, reason = placed.placement, surprise.reason
    assert reason is not None, "a request that was not granted has a reason"
    nodes = _names(placement, surprise.nodes)
    where = (surprise.source, placed.name, nodes)
    request, got = placement.graph.requested[surprise.nodes[0]], _device(placement, surprise.device)
    if not isinstance(reason, why.SoftFallback):
        yield found.RequestOverruled(*where, _short(request), got, sentence(placement, reason))
    elif not reason.exists:
        if not patient.is_saved:  # a baked device is a finding of its own
            yield found.NoSuchDevice(*where, _short(reason.request), got, str(placement.devices))
    elif reason.kernels_missing_at < 0:
        yield found.RequestOverruled(*where, _short(request), got, sentence(placement, reason))
    else:
        lacking = reason.kernels_missing_at
        instead = _nearest(placement, lacking, DeviceName.parse(reason.request))
        yield found.NoKernel(*where, _short(reason.request), got, placement.graph.ops[lacking], instead)


def _nearest(placement: Placement, node: int, wanted: DeviceName | None) -> str:
    near = {kind: nearest for kind, nearest in why.kernel_facts(placement, node).lacking if nearest is not None}
    nearest = near.get(wanted.type) if wanted is not None and wanted.type is not None else None
    return f"{nearest.attr}={dtypes.name(nearest.instead)}" if nearest is not None else ""


def _scopes_without_device(patient: Patient) -> Iterator[Finding]:
    for fact in patient.facts("scope without device"):
        request = _short(fact.values["requested"])
        yield found.NoSuchDevice(fact.at, "", (), request, "", str(patient.result.devices))


def _unknown_colocation(patient: Patient) -> Iterator[Finding]:
    for placed in patient.result:
        program = placed.placement.program
        known = {node.name for node in _all_nodes(program)}
        known |= {arg.name for function in program.graph.library.values() for arg in function.inputs}
        lost: dict[str, list[NodeDef]] = {}
        for node in _own_nodes(program):
            for wanted in _labels(node):
                if wanted not in known:
                    lost.setdefault(wanted, []).append(node)
        notes = program.notes.get(program.function or "", {})
        for wanted, nodes in lost.items():
            at = notes[nodes[0].name].at if nodes[0].name in notes else ""
            yield found.UnknownColocation(at, placed.name, tuple(node.name for node in nodes), wanted)


def _labels(node: NodeDef) -> list[str]:
    values = node.attrs.get("_class", ())
    if not isinstance(values, tuple):
        return []
    return [value[len(_LABEL) :].decode(errors="replace") for value in values if value.startswith(_LABEL)]


def _lost_scopes(patient: Patient) -> Iterator[Finding]:
    lost: dict[tuple[str, str, str, str], list[str]] = {}
    for fact in patient.facts("scope lost"):
        values = fact.values
        key = (fact.at, values["requested"], values["got"], values["leader"])
        lost.setdefault(key, []).append(values["node"])
    for (at, request, got, leader), nodes in lost.items():
        yield found.LostScope(at, "", tuple(nodes), _short(request), _short(got), leader)


def _layers(patient: Patient) -> Iterator[Finding]:
    home = call_device("", patient.result.devices, True)
    for fact in patient.facts("layer scope"):
        values = fact.values
        built, called = DeviceName.parse(values["requested"]), DeviceName.parse(values["called"])
        if built is None or called is None:
            continue
        if built.matches(called.filled_from(home.spec) if called.type is None else called):
            continue  # the computation comes to be there all the same
        yield found.LayerOutsideScope(
            fact.at, "", (), values["layer"], _short(values["requested"]), values["called_at"]
        )


def _datasets(patient: Patient) -> Iterator[Finding]:
    for fact in patient.facts("dataset scope"):
        values = fact.values
        request = _short(values["requested"])
        yield found.DatasetScope(fact.at, "", (), request, values["transformation"], values["ops"])


def _detours(patient: Patient) -> Iterator[Finding]:
    for placed, surprise in _surprises(patient, "cpu between gpus"):
        placement = placed.placement
        assert surprise.reason is not None, "a detour has a reason"
        where = (surprise.source, placed.name, _names(placement, surprise.nodes))
        ops, because = _ops(placement, surprise.nodes), sentence(placement, surprise.reason)
        yield found.DetourOverCpu(*where, ops, _device(placement, surprise.device), because)


def _host_memory(patient: Patient) -> Iterator[Finding]:
    for placed, surprise in _surprises(patient, "host memory"):
        placement = placed.placement
        nodes = tuple(node for node in surprise.nodes if DataType.DT_INT32 in placement.graph.out_types[node])
        if not nodes:
            continue  # a truth value is where the host needs it
        at = placement.notes(nodes[0]).at
        yield found.HostMemory(at, placed.name, _names(placement, nodes), _ops(placement, nodes))


def _idle_gpus(patient: Patient) -> Iterator[Finding]:
    placements = [placed.placement for placed in patient.result if placed.placement.refusal is None]
    if not placements:
        return
    used = {decision.device for placement in placements for decision in placement.decisions.values()}
    for device in patient.result.devices:
        if device.type != "GPU" or device.name in used:
            continue
        requests = [
            spec
            for placement in placements
            for request in placement.graph.requested[2:]
            if request and (spec := DeviceName.parse(request)) is not None
        ]
        asked = sum(1 for spec in requests if spec.type == "GPU" and spec.id == device.spec.id)
        yield found.IdleGpu("", "", (), device.short, asked)


def _surprises(patient: Patient, kind: str) -> Iterator[tuple[Placed, Surprise]]:
    for placed in patient.result:
        for surprise in find_surprises(placed.placement):
            if surprise.kind == kind:
                yield placed, surprise


def _all_nodes(program: Program) -> Iterator[NodeDef]:
    yield from program.graph.nodes
    for function in program.graph.library.values():
        yield from function.nodes


def _own_nodes(program: Program) -> Iterable[NodeDef]:
    """List the nodes of the graph itself, or of the function called: others may carry labels of their caller."""
    if program.function is None:
        return program.graph.nodes
    return program.graph.library[program.function].nodes


def _names(placement: Placement, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(placement.graph.names[node] for node in nodes)


def _ops(placement: Placement, nodes: tuple[int, ...]) -> str:
    """Count the op types of nodes, the three most frequent by name."""
    ops = Counter(placement.graph.ops[node] for node in nodes)
    if len(nodes) == 1:
        return f"{placement.graph.names[nodes[0]]} ({placement.graph.ops[nodes[0]]})"
    kinds = ", ".join(f"{count} {op}" if count > 1 else op for op, count in ops.most_common(3))
    return f"{len(nodes)} ops ({kinds}{', …' if len(ops) > 3 else ''})"


def _device(placement: Placement, name: str) -> str:
    device = placement.devices.find(name)
    return device.short if device is not None else name


def _short(request: str) -> str:
    return request.removeprefix("/job:localhost/replica:0/task:0")


_LOOKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _refused, _late_log_flag, _hidden_log, _baked_devices, _requests, _scopes_without_device, _unknown_colocation,
    _lost_scopes, _layers, _datasets, _detours, _host_memory, _idle_gpus,
)  # fmt: skip
