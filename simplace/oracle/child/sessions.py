"""`tf.compat.v1.Session` observed: every placement of its graph is recorded as a program."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np
import tensorflow as tf

from simplace.graph.input_columns import has_mixed_inputs
from simplace.graph.op_kinds import WHILES
from simplace.oracle.child.boundary import raise_as_theirs, wrap_foreign
from simplace.oracle.child.call_shapes import Shapes, infer_fed_graph, is_open
from simplace.oracle.child.cpu_functions import explain_lack, lacks_kernel
from simplace.oracle.child.cpu_sessions import CpuSessions, RunKind, describe_run, prepare_run
from simplace.oracle.child.cut_sessions import CutSessions
from simplace.oracle.child.devices import computes_nothing, describe_devices, describe_remote, session_config
from simplace.oracle.child.error_handlers import find_handlers
from simplace.oracle.child.failures import code_name
from simplace.oracle.child.functions import note_graph
from simplace.oracle.child.partition_graphs import Run
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import list_placed
from simplace.oracle.child.run_parts import RunParts
from simplace.oracle.child.session_datasets import SessionDatasets, tensor_name
from simplace.oracle.child.tensors import is_object, make_zeros
from simplace.oracle.child.tf_private import config_pb2, context, op_def_registry
from simplace.oracle.child.tf_private import pywrap_tf_session as tf_session
from simplace.oracle.child.tf_private import session as session_module
from simplace.oracle.child.waiting_ops import list_containers
from simplace.oracle.placement_log import PlacementLine

_NAME = "Session.run"
_SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"
_COLLECTIVES = ("CollectiveReduce", "CollectiveGather", "CollectiveBcast", "CollectiveAllToAll")
_REFUSAL = re.compile(
    r"Cannot (assign a device for operation|colocate nodes|place the graph)|Nodes were connected by a reference"
    r"|No OpKernel was registered to support Op|Malformed device specification|Unable to find any devices"
)

Call = Callable[[], Any]


class SessionRuns:
    """Observe the sessions of a program."""

    def __init__(self, parts: RunParts) -> None:
        request = parts.request
        self._functions = parts.functions
        self._recorder = parts.recorder
        self._log = parts.log
        self._limit = parts.limit
        self._partitionings = parts.partitionings
        self._clusters = parts.clusters
        self._lines = parts.lines
        self._reached = parts.reached
        self._machine = request.machine
        self._plugin = request.plugin
        self._soft = request.options.soft_placement
        self._kind = "session" if request.mode == "script" else "graph"
        self._name = _NAME if request.mode == "script" else os.path.basename(request.target)
        self._placed = 0
        self._all: WeakSet[Any] = WeakSet()
        self._emulate = bool(request.plugin) and request.mode == "script"
        self._cpu = CpuSessions()
        self._cut = CutSessions()
        self._datasets = SessionDatasets()
        self._traced: dict[int, Shapes] = {}  # the shapes of graphs that leave some open, by program
        self._notes_of: dict[int, str] = {}  # the name of a graph's notes, by program
        self._latest: dict[tuple[Any, ...], Any] = {}  # values by what was run
        self._turn = threading.RLock()  # of threads that place and prepare

    def watch(self) -> None:
        """Intercept all sessions from now on."""
        base = session_module.BaseSession
        patch_method(base, "__init__", self._log_placements)
        patch_method(base, "_extend_graph", self._observe_extension)
        patch_method(base, "_call_tf_sessionrun", self._observe_run)
        patch_method(base, "close", lambda _: lambda session: self._cpu.close(session))
        # TensorFlow prepares the one run of a callable when it is made, and a partial run when it is set up.
        patch_method(base._Callable, "__init__", self._observe_callable)
        patch_method(base._Callable, "__call__", self._observe_call)
        patch_method(tf_session, "TF_SessionPRunSetup_wrapper", self._observe_set_up)
        patch_method(base, "_call_tf_sessionprun", self._observe_partial_run)

    def _log_placements(self, create: Any) -> Any:
        """Create sessions that log placements on the emulated devices."""

        def create_logged(session: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
            session._session = None  # what its __del__ looks for, should there be no such cluster
            given = config if config is not None else wrap_foreign(getattr)(context.context(), "config")
            target = self._clusters.session_target(target)
            logged, session._simplace_gpus = session_config(given, self._machine, self._plugin)
            session._simplace_remote = bool(target)
            session._simplace_level = logged.graph_options.optimizer_options.opt_level
            if self._emulate:  # constants are folded where the run is computed, or a py_func would run twice
                logged.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
            if self._soft is not None:
                logged.allow_soft_placement = self._soft
            is_unoptimized = self._partitionings.without_grappler(logged, is_default=config is None)
            if self._is_cut_apart(session):
                logged.graph_options.rewrite_options.disable_meta_optimizer = is_unoptimized
            session._simplace_is_unoptimized = is_unoptimized
            create(session, target, graph, logged)
            session._simplace_kept = {}
            session._simplace_homes = {}  # the devices of nodes, by name
            session._simplace_refused = False
            session._simplace_starved = frozenset()  # names of queues and the like
            session._simplace_program = -1
            session._simplace_runs = set()  # the runs that were told, each as text
            session._simplace_kinds = {}  # of its runs, by what was run
            session._simplace_fed = {}  # the shapes that were fed, or taken from iterators, first, by node
            session._simplace_failed = {}  # by handle of a partial run
            session._simplace_prepared = set()
            session._simplace_iterators = set()  # the names of ops that made one
            session._simplace_epochs = 0
            self._all.add(session)
            session._simplace_definition = ("Session", self._lines.here())
            if self._kind == "session":
                self._reached.define(session._simplace_definition)

        return create_logged

    def _observe_extension(self, extend: Any) -> Any:
        def extend_observed(session: Any) -> None:
            if getattr(session, "_simplace_is_second", False):
                extend(session)
            else:
                self._extend(session, lambda: extend(session))

        return extend_observed

    def _observe_run(self, run: Any) -> Any:
        def run_observed(session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
            names = _describe_run(feeds, fetches, targets, by_rendezvous=session._simplace_remote)
            asked = options, feeds, fetches, targets, metadata
            self._note_fed(session, {tensor_name(output): np.shape(value) for output, value in feeds.items()})
            key = (*names["feeds"], "", *names["fetches"], "", *names["targets"])
            if not self._emulate:
                fetched = list(map(tensor_name, fetches))
                call = functools.partial(self._run, session, names, fetched, lambda: run(session, *asked))
                return self._run_often(session, key, names, call)
            if key not in session._simplace_prepared:
                prepare = self._cpu.prepare_run if session._simplace_remote else prepare_run
                self._prepare(session, names, lambda: prepare(session, feeds, fetches, targets))
                session._simplace_prepared.add(key)
                self._place_datasets(session, names, feeds)
            compute = functools.partial(self._run_on_cpu, session, key, asked)
            return self._compute(session, key, names, list(map(tensor_name, fetches)), compute)

        return run_observed

    def _run_on_cpu(self, session: Any, key: tuple[Any, ...], asked: tuple[Any, ...]) -> Any:
        """Run what the program asks for, and fetch what is taken from iterators too, if its shape is not known yet."""
        taken = self._list_open_elements(session, session._simplace_kinds[key])
        if not taken:
            return self._cpu.run(session, *asked)
        options, feeds, fetches, targets, metadata = asked
        more = [tensor._as_tf_output() for op in taken for tensor in op.outputs]
        result = self._cpu.run(session, options, feeds, [*fetches, *more], targets, metadata)
        shapes = iter([list(np.shape(value)) for value in result[len(fetches) :]])
        self._note_shapes(session, {op.name: [next(shapes) for _ in op.outputs] for op in taken})
        return result[: len(fetches)]

    def _list_open_elements(self, session: Any, kind: RunKind) -> list[Any]:
        """List the ops of a run that take elements of iterators whose shapes its graph leaves open."""
        traced = self._traced.get(session._simplace_program, {})
        names = (name for name in kind.elements if name not in session._simplace_fed)
        found = (session.graph.get_operation_by_name(name) for name in names if is_open({name: traced.get(name, ())}))
        return [op for op in found if not any(map(is_object, op.outputs))]

    def _observe_callable(self, make: Any) -> Any:
        def make_observed(made: Any, session: Any, options: Any) -> None:
            made._simplace_run = _run_of_callable(options, by_rendezvous=session._simplace_remote)
            session._simplace_kinds.pop((id(made),), None)  # of one that is gone
            _, made._simplace_failed = self._prepare(session, made._simplace_run, lambda: make(made, session, options))
            made._simplace_second = None
            if self._emulate:
                self._place_datasets(session, made._simplace_run)
                made._simplace_second = self._cpu.make_callable(session, options)

        return make_observed

    def _observe_call(self, call: Any) -> Any:
        def call_observed(made: Any, *args: Any, **kwargs: Any) -> Any:
            described = made._simplace_run
            fetches = described["fetches"]
            if made._simplace_second is not None:
                second = functools.partial(self._cpu.call, made._simplace_second, *args, **kwargs)
                return self._compute(made._session, (id(made),), described, fetches, second)
            if made._simplace_failed:
                return _make_fetched_zeros(made._session.graph, fetches)

            def run() -> Any:
                return self._result(made._session, fetches, *_attempt_call(lambda: call(made, *args, **kwargs)))

            return self._run_often(made._session, (id(made),), described, run)

        return call_observed

    def _observe_set_up(self, set_up: Any) -> Any:
        def set_up_observed(native: Any, feeds: Any, fetches: Any, targets: Any) -> Any:
            session = next(each for each in self._all if each._session is native)
            names = _describe_run(feeds, fetches, targets, by_rendezvous=True)
            handle, has_failed = self._prepare(session, names, lambda: set_up(native, feeds, fetches, targets))
            if self._emulate:
                return self._cpu.set_up_partial_run(session, feeds, fetches, targets)
            handle = handle or f"simplace {len(session._simplace_failed)}"
            session._simplace_failed[handle] = has_failed
            return handle

        return set_up_observed

    def _observe_partial_run(self, run: Any) -> Any:
        def run_observed(session: Any, handle: Any, feeds: Any, fetches: Any) -> Any:
            if self._emulate:
                return self._cpu.run_part(session, handle, feeds, fetches)
            names = list(map(tensor_name, fetches))
            if not session._simplace_failed[handle]:
                result, error = _attempt_call(lambda: run(session, handle, feeds, fetches))
                session._simplace_failed[handle] = error is not None
                return self._result(session, names, result, error)
            return _make_fetched_zeros(session.graph, names)

        return run_observed

    def _compute(self, session: Any, key: tuple[Any, ...], run: Run, fetches: list[str], call: Call) -> Any:
        """Compute a run on the CPU, or return the latest values of a similar run, or zeros if no CPU computes it.

        `fetches` are in the order of the values.
        """
        return self._run_often(session, key, run, lambda: self._compute_here(session, key, run, fetches, call))

    def _run_often(self, session: Any, key: tuple[Any, ...], run: Run, call: Call) -> Any:
        """Do a run, or return the values of the latest one that was alike, once there were enough of these."""
        known = (id(session), *key)
        kind = self._kind_of(session, key, run)
        iterator = (id(session), session._simplace_epochs) if kind.is_step else None
        is_allowed = self._limit.allows(_NAME, known, iterator, uses_container=kind.uses_container)
        if not is_allowed and known in self._latest:
            return self._latest[known]
        self._latest[known] = values = call()
        return values

    def _compute_here(self, session: Any, key: tuple[Any, ...], run: Run, fetches: list[str], call: Call) -> Any:
        if joining := self._list_collectives(session, key, run):
            self._recorder.remark(
                f"{_NAME} returned zeros for what needs {joining[0]}: one CPU cannot be all members of a collective."
            )
            return _make_fetched_zeros(session.graph, fetches)
        try:
            return call()
        except tf.errors.OpError as error:
            if not lacks_kernel(error):
                raise
            self._recorder.remark(f"{_NAME} returned zeros, since no CPU computes it: {explain_lack(error)}")
            return _make_fetched_zeros(session.graph, fetches)

    def _list_collectives(self, session: Any, key: tuple[Any, ...], run: Run) -> list[str]:
        """List the types of the collectives of a run that are no ops of one device on the CPU."""
        if not any(each.startswith(_COLLECTIVES) for each in session._simplace_kinds[key].types):
            return []
        needed = self._cpu.list_types(session, run)
        return sorted(each for each in needed if each.startswith(_COLLECTIVES))

    def _kind_of(self, session: Any, key: tuple[Any, ...], run: Run) -> RunKind:
        """Return what a run does; one that makes an iterator begins an epoch."""
        kind: RunKind | None = session._simplace_kinds.get(key)
        if kind is None:
            kind = session._simplace_kinds[key] = describe_run(session.graph, run)
        session._simplace_epochs += "MakeIterator" in kind.types
        return kind

    def _extend(self, session: Any, call: Any) -> None:
        """Observe the placement of the whole graph, which TensorFlow does when a session is given new nodes.

        Another thread's run waits until the program that it belongs to is recorded.
        """
        with self._turn:
            start = self._log.end()
            _, error = _attempt_call(call)
            self._record_new(session, start, error)
        if error is not None:
            raise error

    def _run(self, session: Any, run: Run, fetches: list[str], call: Call) -> Any:
        touched = list_containers(session.graph, run)
        if not touched.isdisjoint(session._simplace_starved):
            return self._skipped(session, run, fetches)
        start = self._log.end()
        result, error = _attempt_call(call)
        self._record_run(session, run, start, error)
        if computes_nothing(error):
            session._simplace_starved |= touched
        return self._result(session, fetches, result, error)

    def _skipped(self, session: Any, run: Run, fetches: list[str]) -> Any:
        """Make TensorFlow prepare a run that would wait forever for an earlier run's output, and return zeros."""
        if not session._simplace_remote:  # a master does not support callables
            options = config_pb2.CallableOptions(feed=run["feeds"], fetch=run["fetches"], target=run["targets"])
            session._make_callable_from_options(options)
        return _make_fetched_zeros(session.graph, fetches)

    def _prepare(self, session: Any, run: Run, call: Call) -> tuple[Any, bool]:
        """Observe what TensorFlow prepares for a later run; return also whether emulated GPUs made it fail."""
        with self._turn:  # nothing runs that could wait for another thread
            start = self._log.end()
            made, error = _attempt_call(call)
            self._record_run(session, run, start, error)
        self._result(session, [], made, error)
        return made, error is not None

    def _place_datasets(self, session: Any, run: Run, feeds: Any = None) -> None:
        if session._simplace_remote:
            return

        def compute(given: Any, fetches: Any) -> Any:
            return self._cpu.run(session, None, given, fetches, [], None)

        names = [*run["fetches"], *run["targets"]]
        with self._turn:
            self._datasets.place(session, names, session._simplace_homes, feeds or {}, compute)

    def _record_run(self, session: Any, run: Run, start: int, error: Any) -> None:
        """Record what TensorFlow placed and partitioned in a run.

        Only with place_pruned_graph is there a placement in a run; a master does not know that option. Without it the
        lines that come now are of other graphs: the functions of a dataset.
        """
        refusal = error if _prunes_first(session) and _is_refusal(error) else None
        if _prunes_first(session):
            self._record_new(session, start, refusal, run)
        if session._simplace_program >= 0:
            is_new = self._tell_run(session, run)
            if self._is_cut_apart(session):
                start = self._log.end()
                if is_new:
                    _attempt_call(lambda: self._cut.prepare(session, run))  # the run itself has told what fails
            record = self._partitionings.record_of_master if session._simplace_remote else self._partitionings.record
            record(session._simplace_program, start, run)

    def _is_cut_apart(self, session: Any) -> bool:
        """Return whether a session runs as the program has it, and another one partitions what it runs."""
        is_of_program = self._kind == "session" and not session._simplace_remote
        return is_of_program and self._partitionings.wanted and not self._plugin

    def _note_fed(self, session: Any, fed: dict[str, tuple[int, ...]]) -> None:
        """Write the shapes of a graph again where something is fed for the first time whose shape it leaves open."""
        traced = self._traced.get(session._simplace_program, {})
        nodes = {name.removesuffix(":0"): shape for name, shape in fed.items() if name.endswith(":0")}
        new = {name: [list(shape)] for name, shape in nodes.items() if is_open({name: traced.get(name, ())[:1]})}
        if not new.keys() <= session._simplace_fed.keys():
            self._note_shapes(session, new)

    def _note_shapes(self, session: Any, new: dict[str, list[list[int]]]) -> None:
        """Write the shapes of a graph again with those of more nodes, by name, as they came in a run."""
        traced = self._traced.get(session._simplace_program, {})
        session._simplace_fed = {**new, **session._simplace_fed}
        shapes = infer_fed_graph(session.graph.as_graph_def(), session._simplace_fed, traced)
        notes = self._notes_of[session._simplace_program]
        self._recorder.event("shapes", function=notes, nodes=shapes)
        self._recorder.event("given shapes", function=notes, nodes=session._simplace_fed)

    def _tell_run(self, session: Any, run: Run) -> bool:
        """Record a run of a placed graph, once for all that feed and fetch the same; return whether it is the first."""
        key = (session._simplace_program, str(run))
        if key in session._simplace_runs:
            return False
        session._simplace_runs.add(key)
        self._recorder.event("run", program=session._simplace_program, run=run, at=self._lines.of_frames())
        return True

    def _result(self, session: Any, fetches: list[str], result: Any, error: Any) -> Any:
        """Return the values of a run, zeros where it failed because of emulated GPUs."""
        if error is None:
            return result
        is_refusal = _prunes_first(session) and _is_refusal(error)
        if is_refusal or not (computes_nothing(error) or _lacks_state(session, error)):
            raise error
        session._simplace_refused = True
        self._recorder.remark("Emulated GPUs compute nothing: session runs that needed them returned zeros.")
        return _make_fetched_zeros(session.graph, fetches)

    def _record_new(self, session: Any, start: int, refusal: Any, pruned_to: Run | None = None) -> None:
        lines = self._log.since(start, every_thread=session._simplace_remote)  # a master has threads of its own
        placed = [line for line in lines if isinstance(line, PlacementLine) and not line.verbose]
        session._simplace_homes.update((line.node.name, line.node.device) for line in placed)
        if placed or refusal is not None:
            self._record(session, placed, refusal, pruned_to)
            self._limit.count_graph(_NAME, session._simplace_definition, len(placed))

    def _record(self, session: Any, placed: list[PlacementLine], error: Any, pruned_to: Run | None) -> None:
        graph = session.graph.as_graph_def()
        _write_inputs_as_made(graph, session.graph)
        names = [function.signature.name for function in graph.library.function]
        self._placed += 1
        self._reached.reach(session._simplace_definition)
        self._reached.reach_functions(names)
        self._functions.write_notes(names)
        notes = note_graph(session.graph, self._lines)
        self._recorder.event("notes", function=f"graph {self._placed}", nodes=notes)
        shown = self._name if self._placed == 1 else f"{self._name} ({self._placed})"
        session._simplace_program = self._recorder.program(
            graph.SerializeToString(),
            name=shown,
            program_kind=self._kind,
            function=None,
            arg_devices=[],
            scope="",
            soft_placement=session._config.allow_soft_placement,
            functions=names,
            graph_notes=f"graph {self._placed}",
            kept_devices=dict(session._simplace_kept),
            inlining=session._config.graph_options.optimizer_options.do_function_inlining,
            is_single_threaded=session._config.experimental.executor_type == _SINGLE_THREADED,
            pruned_to=pruned_to,
            log=list_placed(placed),
            refused=None if error is None else self._recorder.refusal(code_name(error.error_code), str(error.message)),
            devices=self._devices(session),
            handlers=find_handlers(self._lines),
            **self._partitionings.describe_grappler(session),
        )
        session._simplace_fed = {}
        shapes = {node: note[2] for node, note in notes.items()}
        self._traced[session._simplace_program] = shapes if is_open(shapes) else {}
        self._notes_of[session._simplace_program] = f"graph {self._placed}"
        if error is None:
            session._simplace_kept.update(_list_stateful(placed))

    def _devices(self, session: Any) -> list[dict[str, Any]]:
        names = [device.name for device in session.list_devices()]
        return (
            describe_remote(names, self._machine)
            if session._simplace_remote
            else describe_devices(names, session._simplace_gpus, self._machine)
        )


def _attempt_call(call: Call) -> tuple[Any, tf.errors.OpError | None]:
    try:
        return call(), None
    except tf.errors.OpError as error:
        return None, error


def _list_stateful(placed: list[PlacementLine]) -> dict[str, str]:
    """Return the devices of stateful nodes, fed or fetched ones included: TensorFlow keeps them in later placements."""
    return {line.node.name: line.node.device for line in placed if _is_stateful(line.node.op)}


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def _prunes_first(session: Any) -> bool:
    """Return whether TensorFlow prunes the graph to a run before it places it; a master ignores the option."""
    return bool(session._config.graph_options.place_pruned_graph) and not session._simplace_remote


def _describe_run(feeds: Any, fetches: Any, targets: Any, *, by_rendezvous: bool) -> Run:
    """Return what a run feeds, fetches and only runs, in the order that DirectSession sorts them to."""
    return {
        "feeds": sorted(map(tensor_name, feeds)),
        "fetches": sorted(map(tensor_name, fetches)),
        "targets": sorted(tf_session.TF_OperationName(target) for target in targets),
        "by_rendezvous": by_rendezvous,
    }


def _run_of_callable(options: Any, *, by_rendezvous: bool) -> Run:
    """Return the run that a callable's options describe, in their own order."""
    return {
        "feeds": list(map(_with_slot, options.feed)),
        "fetches": list(map(_with_slot, options.fetch)),
        "targets": list(options.target),
        "by_rendezvous": by_rendezvous,
        "feed_devices": [[_with_slot(name), device] for name, device in options.feed_devices.items()],
        "fetch_devices": [[_with_slot(name), device] for name, device in options.fetch_devices.items()],
        "connections": [[_with_slot(one.from_tensor), _with_slot(one.to_tensor)] for one in options.tensor_connection],
    }


def _with_slot(tensor: str) -> str:
    return tensor if ":" in tensor else f"{tensor}:0"


def _is_refusal(error: Any) -> bool:
    """Return whether an error is the refusal to place, and not a failure of the run itself."""
    return error is not None and _REFUSAL.match(str(error.message)) is not None


def _lacks_state(session: Any, error: Any) -> bool:
    """Return whether a variable is uninitialized only because an emulated GPU computed nothing in an earlier run."""
    missing = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError)
    return session._simplace_refused and isinstance(error, missing)


def _write_inputs_as_made(definition: Any, graph: Any) -> None:
    """Write the inputs of loops in the order that a session is given, which a graph's GraphDef puts right.

    A gradient adds inputs to its loop after the control inputs (AddWhileInputHack): then a session refuses the graph.
    """
    for node in definition.node:
        if node.op in WHILES:
            made = graph.get_operation_by_name(node.name).node_def.input
            if has_mixed_inputs(made):
                del node.input[:]
                node.input.extend(made)


def _make_fetched_zeros(graph: Any, fetches: list[str]) -> list[Any]:
    """Return zeros as a session returns values: arrays, but plain numbers and strings where there is no dimension.

    An unknown number of strings becomes none: such lists report problems, such as uninitialized variables. Raise what a
    session does for a tensor that has no array, such as a variant.
    """
    tensors = [graph.get_tensor_by_name(name) for name in fetches]
    for dtype in (tensor.dtype.base_dtype for tensor in tensors):
        if dtype == tf.variant:
            message = f"Tensorflow type {dtype.as_datatype_enum} not convertible to numpy dtype."
            raise_as_theirs(tf.errors.InternalError(None, None, message))
    return [_shape_as_fetched(make_zeros(tensor.dtype.base_dtype, tensor.shape), tensor) for tensor in tensors]


def _shape_as_fetched(value: Any, tensor: Any) -> Any:
    if not value.ndim:
        return value[()]
    is_report = tensor.dtype.base_dtype == tf.string and tensor.shape.as_list()[0] is None
    return value[:0] if is_report else value
