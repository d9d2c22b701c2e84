"""Place the graphs of a target and compare with TensorFlow's log where it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from simplace.devices.device_set import DeviceSet, local_devices, seen_from_the_first
from simplace.errors import ProgramError, TargetError, UnknownOpError
from simplace.graph.collector import paused_collector
from simplace.importers.import_graph_def import refuse_function, refuse_import
from simplace.importers.target import Target, parse_target
from simplace.importers.xla_attributes import drop_jit
from simplace.kernels.installed import installed_version
from simplace.kernels.registry import KernelTable
from simplace.kernels.table_file import is_release_of
from simplace.machine.device_links import find_device_links
from simplace.machine.machine import Machine
from simplace.oracle.import_question import NOT_ASKED, ImportQuestion, ask_import
from simplace.pipeline import EagerPlacer, import_programs, place_program
from simplace.placement.default_device import call_device
from simplace.placement.placement import Placement
from simplace.program.program import EAGER_OPS, Program
from simplace.program.program_labels import label_programs
from simplace.progress import Stage, count_stage, show_nothing
from simplace.result import Placed, Result

if TYPE_CHECKING:
    from simplace.compare.compare_placements import Agreement
    from simplace.compare.coverage import Coverage
    from simplace.placement.eager.eager_placement import EagerCopies, EagerPlacement, PlacedEager
    from simplace.program.observation import (
        LoggedNode,
        Observation,
        ObservedDevice,
        ObservedEagerOp,
        ObservedProgram,
    )

# Reading a file must not wait for imports of what runs children: functions that run TensorFlow import what they need.

_NO_GRAPH = "a .keras file holds layers, not a graph that TensorFlow could place; check the script that loads it"
_OPEN_SHAPES = ", whether shapes fit included"
_NEVER_STARTED = "the program ended before it placed anything"


@dataclass(frozen=True, slots=True)
class Settings:
    """Record of what the user chose for one call.

    `devices_note` is a sentence on where the machine's devices come from. `soft_placement` None keeps what the
    program sets. `kernels` is a file of extra kernels, "" for none; `tensorflow` is the version whose kernels and rules
    place a file ("2.18" or "2.18.1"), "" for the installed one. `timeout` is in seconds, None for none. `stdout` is
    the file descriptor that takes what the program prints (None: standard output). Without `jit` the program's
    `jit_compile` counts for nothing. `sources` are pairs (absolute path, text) that a script's run takes in place of
    its files. `allocations` asks a script's run without GPUs for what TensorFlow does in host memory. `stage` is called
    with what begins.
    """

    machine: Machine = field(default_factory=Machine)
    devices_note: str = ""
    soft_placement: bool | None = None
    arguments: Sequence[str] = ()
    calls: int = 10
    timeout: float | None = 300.0
    kernels: str = ""
    tensorflow: str = ""
    stdout: int | None = None
    jit: bool = True
    sources: tuple[tuple[str, str], ...] = ()
    allocations: bool = False
    stage: Stage = show_nothing


R = TypeVar("R", bound=Result)  # the class of the result


def place_target(target: str, settings: Settings, kind: type[R]) -> R:
    """Place every program of a target; a script is run once under TensorFlow, and its log compared with.

    Raises a `SimplaceError` for whatever the user can fix.
    """
    parsed = parse_target(target)
    if parsed.kind == "script":
        _require_installed(target, settings)
        return _place_script(target, parsed, settings, kind)
    return _place_file(target, parsed, settings, kind)


def check_target(target: str, settings: Settings, kind: type[R]) -> R:
    """Place every program of a target and let TensorFlow place it too, files included.

    TensorFlow's own partition graphs are compared with as well, which takes a run without Grappler.
    """
    parsed = parse_target(target)
    _require_installed(target, settings)
    if parsed.kind == "script":
        return _place_script(target, parsed, settings, kind, partitions=True)
    if parsed.kind == "keras":
        raise TargetError(f"{target}: {_NO_GRAPH}")
    from simplace.oracle.observe import observe_file
    from simplace.oracle.protocol import Options

    settings.stage(f"reading {parsed.path}")
    import_programs(parsed, installed_version())  # what cannot be read is told in our words, and without TensorFlow
    options = Options(
        timeout=settings.timeout, soft_placement=settings.soft_placement, partitions=True, jit=settings.jit
    )
    settings.stage(f"asking TensorFlow about {parsed.path}")
    observed = observe_file(parsed.path, settings.machine, options)
    failure = failure_of(target, observed)
    if failure is not None:
        raise failure
    return _make_result(target, observed, settings, kind)


def compare_with_log(result: R, log: Sequence[LoggedNode]) -> R:
    """Compare the placements with a log from elsewhere instead; each program with the lines of its own nodes."""
    from simplace.compare.compare_placements import compare_placement, own_lines

    programs = tuple(
        replace(placed, agreement=compare_placement(placed.placement, own_lines(placed.placement, log)))
        for placed in result.programs
    )
    return replace(result, programs=programs)


def _place_script(target: str, parsed: Target, settings: Settings, kind: type[R], *, partitions: bool = False) -> R:
    from simplace.oracle.observe import observe_script
    from simplace.oracle.protocol import Options

    options = Options(
        calls=settings.calls,
        timeout=settings.timeout,
        function=parsed.function,
        soft_placement=settings.soft_placement,
        partitions=partitions,
        allocations=settings.allocations and not settings.machine.has_gpus,
        jit=settings.jit,
        sources=settings.sources,
    )
    settings.stage(f"running {parsed.path} once under TensorFlow ...", is_alone=True)
    observed = observe_script(parsed.path, tuple(settings.arguments), settings.machine, options, settings.stdout)
    if not observed.programs and (parsed.function or not (observed.eager or _is_explained(observed))):
        raise failure_of(target, observed) or ProgramError(_nothing_placed(target, parsed, observed))
    if parsed.function:  # then nothing else was asked for
        observed = replace(observed, eager=())
    return _make_result(target, observed, settings, kind)


def _is_explained(observed: Observation) -> bool:
    """Return whether the program ended with a failure that there is more to say of than its exception."""
    from simplace.doctor.failures import failures_of_run

    return any(True for _ in failures_of_run(observed.python))


def _place_file(target: str, parsed: Target, settings: Settings, kind: type[R]) -> R:
    settings.stage(f"reading {parsed.path}")
    unchecked = _NO_GRAPH if parsed.kind == "keras" else f"simplace check {target} asks it"
    with paused_collector():
        programs = import_programs(parsed, settings.tensorflow or installed_version())
        return place_programs(target, programs, settings, kind, unchecked)


def place_programs(target: str, programs: Sequence[Program], settings: Settings, kind: type[R], unchecked: str) -> R:
    """Place programs that were read from somewhere; `unchecked` is why TensorFlow does not place them, too."""
    table = _extend_table(KernelTable.shipped(settings.tensorflow or installed_version()), settings)
    devices = _devices_of(settings.machine)
    found = []
    with paused_collector():
        for i, program in enumerate(programs, 1):
            settings.stage(count_stage(f"placing {program.title}", i, len(programs)))
            found.append(_place_from_file(target, _with_devices(program, devices), devices, table, settings))
    if any(are_shapes_open for _, are_shapes_open in found):
        unchecked += _OPEN_SHAPES
    placed = label_results([each for each, _ in found])
    return kind(
        target, table.version, table.name, devices, placed, devices_note=settings.devices_note, unchecked=unchecked
    )


def _place_from_file(
    target: str, program: Program, devices: DeviceSet, table: KernelTable, settings: Settings
) -> tuple[Placed, bool]:
    """Place a program, and return with it whether it is a graph that TensorFlow was not asked about.

    An error in the graph is raised with the file's name.
    """
    try:
        program = program if settings.jit else drop_jit(program)
        inputs = None
        if program.kind == "graph":
            inputs = refuse_import(program.graph, table)
        elif program.function is not None and program.function in program.graph.library:
            refuse_function(program.graph, program.function, table)
        with _ask_import(program, settings) as question:
            soft = settings.soft_placement
            placed = Placed(place_program(program, devices, table, soft_placement=soft, inputs=inputs))
            settings.stage("asking TensorFlow")
            is_imported = question.refuse()
        return placed, program.kind == "graph" and not is_imported
    except (TargetError, UnknownOpError) as error:
        raise type(error)(f"{target}: {error}", error.details) from error


def _ask_import(program: Program, settings: Settings) -> AbstractContextManager[ImportQuestion]:
    """Begin to ask whether TensorFlow imports a graph, unless it is another TensorFlow or one with more ops."""
    installed = installed_version()
    is_installed = installed is not None and is_release_of(installed, settings.tensorflow or installed)
    is_asked = program.kind == "graph" and is_installed and not settings.kernels
    return ask_import(program.graph) if is_asked else nullcontext(NOT_ASKED)


def _make_result(target: str, observed: Observation, settings: Settings, kind: type[R]) -> R:
    result = place_observation(target, observed, settings, kind, _NEVER_STARTED)
    if parse_target(target).function:
        return result
    return replace(result, coverage=_measure_coverage(result.programs, observed))


def _note_shapes(observed: Observation) -> Observation:
    """Tell each program which shapes TensorFlow's log has of what kernels put out."""
    if observed.allocations is None:
        return observed
    shapes = observed.allocations.shapes
    programs = (replace(one, program=replace(one.program, observed_shapes=shapes)) for one in observed.programs)
    return replace(observed, programs=tuple(programs))


def place_observation(target: str, observed: Observation, settings: Settings, kind: type[R], unchecked: str = "") -> R:
    """Place what was observed, and compare with what TensorFlow did; `unchecked` is why it did not tell that."""
    table = KernelTable.load(observed.registry) if observed.registry else KernelTable.shipped(observed.tensorflow)
    table = _extend_table(table, settings)
    devices = _join_observed(observed.devices, settings.machine)
    if not devices.devices:
        devices = _devices_of(settings.machine)  # TensorFlow did not start
    observed = _note_shapes(observed)
    placed = label_results(list(_place_with_callees(observed, devices, table, settings)))
    settings.stage(f"placing {EAGER_OPS}")
    eager, eager_agreement = _placed_eager(observed, devices, table)
    failure = failure_of(target, observed)
    return kind(
        target,
        observed.tensorflow,
        table.name,
        devices,
        placed,
        observed.remarks,
        settings.devices_note,
        unchecked="" if observed.programs or observed.eager else unchecked,
        failure=failure,
        python=observed.python,
        unreached=observed.unreached,
        ending=observed.ending,
        allocations=observed.allocations,
        eager=eager,
        eager_agreement=eager_agreement,
    )


def label_results(placed: Sequence[Placed]) -> tuple[Placed, ...]:
    """Return results of which no two have the same title."""
    labels = label_programs([one.placement.program for one in placed])
    return tuple(
        one if label == one.title else replace(one, placement=one.placement.with_label(label))
        for one, label in zip(placed, labels, strict=True)
    )


def _placed_eager(
    observed: Observation, devices: DeviceSet, table: KernelTable
) -> tuple[PlacedEager | None, Agreement | None]:
    """Place the eager ops of a run, and compare; those that the table does not know, custom ones, are left out."""
    from simplace.compare.compare_eager import compare_eager
    from simplace.placement.eager.eager_placement import PlacedEager, PlacedOp

    known = [i for i, each in enumerate(observed.eager) if table.op(each.op.op) is not None]
    if not known:
        return None, None
    number = {old: new for new, old in enumerate(known)}
    placers: dict[tuple[ObservedDevice, ...], EagerPlacer] = {(): EagerPlacer(devices, table)}
    seen: Counter[str] = Counter()
    placed = []
    for each in (observed.eager[i] for i in known):
        base = f"{each.op.at} {each.op.op}".strip()
        seen[base] += 1
        name = f"{base} #{seen[base]}" if seen[base] > 1 else base
        if each.devices not in placers:
            placers[each.devices] = EagerPlacer(_make_observed(each.devices), table)
        placer = placers[each.devices]
        placement = placer.place(each.op)
        made_by = tuple(replace(one, maker=number[one.maker]) for one in each.made_by if one.maker in number)
        own = placer.devices if each.devices else None
        placed.append(PlacedOp(name, placement, each.times, tuple(_copies(placement, each)), made_by, own))
    agreement = compare_eager(
        (one.name, one.placement, observed.eager[i]) for one, i in zip(placed, known, strict=True)
    )
    return PlacedEager(tuple(placed), devices, table), agreement


def _copies(placement: EagerPlacement, observed: ObservedEagerOp) -> Iterator[EagerCopies]:
    from simplace.placement.eager.eager_placement import EagerCopies

    for copy in placement.copies:
        if not observed.copied:
            yield EagerCopies(copy.input, copy.source, copy.target, None, None)
        elif observed.copied[copy.input]:
            count, size = observed.copied[copy.input], observed.sizes[copy.input]
            yield EagerCopies(copy.input, copy.source, copy.target, count, size)


def _measure_coverage(placed: Sequence[Placed], observed: Observation) -> Coverage | None:
    from simplace.compare.coverage import measure_coverage

    graphs = observed.logged.graphs
    eager = sum(each.times for each in observed.eager)
    return measure_coverage([one.placement for one in placed], observed.logged, eager) if graphs else None


def _place_with_callees(
    observed: Observation, devices: DeviceSet, table: KernelTable, settings: Settings
) -> Iterator[Placed]:
    """Yield the programs, then the functions that kernels in them call, each instance once."""
    from simplace.compare.compare_placements import compare_placement
    from simplace.compare.logged_functions import place_callees

    def place_callee(program: Program, own: DeviceSet) -> Placement:
        settings.stage(f"placing {program.title}")
        return place_program(program, own, table, soft_placement=settings.soft_placement)

    own = [each for each in observed.programs if each.program.caller is None]
    direct = []
    for i, each in enumerate(own, 1):
        settings.stage(count_stage(f"placing {each.program.title}", i, len(own)))
        direct.append(_place_observed(each, devices, table, settings))
    yield from direct
    for placement, log in place_callees([one.placement for one in direct], observed, devices, table, place_callee):
        yield Placed(placement, None if log is None else compare_placement(placement, log))


def _make_observed(devices: Sequence[ObservedDevice]) -> DeviceSet:
    made = seen_from_the_first([each.name for each in devices], {each.name: each.limit for each in devices})
    return DeviceSet(replace(one, members=each.members) for one, each in zip(made, devices, strict=True))


def _join_observed(devices: Sequence[ObservedDevice], machine: Machine) -> DeviceSet:
    """Make the devices of a run, with the links of the machine that they share."""
    numbers = {each.name: each.gpu for each in devices if each.type == "GPU"}
    gpus = {name: _parse_number(name) if number < 0 else number for name, number in numbers.items()}
    found = _make_observed(devices).on_cards(gpus)
    return found.joined_by(find_device_links(machine, found))


def _place_observed(observed: ObservedProgram, devices: DeviceSet, table: KernelTable, settings: Settings) -> Placed:
    from simplace.compare.compare_placements import compare_placement, compare_what_is_left
    from simplace.compare.compare_transfers import compare_partitions

    own = _join_observed(observed.devices, settings.machine) if observed.devices else devices
    placement = place_program(observed.program, own, table, soft_placement=settings.soft_placement)
    compare = compare_what_is_left if observed.is_rewritten else compare_placement
    agreement = compare(placement, observed.log, observed.refused) if observed.is_asked else None
    return Placed(placement, agreement, compare_partitions(placement, observed.partitionings))


def failure_of(target: str, observed: Observation) -> ProgramError | None:
    """Return how a program terminated early, None where it did not."""
    return None if observed.failure is None else observed.failure.make_error(target)


def _nothing_placed(target: str, parsed: Target, observed: Observation) -> str:
    if parsed.function:
        told = [remark for remark in observed.remarks if remark.startswith(parsed.function)]
        return f"{target}: {' '.join(told) or f'the program called no tf.function of the name {parsed.function}'}"
    ran = f"it ran {observed.eager_ops} ops eagerly, one by one" if observed.eager_ops else "it ran no op"
    said = f"{target}: the script calls no tf.function and runs no session, so nothing can be placed ({ran})"
    if observed.remarks:
        return f"{said}. {' '.join(observed.remarks)}"
    return f"{said}; decorate the function with @tf.function and call it"


def _require_installed(target: str, settings: Settings) -> None:
    """Raise an error for another version where TensorFlow itself runs: there is only the installed one."""
    installed = installed_version()
    if installed is None or not settings.tensorflow or is_release_of(installed, settings.tensorflow):
        return
    raise TargetError(
        f"{target}: the installed TensorFlow {installed} runs this, not {settings.tensorflow}; install that version "
        "instead, or give `simplace show` a graph file, which it places as any version does"
    )


def _extend_table(table: KernelTable, settings: Settings) -> KernelTable:
    if not settings.kernels:
        return table
    from simplace.kernels.extra import load_extra

    return table.with_extra(load_extra(Path(settings.kernels)))


def _devices_of(machine: Machine) -> DeviceSet:
    if machine.tasks:
        found = seen_from_the_first(name for task in machine.tasks for name in task.device_names)
        gpus = {device.name: _parse_number(device.name) for device in found if device.type == "GPU"}
    else:
        found = local_devices([("CPU", machine.cpus), ("GPU", machine.logical_gpus)])
        logical = [device.name for device in found if device.type == "GPU"]
        gpus = dict(zip(logical, machine.hardware_of_gpus, strict=True))
    found = found.on_cards(gpus)
    return found.joined_by(find_device_links(machine, found))


def _parse_number(device: str) -> int:
    return int(device.rpartition(":")[2])


def _with_devices(program: Program, devices: DeviceSet) -> Program:
    """Fill in the device of arguments that a file leaves open: the device of the call."""
    if "" not in program.arg_devices:
        return program
    default = call_device(program.scope, devices, True).name
    return replace(program, arg_devices=tuple(name or default for name in program.arg_devices))
