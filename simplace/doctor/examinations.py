"""The doctor's examinations: each searches a result for one kind of silent failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.doctor import silent_failures as found
from simplace.doctor.failures import is_caught, predict_failures
from simplace.explain.eager_findings import EagerCopiesEachTime, find_in_eager
from simplace.explain.finding import Finding
from simplace.explain.findings import IdleGpu, NoKernel, NoSuchDevice, idle_gpus
from simplace.explain.placement_findings import find_sent, find_ungranted, rank_findings
from simplace.explain.sentences import short_request, state_conflict
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import NodeDef
from simplace.lowering.reachable_functions import find_callee
from simplace.placement.default_device import call_device
from simplace.placement.eager.eager_placement import PlacedOp
from simplace.program.observation import PythonFact
from simplace.program.program import EAGER_OPS, Program
from simplace.result import Result

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_LABEL = b"loc:@"
_TRACES = 5  # of a function, from which on TensorFlow itself warns (FREQUENT_TRACING_WARNING_THRESHOLD)
_COMPILATIONS = 3  # by XLA, which take seconds each
_ROUNDS = 20  # of a loop outside of functions, from which on it is told
_LEAST_OPS, _LEAST_RUNS = 10, 500  # of a loop that is worth a function


@dataclass(frozen=True, slots=True)
class Patient:
    """Record of what is examined: a result, whether it is of a saved file, and the environment the program ran in."""

    result: Result
    is_saved: bool
    environment: Mapping[str, str]

    def facts(self, kind: str) -> list[PythonFact]:
        """Return the facts of one kind that the running program showed."""
        return [fact for fact in self.result.python if fact.kind == kind]


def diagnose_result(
    result: Result, *, is_saved: bool, environment: Mapping[str, str], simulated: Iterable[Finding] = ()
) -> tuple[Finding, ...]:
    """Return the findings of a result, ranked, then in the order of `ALL_FINDINGS`; shared ones are listed once.

    `is_saved`: the target is a file, whose requests were saved on another machine. `environment` is
    that of the program (this process's own). `simulated` is what was found by simulating steps.
    """
    patient = Patient(result, is_saved, environment)
    every = [*simulated, *(finding for look in _LOOKS for finding in look(patient))]
    once: dict[Finding, Finding] = {}
    for finding in every:
        once.setdefault(replace(finding, program="", nodes=()), finding)
    order = {kind: i for i, kind in enumerate(found.ALL_FINDINGS)}
    return tuple(rank_findings(sorted(once.values(), key=lambda finding: order[type(finding)])))


def _find_refused_programs(patient: Patient) -> Iterator[Finding]:
    for placed in patient.result:
        refusal = placed.placement.refusal
        if refusal is None:
            continue
        graph = placed.placement.graph
        nodes = (graph.names[refusal.node],) if refusal.node >= 0 else ()
        at = placed.placement.notes(refusal.node).at if refusal.node >= 0 else ""
        message = refusal.message.split("\nColocation Debug Info")[0].splitlines()[0]
        yield found.ProgramRefused(
            at, placed.title, nodes, message, " ".join(map(str, state_conflict(placed.placement))),
            caught_at=placed.placement.program.catches(refusal.code),
        )  # fmt: skip


def _find_failures(patient: Patient) -> Iterator[Finding]:
    yield from predict_failures(patient.result)


def _find_late_settings(patient: Patient) -> Iterator[Finding]:
    for fact in patient.facts("setting refused"):
        if is_caught(fact, patient.result.python):
            yield found.LateSetting(
                fact.at, "", (), fact.values["setting"], fact.values["error"], fact.values["started"]
            )


def _find_late_log_flag(patient: Patient) -> Iterator[Finding]:
    flags = patient.facts("log flag")
    if flags and all(fact.values["late"] for fact in flags):
        yield found.LateLogFlag(flags[0].at, "", ())


def _find_hidden_log(patient: Patient) -> Iterator[Finding]:
    if not patient.facts("log flag"):
        return
    own = patient.facts("log level")
    level = own[-1].values["level"] if own else patient.environment.get(_LOG_LEVEL, "")
    if level.strip().isdecimal() and int(level) > 0:
        yield found.HiddenLog(own[-1].at if own else "", "", (), level, inherited=not own)


def _find_baked_devices(patient: Patient) -> Iterator[Finding]:
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
            yield found.BakedDevice("", placed.title, tuple(names), short_request(request), str(devices), refused)


def _find_ungranted_requests(patient: Patient) -> Iterator[Finding]:
    """Yield the requests that were not granted; a device in a saved file is a finding of its own."""
    for placed in patient.result:
        for finding in find_ungranted(placed.placement, placed.communication):
            if not (patient.is_saved and isinstance(finding, NoSuchDevice)):
                yield finding


def _find_scopes_without_device(patient: Patient) -> Iterator[Finding]:
    for fact in patient.facts("scope without device"):
        request = short_request(fact.values["requested"])
        yield NoSuchDevice(fact.at, "", (), request, "", "", "", str(patient.result.devices))


def _find_unknown_colocation(patient: Patient) -> Iterator[Finding]:
    for placed in patient.result:
        program = placed.placement.program
        known = {node.name for node in _all_nodes(program)}
        arguments = {arg.name for function in program.graph.library.values() for arg in function.inputs}
        lost: dict[str, list[NodeDef]] = {}
        for node in _own_nodes(program):
            for wanted in _read_labels(node):
                if wanted not in known and _name_argument(wanted) not in arguments:
                    lost.setdefault(wanted, []).append(node)
        notes = program.notes.get(program.function or "", {})
        for wanted, nodes in lost.items():
            at = notes[nodes[0].name].at if nodes[0].name in notes else ""
            yield found.UnknownColocation(at, placed.title, tuple(node.name for node in nodes), wanted)


def _name_argument(name: str) -> str:
    """Return the name that the argument of a function gets which a node of its graph becomes.

    Labels keep the node's name: tf.nn.embedding_lookup makes one of the handle that a function captures. Mirrors
    `NodeNameMapping::Normalize` of tensorflow/core/framework/graph_to_functiondef.cc.

    >>> _name_argument("embedding_lookup/432"), _name_argument("_1/B")
    ('embedding_lookup_432', 'b')
    """
    return re.sub(r"[^a-z0-9]", "_", name.lower()).lstrip("_0123456789") or "unknown"


def _read_labels(node: NodeDef) -> list[str]:
    values = node.attrs.get("_class", ())
    if not isinstance(values, tuple):
        return []
    strings = (value for value in values if isinstance(value, bytes))
    return [value[len(_LABEL) :].decode(errors="replace") for value in strings if value.startswith(_LABEL)]


def _find_lost_scopes(patient: Patient) -> Iterator[Finding]:
    lost: dict[tuple[str, str, str, str], list[str]] = {}
    for fact in patient.facts("scope lost"):
        values = fact.values
        key = (fact.at, values["requested"], values["got"], values["leader"])
        lost.setdefault(key, []).append(values["node"])
    for (at, request, got, leader), nodes in lost.items():
        yield found.LostScope(at, "", tuple(nodes), short_request(request), short_request(got), leader)


def _find_layers_outside(patient: Patient) -> Iterator[Finding]:
    home = call_device("", patient.result.devices, True)
    for fact in patient.facts("layer scope"):
        values = fact.values
        built, called = DeviceName.parse(values["requested"]), DeviceName.parse(values["called"])
        if built is None or called is None:
            continue
        if built.matches(called.filled_from(home.spec) if called.type is None else called):
            continue  # the computation is placed there anyway
        yield found.LayerOutsideScope(
            fact.at, "", (), values["layer"], short_request(values["requested"]), values["called_at"]
        )


def _find_dataset_scopes(patient: Patient) -> Iterator[Finding]:
    for fact in patient.facts("dataset scope"):
        values = fact.values
        request = short_request(values["requested"])
        yield found.DatasetScope(fact.at, "", (), request, values["transformation"], values["ops"])


def _find_retraced(patient: Patient) -> Iterator[Finding]:
    """Yield the functions with many traces; those that ops call, as a dataset does, are made anew by the program.

    Functions of one name whose owners are not known are told apart by their lines, as TensorFlow does by their code.
    """
    traces: dict[tuple[str, str, int], list[tuple[set[str], list[Program]]]] = {}
    for placed in patient.result:
        program = placed.placement.program
        if program.kind in ("function", "compiled") and not program.is_internal:
            _add_trace(traces.setdefault((program.name, program.role, program.owner), []), program)
    for (name, role, _), programs in ((key, one) for key, each in traces.items() for _, one in each):
        is_compiled = all(program.kind == "compiled" for program in programs)
        if len(programs) >= (_COMPILATIONS if is_compiled else _TRACES):
            shapes = {_list_shapes(program) for program in programs}
            yield found.Retraced(programs[0].at, role or name, (), len(programs), len(shapes), is_compiled, bool(role))


def _add_trace(functions: list[tuple[set[str], list[Program]]], program: Program) -> None:
    """Add a trace to the first function that has a line in common with it, or as that of another function."""
    lines = {notes.at for notes in program.notes.get(_find_function(program), {}).values()} - {"", program.at}
    for known, programs in functions:
        if program.owner or known & lines or not known or not lines:
            known |= lines
            programs.append(program)
            return
    functions.append((lines, [program]))


def _find_function(program: Program) -> str:
    """Return the name of the library function that a program calls."""
    called = [find_callee(node.op, node.attrs, program.graph.library) for node in program.graph.nodes]
    return program.function or next((each.name for each in called if each is not None), "")


def _list_shapes(program: Program) -> tuple[object, ...]:
    """List the shapes of the tensors that a function is called with, as far as they are known."""
    library, name = program.graph.library, _find_function(program)
    notes = program.notes.get(name, {})
    arguments = library[name].inputs if name in library else ()
    return tuple(
        notes[arg.name].shapes if arg.name in notes else () for arg in arguments if arg.dtype != DataType.DT_RESOURCE
    )


def _find_eager_loop(patient: Patient) -> Iterator[Finding]:
    """Yield the lines of the program itself whose eager ops run again and again, in each file together."""
    eager = patient.result.eager
    files: dict[str, list[PlacedOp]] = {}
    for each in eager.ops if eager is not None else ():
        if each.op.at and not each.op.library and each.times >= _ROUNDS:
            files.setdefault(each.op.at.rpartition(":")[0], []).append(each)
    for ops in files.values():
        runs = sum(each.times for each in ops)
        if len(ops) >= _LEAST_OPS and runs >= _LEAST_RUNS:
            lines = sorted({each.op.at for each in ops}, key=lambda at: int(at.rpartition(":")[2]))
            names = tuple(each.name for each in ops)
            most = max(each.times for each in ops)
            yield found.EagerLoop(lines[0], EAGER_OPS, names, tuple(lines), len(ops), most, runs)


def _find_copies(patient: Patient) -> Iterator[Finding]:
    """Yield what costs copies, of a function's calls: its first one runs once."""
    for placed in patient.result:
        if patient.result.is_followed(placed):
            continue
        yield from find_sent(placed.placement, placed.communication, [DataType.DT_INT32])  # booleans belong there


def _find_idle_gpus(patient: Patient) -> Iterator[Finding]:
    """Yield the GPUs without work among those that the programs were placed on, such as a cluster's."""
    eager, placements = patient.result.eager, [placed.placement for placed in patient.result]
    sets = [one.devices for one in placements] + ([] if eager is None else [eager.all_devices])
    devices = DeviceSet({device.name: device for each in sets for device in each}.values())
    yield from idle_gpus(placements, devices, frozenset() if eager is None else eager.used_devices)


def _find_eager_ops(patient: Patient) -> Iterator[Finding]:
    eager = patient.result.eager
    if eager is None:
        return
    told = (EagerCopiesEachTime, NoKernel, IdleGpu)  # of a scope without a device `_find_scopes_without_device` tells
    found = find_in_eager(eager, is_all=not patient.result.programs)
    yield from (finding for finding in found if isinstance(finding, told))


def _all_nodes(program: Program) -> Iterator[NodeDef]:
    yield from program.graph.nodes
    for function in program.graph.library.values():
        yield from function.nodes


def _own_nodes(program: Program) -> Iterable[NodeDef]:
    """Return the nodes of the graph itself, or of the called function: others may carry labels of their caller."""
    if program.function is None:
        return program.graph.nodes
    return program.graph.library[program.function].nodes


_LOOKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _find_refused_programs, _find_failures, _find_late_settings, _find_late_log_flag,
    _find_hidden_log, _find_baked_devices, _find_ungranted_requests, _find_scopes_without_device,
    _find_unknown_colocation, _find_lost_scopes, _find_layers_outside, _find_dataset_scopes, _find_copies,
    _find_retraced, _find_eager_loop, _find_eager_ops, _find_idle_gpus,
)  # fmt: skip
