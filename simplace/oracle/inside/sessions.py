"""`tf.compat.v1.Session` under observation: every placement of its graph becomes a program."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from weakref import WeakSet

from tensorflow.python.client import pywrap_tf_session as tf_session
from tensorflow.python.client import session as session_module
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl, op_def_registry

from simplace.oracle.inside.calls import CallLimit, code_name
from simplace.oracle.inside.clusters import Clusters
from simplace.oracle.inside.devices import Gpus, described, remote, session_config
from simplace.oracle.inside.functions import Functions, notes_of, zeros
from simplace.oracle.inside.partition_graphs import PartitionGraphs, Run
from simplace.oracle.inside.recorder import LogFile, Recorder
from simplace.oracle.inside.source_lines import SourceLines
from simplace.oracle.messages import Request
from simplace.oracle.placement_log import Placed

_NAME = "Session.run"
_REFUSAL = re.compile(
    r"Cannot (assign a device for operation|colocate nodes|place the graph)|Nodes were connected by a reference"
    r"|No OpKernel was registered to support Op|Malformed device specification|Unable to find any devices"
)

Call = Callable[[], Any]


class _PartialRun:
    """Follow a partial run: its GPUs are to refuse from its set-up, which begins to run the graph, to its end."""

    def __init__(self, gpus: Gpus, fetches: list[str]) -> None:
        self.has_failed = True  # as long as it is not set up
        self._fetches = set(fetches)
        self._refusing = ExitStack()
        self._refusing.enter_context(gpus.refusing())

    def fetched(self, names: list[str]) -> None:
        """Note what was fetched; at the last one the run is over."""
        self._fetches -= set(names)
        if not self._fetches:
            self.end()

    def end(self) -> None:
        """Let the GPUs work again."""
        self._refusing.close()


class SessionRuns:
    """Observe the sessions of a program."""

    def __init__(
        self,
        functions: Functions,
        recorder: Recorder,
        log: LogFile,
        limit: CallLimit,
        gpus: Gpus,
        cuts: PartitionGraphs,
        clusters: Clusters,
        lines: SourceLines,
        request: Request,
    ) -> None:
        self._functions = functions
        self._recorder = recorder
        self._log = log
        self._limit = limit
        self._gpus = gpus
        self._cuts = cuts
        self._clusters = clusters
        self._lines = lines
        self._machine = request.machine
        self._plugin = request.plugin
        self._soft = request.options.soft_placement
        self._kind = "session" if request.mode == "script" else "graph"
        self._name = _NAME if request.mode == "script" else os.path.basename(request.target)
        self._placed = 0
        self._all: WeakSet[Any] = WeakSet()

    def watch(self) -> None:
        """Take all sessions from now on."""
        base = session_module.BaseSession
        create, extend, run = base.__init__, base._extend_graph, base._call_tf_sessionrun

        def create_logged(session: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
            given = config if config is not None else context.context().config
            session._session = None  # what its __del__ looks for, should there be no such cluster
            target = self._clusters.session_target(target)
            logged, session._simplace_memory = session_config(given, self._machine, self._plugin)
            session._simplace_remote = bool(target)
            if self._soft is not None:
                logged.allow_soft_placement = self._soft
            self._cuts.without_grappler(logged)
            create(session, target, graph, logged)
            session._simplace_kept = {}
            session._simplace_refused = False
            session._simplace_program = -1
            session._simplace_partial = {}
            self._all.add(session)

        def extend_observed(session: Any) -> None:
            self._extend(session, lambda: extend(session))

        def run_observed(session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
            names = _endpoints(feeds, fetches, targets, by_rendezvous=session._simplace_remote)
            call = functools.partial(run, session, options, feeds, fetches, targets, metadata)
            return self._run(session, names, list(map(_tensor_name, fetches)), call)

        base.__init__ = create_logged
        base._extend_graph = extend_observed
        base._call_tf_sessionrun = run_observed
        self._watch_callables(base._Callable)
        self._watch_partial_runs(base)

    def _watch_callables(self, base: Any) -> None:
        """Take what `_make_callable_from_options` makes: TensorFlow prepares the one run when it makes it."""
        make, call = base.__init__, base.__call__

        def make_observed(made: Any, session: Any, options: Any) -> None:
            made._simplace_run = _run_of_callable(options, by_rendezvous=session._simplace_remote)
            _, made._simplace_failed = self._prepare(session, made._simplace_run, lambda: make(made, session, options))

        def call_observed(made: Any, *args: Any, **kwargs: Any) -> Any:
            self._limit.count(_NAME)
            fetches = made._simplace_run["fetches"]
            if made._simplace_failed:
                return _zeros(made._session.graph, fetches)
            return self._completed(made._session, fetches, lambda: call(made, *args, **kwargs))

        base.__init__ = make_observed
        base.__call__ = call_observed

    def _watch_partial_runs(self, base: Any) -> None:
        """Take partial runs: TensorFlow prepares one, and begins with it, when it is set up."""
        set_up, run = tf_session.TF_SessionPRunSetup_wrapper, base._call_tf_sessionprun

        def set_up_observed(native: Any, feeds: Any, fetches: Any, targets: Any) -> Any:
            session = next(each for each in self._all if each._session is native)
            names = _endpoints(feeds, fetches, targets, by_rendezvous=True)
            partial = _PartialRun(self._gpus, names["fetches"])
            try:
                handle, partial.has_failed = self._prepare(
                    session, names, lambda: set_up(native, feeds, fetches, targets)
                )
            finally:
                if partial.has_failed:
                    partial.end()
            handle = handle or f"simplace {len(session._simplace_partial)}"
            session._simplace_partial[handle] = partial
            return handle

        def run_observed(session: Any, handle: Any, feeds: Any, fetches: Any) -> Any:
            partial, names = session._simplace_partial[handle], list(map(_tensor_name, fetches))
            self._limit.count(_NAME)
            if partial.has_failed:
                return _zeros(session.graph, names)
            try:
                return self._completed(session, names, lambda: run(session, handle, feeds, fetches), partial)
            finally:
                partial.fetched(names)

        tf_session.TF_SessionPRunSetup_wrapper = set_up_observed
        base._call_tf_sessionprun = run_observed

    def _extend(self, session: Any, call: Any) -> None:
        """Observe the placement of the whole graph, which TensorFlow does when a session is given new nodes."""
        start = self._log.end()
        _, error = self._attempt(call)
        self._record_new(session, start, error)
        if error is not None:
            raise error

    def _run(self, session: Any, run: Run, fetches: list[str], call: Call) -> Any:
        start = self._log.end()
        result, error = self._attempt(call)
        has_refused = self._gpus.have_refused
        if not self._record_run(session, run, start, error):
            self._limit.count(_NAME)
        return self._result(session, fetches, result, error, has_refused)

    def _prepare(self, session: Any, run: Run, call: Call) -> tuple[Any, bool]:
        """Observe what TensorFlow does before a run that comes later; say also if emulated GPUs made it fail."""
        start = self._log.end()
        made, error = self._attempt(call)
        has_refused = self._gpus.have_refused
        self._record_run(session, run, start, error)
        if error is not None and not has_refused:
            raise error
        self._result(session, [], made, error, has_refused)
        return made, error is not None

    def _completed(self, session: Any, fetches: list[str], call: Call, partial: _PartialRun | None = None) -> Any:
        """Run what was prepared; the GPUs of a partial run may have refused before this."""
        has_refused = partial is not None and self._gpus.have_refused
        result, error = self._attempt(call)
        if partial is not None and error is not None:
            partial.has_failed = True
        return self._result(session, fetches, result, error, has_refused or self._gpus.have_refused)

    def _record_run(self, session: Any, run: Run, start: int, error: Any) -> bool:
        """Record what a run had TensorFlow place and cut; say whether it placed something.

        Only with place_pruned_graph is there a placement in a run; a master does not know that option. Without it the
        lines that come now are of other graphs: the functions of a dataset.
        """
        refusal = error if _prunes_first(session) and _is_refusal(error) else None
        has_placed = _prunes_first(session) and self._record_new(session, start, refusal, run)
        if session._simplace_program >= 0:
            record = self._cuts.record_of_master if session._simplace_remote else self._cuts.record
            record(session._simplace_program, start, run)
        return has_placed

    def _result(self, session: Any, fetches: list[str], result: Any, error: Any, has_refused: bool) -> Any:
        """Hand back what a run gave, zeros where an emulated GPU is why it failed."""
        if error is None:
            return result
        is_refusal = _prunes_first(session) and _is_refusal(error)
        if is_refusal or not (has_refused or _lacks_state(session, error)):
            raise error
        session._simplace_refused = True
        self._recorder.remark("Emulated GPUs compute nothing: session runs that needed them returned zeros.")
        return _zeros(session.graph, fetches)

    def _record_new(self, session: Any, start: int, refusal: Any, pruned_to: Run | None = None) -> bool:
        lines = self._log.since(start, every_thread=session._simplace_remote)  # a master has threads of its own
        placed = [line for line in lines if isinstance(line, Placed) and not line.verbose]
        if placed or refusal is not None:
            self._record(session, placed, refusal, pruned_to)
            self._limit.is_new(_NAME)
        return bool(placed)

    def _attempt(self, call: Any) -> tuple[Any, errors_impl.OpError | None]:
        with self._gpus.refusing():
            try:
                return call(), None
            except errors_impl.OpError as error:
                return None, error

    def _record(self, session: Any, placed: list[Placed], error: Any, pruned_to: Run | None) -> None:
        graph = session.graph.as_graph_def()
        names = [function.signature.name for function in graph.library.function]
        self._placed += 1
        self._functions.write_notes(names)
        self._recorder.event("notes", function=f"graph {self._placed}", nodes=notes_of(session.graph, self._lines))
        shown = self._name if self._placed == 1 else f"{self._name} ({self._placed})"
        self._recorder.program(
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
            pruned_to=pruned_to,
            log=[[line.node.name, line.node.op, line.node.device] for line in placed],
            refused=None if error is None else self._recorder.refusal(code_name(error.error_code), str(error.message)),
            devices=self._devices(session),
        )
        session._simplace_program = self._recorder.programs - 1
        if error is None:
            session._simplace_kept.update(_stateful(placed))

    def _devices(self, session: Any) -> list[dict[str, str]]:
        names = [device.name for device in session.list_devices()]
        return remote(names, self._machine) if session._simplace_remote else described(names, session._simplace_memory)


def _stateful(placed: list[Placed]) -> dict[str, str]:
    """Give the devices of stateful nodes, those fed or fetched included: TensorFlow keeps them for later placements."""
    return {line.node.name: line.node.device for line in placed if _is_stateful(line.node.op)}


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def _prunes_first(session: Any) -> bool:
    """Say whether TensorFlow prunes the graph to a run before it places it; a master does not know the option."""
    return bool(session._config.graph_options.place_pruned_graph) and not session._simplace_remote


def _endpoints(feeds: Any, fetches: Any, targets: Any, *, by_rendezvous: bool) -> Run:
    """Name what a run feeds, fetches and only runs, in the order that DirectSession sorts them to."""
    return {
        "feeds": sorted(map(_tensor_name, feeds)),
        "fetches": sorted(map(_tensor_name, fetches)),
        "targets": sorted(tf_session.TF_OperationName(target) for target in targets),
        "by_rendezvous": by_rendezvous,
    }


def _run_of_callable(options: Any, *, by_rendezvous: bool) -> Run:
    """Describe the run that a callable's options ask for, in their own order."""
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
    """Tell the refusal to place from what may go wrong in the same run later."""
    return error is not None and _REFUSAL.match(str(error.message)) is not None


def _lacks_state(session: Any, error: Any) -> bool:
    """Say whether a variable is missing that a run before this one would have set, had its GPU computed anything."""
    missing = (errors_impl.FailedPreconditionError, errors_impl.NotFoundError)
    return session._simplace_refused and isinstance(error, missing)


def _tensor_name(output: Any) -> str:
    return f"{tf_session.TF_OperationName(output.oper)}:{output.index}"


def _zeros(graph: Any, fetches: list[str]) -> list[Any]:
    tensors = [graph.get_tensor_by_name(name) for name in fetches]
    return [zeros(tensor.dtype.base_dtype, tensor.shape) for tensor in tensors]
