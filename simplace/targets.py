"""Take what the user names (a script, a model file), and place it: read or run it, simulate, compare."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from simplace.call_device import call_device
from simplace.comparison import compare, own_lines
from simplace.cut_check import check_cuts
from simplace.devices import DeviceSet, local_devices, seen_from_the_first
from simplace.errors import ProgramError, TargetError, UnknownOpError, alternatives, choices
from simplace.graph.collector import paused_collector
from simplace.importers import graph_def
from simplace.importers.program import Program
from simplace.kernels.installed import installed_version
from simplace.kernels.table import KernelTable
from simplace.kernels.table_file import is_release_of
from simplace.oracle.machine import Machine
from simplace.oracle.messages import Options
from simplace.oracle.observation import LoggedNode, Observation, ObservedProgram
from simplace.progress import Stage, silent
from simplace.result import Placed, Result
from simplace.simulation import simulate

_NO_GRAPH = "a .keras file holds layers, not a graph that TensorFlow could place; check the script that loads it"
GRAPH_SUFFIXES = (".pb", ".pbtxt", ".graphdef", ".meta")


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold what the user chose for one call.

    `soft_placement` None keeps what the program sets. `kernels` is a file of extra kernels, "" for none;
    `tensorflow` is the version whose kernels and rules place a file ("2.18" or "2.18.1"), "" for the installed one.
    `stdout` is the file descriptor that takes what the program prints (None: standard output). `stage` is told what
    begins.
    """

    machine: Machine = field(default_factory=Machine)
    soft_placement: bool | None = None
    arguments: tuple[str, ...] = ()
    max_calls: int = 10
    time_limit: float | None = None
    kernels: str = ""
    tensorflow: str = ""
    stdout: int | None = None
    stage: Stage = silent


@dataclass(frozen=True, slots=True)
class Target:
    """Hold a target taken apart: `kind` is "script", "graph", "saved_model" or "keras"; `function` narrows a script."""

    path: Path
    kind: str
    function: str = ""


def parse_target(text: str) -> Target:
    """Tell what kind of target the user named; raise `TargetError` for a missing or unknown file."""
    path, function = Path(text), ""
    if not path.exists() and ":" in text:
        file, _, name = text.rpartition(":")
        if Path(file).exists() or file.endswith(".py"):
            path, function = Path(file), name
    if not text or not path.exists():
        raise TargetError(f"{path if text else repr(text)}: no such file or directory; {_instead(path)}")
    if path.suffix == ".py" and path.is_file():
        return Target(path, "script", function)
    if function:
        raise TargetError(f"{text}: only a script has functions to name; simplace show {path} --program {function}")
    if path.is_dir():
        return Target(path, "saved_model")
    if path.suffix == ".keras":
        return Target(path, "keras")
    if path.suffix in GRAPH_SUFFIXES:
        return Target(path, "graph")
    known = choices([".py", ".keras", *GRAPH_SUFFIXES])
    raise TargetError(
        f"{path}: cannot tell what this is by its name; simplace reads {known} and SavedModel directories"
    )


def _instead(path: Path) -> str:
    """Say what to give instead of a file that is not there: the most similar one beside it."""
    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    known = [name for name in beside if Path(name).suffix in (".py", ".keras", *GRAPH_SUFFIXES)]
    close = [name for name in known if Path(name).stem == path.name]
    close = close or difflib.get_close_matches(path.name, known, n=3, cutoff=0.8)
    if close:
        return f"did you mean {alternatives([str(path.parent / name) for name in sorted(close)])}?"
    return "give a script, a SavedModel directory or a graph file"


def place(target: str, settings: Settings | None = None) -> Result:
    """Place every program of a target; a script is run once under TensorFlow, and its log compared with.

    Raises a `SimplaceError` for whatever the user can mend.
    """
    settings = settings or Settings()
    parsed = parse_target(target)
    if parsed.kind == "script":
        _require_installed(target, settings)
        return _place_script(target, parsed, settings)
    return _place_file(target, parsed, settings)


def check(target: str, settings: Settings | None = None) -> Result:
    """Place every program of a target and let TensorFlow place it too, files included.

    TensorFlow's own partition graphs are compared with as well, which takes a run without Grappler.
    """
    settings = settings or Settings()
    parsed = parse_target(target)
    _require_installed(target, settings)
    if parsed.kind == "script":
        return _place_script(target, parsed, settings, partitions=True)
    if parsed.kind == "keras":
        raise TargetError(f"{target}: {_NO_GRAPH}")
    from simplace.oracle.oracle import observe_file  # here, so that reading a file does not wait for what runs children

    options = Options(time_limit=settings.time_limit, soft_placement=settings.soft_placement, partitions=True)
    settings.stage(f"asking TensorFlow about {parsed.path}")
    observed = observe_file(parsed.path, settings.machine, options)
    failure = failure_of(target, observed)
    if failure is not None:
        raise failure
    return _result(target, observed, settings)


def compare_with_log(result: Result, log: Sequence[LoggedNode]) -> Result:
    """Compare the placements with a log from elsewhere instead; each program with the lines of its own nodes."""
    programs = tuple(
        replace(placed, agreement=compare(placed.placement, own_lines(placed.placement, log)))
        for placed in result.programs
    )
    return replace(result, programs=programs)


def _place_script(target: str, parsed: Target, settings: Settings, *, partitions: bool = False) -> Result:
    from simplace.oracle.oracle import observe

    options = Options(
        max_calls=settings.max_calls,
        time_limit=settings.time_limit,
        function=parsed.function,
        soft_placement=settings.soft_placement,
        partitions=partitions,
    )
    settings.stage(f"running {parsed.path} once under TensorFlow ...")
    observed = observe(parsed.path, settings.arguments, settings.machine, options, settings.stdout)
    if not observed.programs:
        raise failure_of(target, observed) or ProgramError(_nothing_placed(target, parsed, observed))
    return _result(target, observed, settings)


def _place_file(target: str, parsed: Target, settings: Settings) -> Result:
    settings.stage(f"reading {parsed.path}")
    unchecked = _NO_GRAPH if parsed.kind == "keras" else f"simplace check {target} asks it"
    with paused_collector():
        version = settings.tensorflow or installed_version()
        return place_programs(target, _READERS[parsed.kind](parsed.path, version), settings, unchecked)


def place_programs(target: str, programs: Sequence[Program], settings: Settings, unchecked: str) -> Result:
    """Place programs that were read from somewhere; `unchecked` says why TensorFlow is not asked."""
    table = _table(KernelTable.shipped(settings.tensorflow or installed_version()), settings)
    devices = _devices_of(settings.machine)
    settings.stage("placing")
    with paused_collector():
        placed = tuple(
            _simulated(target, _with_devices(program, devices), devices, table, settings) for program in programs
        )
    return Result(target, table.version, table.name, devices, placed, unchecked=unchecked)


def _simulated(target: str, program: Program, devices: DeviceSet, table: KernelTable, settings: Settings) -> Placed:
    """Place a program; what is wrong with its graph is said with the file's name."""
    try:
        return Placed(simulate(program, devices, table, soft_placement=settings.soft_placement))
    except (TargetError, UnknownOpError) as error:
        raise type(error)(f"{target}: {error}", error.details) from error


def _result(target: str, observed: Observation, settings: Settings) -> Result:
    table = KernelTable.load(observed.registry) if observed.registry else KernelTable.shipped(observed.tensorflow)
    table = _table(table, settings)
    devices = seen_from_the_first(each.name for each in observed.devices)
    settings.stage("placing")
    placed = tuple(_placed(program, devices, table, settings) for program in observed.programs)
    failure = failure_of(target, observed)
    return Result(
        target,
        observed.tensorflow,
        table.name,
        devices,
        placed,
        observed.remarks,
        failure=failure,
        python=observed.python,
    )


def _placed(observed: ObservedProgram, devices: DeviceSet, table: KernelTable, settings: Settings) -> Placed:
    own = seen_from_the_first(each.name for each in observed.devices) if observed.devices else devices
    placement = simulate(observed.program, own, table, soft_placement=settings.soft_placement)
    return Placed(placement, compare(placement, observed.log, observed.refused), check_cuts(placement, observed.cuts))


def failure_of(target: str, observed: Observation) -> ProgramError | None:
    """Say how a program ended before its end, None where it did not."""
    failure = observed.failure
    if failure is None:
        return None
    first, _, rest = failure.text.partition("\n")
    if failure.how == "timed out":
        first += "; --timeout gives it more"
    if failure.how != "raised":
        return ProgramError(f"{target}: {first}", details=rest)
    return ProgramError(f"{target}: the program stopped with {failure.line}", details=failure.text)


def _nothing_placed(target: str, parsed: Target, observed: Observation) -> str:
    if parsed.function:
        told = [remark for remark in observed.remarks if remark.startswith(parsed.function)]
        return f"{target}: {' '.join(told) or f'the program called no tf.function of the name {parsed.function}'}"
    ran = f"it ran {observed.eager_ops} ops eagerly, one by one" if observed.eager_ops else "it ran no op"
    hint = " ".join(observed.remarks) or "decorate the function to look at with @tf.function and call it"
    return f"{target}: the script calls no tf.function and runs no session, so nothing can be placed ({ran}). {hint}"


def _require_installed(target: str, settings: Settings) -> None:
    """Refuse another version where TensorFlow itself runs: there is only the installed one."""
    installed = installed_version()
    if installed is None or not settings.tensorflow or is_release_of(installed, settings.tensorflow):
        return
    raise TargetError(
        f"{target}: the installed TensorFlow {installed} runs this, not {settings.tensorflow}; install that version "
        "instead, or give `simplace show` a graph file, which it places as any version does"
    )


def _table(table: KernelTable, settings: Settings) -> KernelTable:
    if not settings.kernels:
        return table
    from simplace.kernels.extra import load_extra

    return table.with_extra(load_extra(Path(settings.kernels)))


def _devices_of(machine: Machine) -> DeviceSet:
    if machine.tasks:
        return seen_from_the_first(name for task in machine.tasks for name in task.device_names)
    return local_devices([("CPU", machine.cpus), ("GPU", machine.logical_gpus)])


def _with_devices(program: Program, devices: DeviceSet) -> Program:
    """Fill in the device of arguments that a file leaves open: the device of the call."""
    if "" not in program.arg_devices:
        return program
    default = call_device(program.scope, devices, True).name
    return replace(program, arg_devices=tuple(name or default for name in program.arg_devices))


def _read_graph(path: Path, _: str | None) -> list[Program]:
    return [Program(path.stem, "graph", graph_def.read(path), soft_placement=False)]


def _read_saved_model(path: Path, _: str | None) -> list[Program]:
    from simplace.importers import saved_model

    return list(saved_model.read(path))


def _read_keras(path: Path, version: str | None) -> list[Program]:
    from simplace.importers import keras_file

    return list(keras_file.read(path, version))


_READERS: dict[str, Callable[[Path, str | None], list[Program]]] = {
    "graph": _read_graph,
    "saved_model": _read_saved_model,
    "keras": _read_keras,
}
