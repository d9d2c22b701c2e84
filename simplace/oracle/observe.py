"""Run a target under TensorFlow in a child process and parse its events."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from simplace.errors import ProgramError, TargetError
from simplace.graph import graph_def
from simplace.graph.constant_numbers import Numbers
from simplace.graph.dtypes import DataType
from simplace.graph.function_names import name_by_layers
from simplace.graph.node_def import Shape
from simplace.kernels.installed import installed_version
from simplace.machine.machine import Machine
from simplace.oracle import allocation_lines, plugin, protocol
from simplace.oracle.cache import find_file, keep_file
from simplace.oracle.caught_errors import settle_handlers
from simplace.oracle.eager_attrs import read_attrs
from simplace.oracle.launch import Child, Start, open_errors, start_as_chosen
from simplace.oracle.log_blocks import cut_log
from simplace.oracle.native_output import NativeOutput
from simplace.oracle.orphan import end_group
from simplace.oracle.protocol import Mode, Options, Request
from simplace.oracle.scratch import scratch_folder
from simplace.program.allocation_log import AllocationLog
from simplace.program.dataset_roles import FunctionMaker
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.observation import (
    EarlyEnd,
    LoggedNode,
    MadeBy,
    Observation,
    ObservedDevice,
    ObservedEagerOp,
    ObservedProgram,
    ObservedRefusal,
    Partitioning,
    PythonFact,
    Unreached,
    WholeLog,
    WhyUnreached,
)
from simplace.program.program import Caller, Feed, NodeNotes, ObservedRun, Program, SessionRun, read_resources

_HIDE_REAL_GPUS = "NoDevFiles"
_WITHOUT_CLUSTERS = "--tf_xla_clustering_fuel=0"  # XLA would fuse nodes between placement and partitioning
_TELL_FUNCTIONS = "process_function_library_runtime=1"  # which function is placed next, whoever calls it
_ALL_MEMORY = str(1 << 20)  # MB: more than a run takes
_POLL = 0.2  # seconds
_LEAST_ROOM = 1 << 14  # bytes
_LEFT = EarlyEnd("exited", "the program's process terminated early with exit status 0, as os._exit(0) does")
_NO_START = "the process that runs the program under TensorFlow did not start"
_FATAL = re.compile(r"F\d{4} |.*: F |terminate called|  what\(\):")


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """Record of the first call of a function: shapes that its graph leaves open, and integers that arguments are.

    `gives_sizes` tells that more shapes follow from these integers.
    """

    shapes: tuple[tuple[str, Shape], ...] = ()
    values: Mapping[int, Numbers] = field(default_factory=dict)
    gives_sizes: bool = False


def observe_script(
    script: str | Path,
    arguments: tuple[str, ...] = (),
    machine: Machine | None = None,
    options: Options | None = None,
    stdout: int | None = None,
    start: Start = start_as_chosen,
) -> Observation:
    """Run a script once under TensorFlow, on an emulated machine, and return what TensorFlow did.

    The script prints where this process prints, or to the file descriptor `stdout`; `start` is how its process comes
    to be (`Forks` is the quick way for many). A script that fails yields what was seen until then, with `failure` set.
    Raise `TargetError` if there is no such script, `ProgramError` if the child never got as far as the script.
    """
    if not Path(script).is_file():
        raise TargetError(f"{script}: no such file; give the path of a Python script")
    return _run_target("script", str(script), arguments, machine or Machine(), options or Options(), stdout, start)


def observe_file(path: str | Path, machine: Machine | None = None, options: Options | None = None) -> Observation:
    """Place a file by TensorFlow on an emulated machine: a serialized GraphDef, or the directory of a SavedModel."""
    if not Path(path).exists():
        raise TargetError(f"{path}: no such file or directory")
    mode: Mode = "saved_model" if Path(path).is_dir() else "graph"
    return _run_target(mode, str(path), (), machine or Machine(), options or Options(), None)


def _run_target(
    mode: Mode,
    target: str,
    arguments: tuple[str, ...],
    machine: Machine,
    options: Options,
    stdout: int | None,
    start: Start = start_as_chosen,
) -> Observation:
    version = _tensorflow_version()
    built = str(plugin.build_plugin(version)) if machine.has_gpus else ""
    made_for = f"kernels-{version}-{plugin.build_key()}"
    known = find_file(made_for, ".zip")
    with scratch_folder() as directory:
        wanted = str(known or Path(directory, "kernels.zip"))
        request = Request(mode, target, directory, arguments, machine, options, built, wanted)
        ended = _wait_for_child(request, stdout, start)
        _require_room(directory, ended)
        if known is None and Path(wanted).exists():
            request = replace(request, registry=str(keep_file(Path(wanted), made_for, ".zip")))
        return _read_answer(request, ended)


def _require_room(directory: str, ended: EarlyEnd | None) -> None:
    """Raise `ProgramError` where a run failed on a full disk, whatever other failure it has."""
    if ended is not None and shutil.disk_usage(directory).free < _LEAST_ROOM:
        where = Path(directory).parent
        raise ProgramError(
            f"{where}: the disk is full, so the run cannot be recorded; set TMPDIR to a folder with free space"
        )


def _note_given(environment: Mapping[str, str]) -> str:
    """Return, as JSON, what the user has set of the variables that a run has others of."""
    names = sorted(name for name in {*environment, *os.environ} if environment.get(name) != os.environ.get(name))
    return json.dumps({name: os.environ.get(name) for name in names})


def _wait_for_child(request: Request, stdout: int | None, start: Start) -> EarlyEnd | None:
    """Run the child; return how it failed, as far as its exit status shows."""
    request_file = Path(request.directory, "request.json")
    request_file.write_text(request.to_json(), encoding="utf-8")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": _HIDE_REAL_GPUS, "TF_CPP_MIN_LOG_LEVEL": "0"}
    environment["TF_CPP_LOG_THREAD_ID"] = "1"  # before TensorFlow 2.21 the log names threads on request only
    for noisy in ("TF_CPP_VMODULE", "TF_CPP_MAX_VLOG_LEVEL", "TF_GRAPH_CACHING", "TF_ENABLED_DEVICE_TYPES"):
        environment.pop(noisy, None)
    told = [_TELL_FUNCTIONS]
    if request.options.allocations:
        told.append(allocation_lines.VLOG)
        environment |= {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": _ALL_MEMORY}
    if request.options.partitions:
        told.append("graph_partition=2")
        environment |= {
            "TF_DUMP_GRAPH_PREFIX": str(Path(request.directory, protocol.PARTITIONS)),
            "TF_DUMP_GRAPH_FMT": "BIN",
            "TF_XLA_FLAGS": f"{environment.get('TF_XLA_FLAGS', '')} {_WITHOUT_CLUSTERS}".strip(),
        }
    environment["TF_CPP_VMODULE"] = ",".join(told)
    environment[protocol.GIVEN_VARIABLES] = _note_given(environment)
    child = start(request_file, environment, stdout)
    directory = Path(request.directory)
    try:
        with _open_output(stdout) as shown, open_errors() as errors:
            native = NativeOutput([(directory / protocol.OUT, shown), (directory / protocol.LOG, errors)])
            status = _wait_for_exit(child, request.options.timeout, native)
    except subprocess.TimeoutExpired:
        return EarlyEnd("timed out", f"the program ran longer than {request.options.timeout:g} s and was ended")
    finally:
        _end_child(child)
    if status < 0:
        name = _signal_name(-status)
        text = f"the program's process was ended by signal {name}\n{_last_words(request)}".rstrip()
        return EarlyEnd("crashed", text, status=128 - status)
    if status == 0:
        return None
    text = f"the program ended with exit status {status}\n{_last_words(request)}".rstrip()
    return EarlyEnd("exited", text, status=status)


def _open_output(stdout: int | None) -> AbstractContextManager[TextIO]:
    """Open a file descriptor for text, and leave it open in the end; None is this process's standard output."""
    return nullcontext(sys.stdout) if stdout is None else open(stdout, "w", encoding="utf-8", closefd=False)


def _signal_name(number: int) -> str:
    """Return the name of a signal, the number of a real-time one.

    >>> _signal_name(11), _signal_name(40)
    ('SIGSEGV', '40')
    """
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, str(number))


def _wait_for_exit(child: Child, limit: float | None, native: NativeOutput) -> int:
    """Wait for the child's exit status, forwarding what native code prints meanwhile."""
    end = None if limit is None else time.monotonic() + limit
    while True:
        try:
            return child.wait(_POLL if end is None else min(_POLL, max(0.0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            if end is not None and time.monotonic() >= end:
                raise
        finally:
            native.pass_on()


def _end_child(child: Child) -> None:
    """End the child and all that it started, if it still runs or was killed."""
    status = child.poll()
    if status is None or status < 0:
        end_group(child.pid)
        child.wait()


def _last_words(request: Request) -> str:
    """Return what TensorFlow logged as fatal."""
    log = Path(request.directory, protocol.LOG)
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(line for line in text.splitlines() if _FATAL.match(line))


def _read_answer(request: Request, ended: EarlyEnd | None) -> Observation:
    told = list(_add_devices(list(_read_events(Path(request.directory, protocol.EVENTS)))))
    events = settle_handlers(told, is_script=request.mode == "script")
    of_kind: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        of_kind.setdefault(event["kind"], []).append(event)
    failures = [
        EarlyEnd(event["how"], event["text"], event.get("line", ""), event.get("status", 0))
        for event in of_kind.get("failure", ())
    ]
    if ended is not None and ended.how == "timed out":
        skipped = [event["text"] for event in of_kind.get("not computed", ())]
        ended = replace(ended, text="; ".join([ended.text, *skipped[-1:]]))  # the last one tells of all
    failures.sort(key=lambda failure: failure.how != "internal")  # the program's own may be caused by ours
    if "started" not in of_kind:
        raise _not_started(failures[0] if failures else ended)
    failure = (
        failures[0] if failures else None if of_kind.get("ended") else ended or _LEFT
    )  # it may crash in its shutdown
    if failure is not None and request.mode != "script":
        failure = replace(failure, status=0)  # a file is no program
    notes = {
        event["function"]: _read_notes(event["nodes"], event.get("layers", {})) for event in of_kind.get("notes", ())
    }
    for event in of_kind.get("shapes", ()):
        notes[event["function"]] = _with_shapes(notes[event["function"]], event["nodes"])
    given = _list_given(of_kind)
    ends = of_kind.get("ended", ())
    feeds = _read_feeds(of_kind.get("fed", ()))
    raised: dict[str, set[str]] = {}
    for event in of_kind.get("raised", ()):
        raised.setdefault(event["function"], set()).add(event["code"])
    folder = Path(request.directory)
    makers = {
        event["function"]: FunctionMaker(event["called"], event["name"], event["is_users"])
        for event in of_kind.get("dataset function", ())
    }
    programs = [
        _read_program(event, notes, given, feeds, raised, makers, folder) for event in of_kind.get("program", ())
    ]
    for event in of_kind.get("run", ()):
        number, run = event["program"], ObservedRun(_run_of(event["run"]), event["at"])
        old = programs[number].program
        programs[number] = replace(programs[number], program=replace(old, runs=(*old.runs, run)))
    for event in of_kind.get("XLA refuses", ()):
        number = event["program"]
        refused = replace(programs[number].program, xla_error=event["error"])
        programs[number] = replace(programs[number], program=refused)
    for event in of_kind.get("XLA lowers", ()):
        number = event["program"]
        programs[number] = replace(programs[number], program=replace(programs[number].program, is_lowered=True))
    for event in of_kind.get("partition", ()):
        number = event["program"]
        partitionings = (
            *programs[number].partitionings,
            _read_partitioning(event, programs[number].program, folder),
        )
        programs[number] = replace(programs[number], partitionings=partitionings)
    return Observation(
        tensorflow=of_kind["started"][0]["tensorflow"],
        devices=tuple(_read_device(each) for event in of_kind.get("devices", ())[-1:] for each in event["devices"]),
        programs=tuple(programs),
        remarks=tuple(event["text"] for event in of_kind.get("remark", ())),
        registry=request.registry if Path(request.registry).exists() else "",
        failure=failure,
        eager_ops=ends[0]["eager_ops"] if ends else 0,
        eager=_eager_ops(of_kind),
        logged=_read_whole_log(Path(request.directory, protocol.LOG)),
        placed_again=tuple((event["function"], _read_nodes(event)) for event in of_kind.get("placed again", ())),
        python=tuple(PythonFact(event["fact"], event["at"], event["values"]) for event in of_kind.get("python", ())),
        unreached=tuple(_unreached(of_kind.get("definition", ()), request.options.function)),
        is_stopped=bool(ends and ends[0]["is_stopped"]),
        allocations=_read_allocations(Path(request.directory, protocol.LOG)) if request.options.allocations else None,
    )


def _unreached(events: Iterable[Mapping[str, Any]], narrow: str) -> Iterator[Unreached]:
    """List what was defined and not reached; `narrow` is the only function that is asked for, "" for all."""
    seen: dict[tuple[str, str], set[str]] = {}
    for event in events:
        seen.setdefault((event["name"], event["at"]), set()).add(event["what"])
    for (name, at), what in seen.items():
        if "reached" not in what and narrow in ("", name):
            yield Unreached(name, at, _why_unreached(what))


def _why_unreached(what: Container[str]) -> WhyUnreached:
    if "failed" in what:
        return "call failed"
    if "called" in what or "traced" in what:
        return "only traced"
    return "eager" if "eager" in what else "not called"


def _read_whole_log(path: Path) -> WholeLog:
    if not path.exists():
        return WholeLog()
    with path.open(encoding="utf-8", errors="replace") as lines:
        return cut_log(line.rstrip("\n") for line in lines)


def _read_allocations(path: Path) -> AllocationLog:
    if not path.exists():
        return AllocationLog()
    with path.open(encoding="utf-8", errors="replace") as lines:
        return allocation_lines.read_allocations(line.rstrip("\n") for line in lines)


def _not_started(why: EarlyEnd | None) -> ProgramError:
    if why is None:
        return ProgramError(f"{_NO_START}: it ended silently; run it with plain `python` first")
    if why.how == "timed out":
        return ProgramError(f"TensorFlow was still being imported: {why.text}; --timeout gives it more")
    if why.line:
        return ProgramError(f"{_NO_START}: {why.line}", details=why.text)
    return ProgramError(f"{_NO_START}: {why.text}")


def _read_events(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # a child that is killed may leave half a line
            yield json.loads(line)


def _add_devices(events: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield events, those of programs and eager ops with the devices recorded before them, unless unchanged."""
    told = last = [event["devices"] for event in events if event["kind"] == "devices"][-1:]
    for event in events:
        if event["kind"] == "devices":
            told = [event["devices"]]
        is_placed = event["kind"] in ("program", "eager") and not event.get("devices")
        yield {**event, "devices": told[0]} if is_placed and told != last else event


def _read_program(
    event: Mapping[str, Any],
    notes: Mapping[str, Mapping[str, NodeNotes]],
    given: Mapping[str, _FirstCall],
    feeds: Mapping[str, frozenset[Feed]],
    raised: Mapping[str, Set[str]],
    makers: Mapping[str, FunctionMaker],
    directory: Path,
) -> ObservedProgram:
    of_functions = {name: notes[name] for name in event["functions"] if name in notes}
    first = (*event["functions"], "")[0]
    of_call = given.get(event.get("graph_notes", first), _FirstCall())
    of_graph = {"": notes[event["graph_notes"]]} if "graph_notes" in event else {}
    program = Program(
        name=event["name"],
        role=event.get("role", ""),
        owner=event.get("owner", 0),
        is_internal=event.get("is_internal", False),
        at=event.get("at", ""),
        kind=event["program_kind"],
        graph=graph_def.parse_graph_def((directory / event["graph"]).read_bytes(), is_ours=True),
        function=event["function"],
        arg_devices=tuple(event["arg_devices"]),
        resources=read_resources(event.get("resources", ())),
        datasets=frozenset(event.get("datasets", ())),
        scope=event["scope"],
        soft_placement=event["soft_placement"],
        notes={**of_graph, **of_functions},
        kept_devices=event.get("kept_devices", {}),
        inlining=event.get("inlining", False),
        rewriter=bytes.fromhex(event.get("rewriter", "")),
        has_grappler=event.get("has_grappler", True),
        inlines_later=event.get("inlines_later", True),
        is_single_threaded=event.get("is_single_threaded", False),
        pruned_to=_run_of(event["pruned_to"]) if event.get("pruned_to") else None,
        caller=Caller(**{**event["caller"], "switched": (), "opened": (), "beside": ()}) if "caller" in event else None,
        given_shapes=of_call.shapes,
        is_sized_by_values=of_call.gives_sizes,
        given_values=of_call.values if event["program_kind"] == "function" else {},
        feeds=feeds.get(first, frozenset()),
        handlers=event.get("handlers", {}),
        raised=frozenset(raised.get(first, ())),
        copy_error=event.get("copy_error", ""),
        makers={name: makers[name] for name in event["functions"] if name in makers},
    )
    refused = ObservedRefusal(**event["refused"]) if event["refused"] else None
    devices = tuple(_read_device(each) for each in event.get("devices", ()))
    log = _read_nodes(event)
    return ObservedProgram(program, log, refused, devices, is_asked=event.get("asked", True))


def _read_nodes(event: Mapping[str, Any]) -> tuple[LoggedNode, ...]:
    return tuple(LoggedNode(*line) for line in event["log"])


def _read_feeds(events: Iterable[Mapping[str, Any]]) -> Mapping[str, frozenset[Feed]]:
    """Return what feeds each function, by the name of that."""
    found: dict[str, set[Feed]] = {}
    for event in events:
        found.setdefault(event["function"], set()).add(Feed(event["by"], event["is_batched"]))
    return {function: frozenset(feeds) for function, feeds in found.items()}


def _eager_ops(of_kind: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[ObservedEagerOp, ...]:
    """Join the kinds of eager ops with their counts, which a program that was cut off does not tell."""
    found = of_kind.get("eager", ())
    counted = of_kind.get("eager counts", ())
    counts = counted[0]["counts"] if counted else [[1, [], [], []] for _ in found]
    return tuple(_eager_op(event, *count) for event, count in zip(found, counts, strict=True))


def _eager_op(
    event: Mapping[str, Any], times: int, copied: Sequence[int], sizes: Sequence[int], made_by: Sequence[Sequence[int]]
) -> ObservedEagerOp:
    inputs = tuple(EagerInput(DataType(dtype), where, small) for dtype, where, small in event["inputs"])
    return ObservedEagerOp(
        EagerOp(
            event["op"],
            event["at"],
            event["scope"],
            event["soft_placement"],
            read_attrs(event["attrs"]),
            inputs,
            event["library"],
            event["handlers"],
        ),
        _read_nodes(event),
        event["device"],
        ObservedRefusal(**event["refused"]) if event["refused"] else None,
        times,
        tuple(copied),
        tuple(sizes),
        tuple(MadeBy(*each) for each in made_by),
        tuple(_read_device(each) for each in event.get("devices", ())),
    )


def _read_partitioning(event: Mapping[str, Any], program: Program, directory: Path) -> Partitioning:
    files = (directory / protocol.PARTITIONS / name for name in event["graphs"])
    is_pruned = program.function is None and program.pruned_to is None
    run = _run_of(event["run"]) if is_pruned else None
    graphs = (graph_def.read_graph_file(file, is_ours=True) for file in files)
    return Partitioning(tuple(graphs), run)  # before TensorFlow 2.18 they are text, whatever is asked for


def _run_of(fields: Mapping[str, Any]) -> SessionRun:
    lists = {name: tuple(map(_make_hashable, value)) for name, value in fields.items() if isinstance(value, list)}
    return SessionRun(**lists, by_rendezvous=fields["by_rendezvous"])


def _make_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _read_notes(nodes: Mapping[str, Any], layers: Mapping[str, str]) -> Mapping[str, NodeNotes]:
    notes = {
        name: NodeNotes(at, device_at, _read_shapes(shapes), *more)
        for name, (at, device_at, shapes, *more) in nodes.items()
    }
    if not layers:
        return notes
    return {name: replace(note, known_as=name_by_layers(name, layers)) for name, note in notes.items()}


def _with_shapes(notes: Mapping[str, NodeNotes], nodes: Mapping[str, Any]) -> Mapping[str, NodeNotes]:
    """Return the notes of a function with the shapes of its first call."""
    shapes = {name: _read_shapes(each) for name, each in nodes.items()}
    return {name: replace(note, shapes=shapes.get(name, note.shapes)) for name, note in notes.items()}


def _list_given(of_kind: Mapping[str, Sequence[Mapping[str, Any]]]) -> Mapping[str, _FirstCall]:
    """Return what the first calls of functions told, by the names of these."""
    shapes = {event["function"]: _read_given(event["nodes"]) for event in of_kind.get("given shapes", ())}
    values = {
        event["function"]: (_read_values(event["values"]), event["gives_sizes"])
        for event in of_kind.get("given values", ())
    }
    return {name: _FirstCall(shapes.get(name, ()), *values.get(name, ())) for name in {**shapes, **values}}


def _read_given(nodes: Mapping[str, Any]) -> tuple[tuple[str, Shape], ...]:
    """Return what was given, a component of an element as "node:1"."""
    named = [
        (name if slot == 0 else f"{name}:{slot}", shape)
        for name, each in nodes.items()
        for slot, shape in enumerate(_read_shapes(each))
    ]
    return tuple(named)


def _read_values(values: Mapping[str, Any]) -> Mapping[int, Numbers]:
    return {int(number): tuple(value) if isinstance(value, list) else value for number, value in values.items()}


def _read_shapes(shapes: Sequence[Any]) -> tuple[Shape, ...]:
    return tuple(None if dims is None else tuple(dims) for dims in shapes)


def _read_device(fields: Mapping[str, Any]) -> ObservedDevice:
    return ObservedDevice(**{**fields, "members": tuple(fields.get("members", ()))})


def _tensorflow_version() -> str:
    version = installed_version()
    if version is None:
        raise ProgramError("TensorFlow is not installed in this Python: pip install tensorflow")
    return version
