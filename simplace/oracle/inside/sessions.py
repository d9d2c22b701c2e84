"""`tf.compat.v1.Session` under observation: every placement of its graph becomes a program."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

from tensorflow.python.client import pywrap_tf_session as tf_session
from tensorflow.python.client import session as session_module
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl, op_def_registry

from simplace.oracle.inside.calls import CallLimit, code_name
from simplace.oracle.inside.clusters import Clusters
from simplace.oracle.inside.devices import Gpus, described, remote, session_config
from simplace.oracle.inside.functions import Functions, notes_of, zeros
from simplace.oracle.inside.partition_graphs import PartitionGraphs
from simplace.oracle.inside.recorder import LogFile, Recorder
from simplace.oracle.inside.source_lines import SourceLines
from simplace.oracle.messages import Request
from simplace.oracle.placement_log import Placed

_NAME = "Session.run"
_REFUSAL = re.compile(
    r"Cannot (assign a device for operation|colocate nodes|place the graph)|Nodes were connected by a reference"
    r"|No OpKernel was registered to support Op|Malformed device specification|Unable to find any devices"
)

Endpoints = tuple[list[str], list[str], list[str]]  # feeds, fetches, targets


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

        def extend_observed(session: Any) -> None:
            self._extend(session, lambda: extend(session))

        def run_observed(session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
            start = self._log.end()
            try:
                pruned_to = _endpoints(feeds, fetches, targets) if _prunes_first(session) else None
                call = functools.partial(run, session, options, feeds, fetches, targets, metadata)
                return self._run(session, fetches, call, pruned_to)
            finally:
                self._record_cut(session, start, feeds, fetches, targets)

        base.__init__ = create_logged
        base._extend_graph = extend_observed
        base._call_tf_sessionrun = run_observed
        for name in ("TF_SessionRunCallable", "TF_SessionPRun_wrapper"):
            setattr(tf_session, name, self._refusing(getattr(tf_session, name)))

    def _refusing(self, call: Any) -> Any:
        """Guard a way to run a session whose results can't be made up."""

        def guarded(*args: Any) -> Any:
            with self._gpus.refusing():
                return call(*args)

        return guarded

    def _extend(self, session: Any, call: Any) -> None:
        """Observe the placement of the whole graph, which TensorFlow does when a session is given new nodes."""
        start = self._log.end()
        _, error = self._attempt(call)
        self._record_new(session, start, error)
        if error is not None:
            raise error

    def _run(self, session: Any, fetches: Any, call: Any, pruned_to: Endpoints | None) -> Any:
        start = self._log.end()
        result, error = self._attempt(call)
        # Only with place_pruned_graph is there a placement in a run; a master does not know that option. Without it the
        # lines that come now are of other graphs: the functions of a dataset.
        refusal = error if pruned_to and _is_refusal(error) else None
        if not (pruned_to and self._record_new(session, start, refusal, pruned_to)):
            self._limit.count(_NAME)
        if error is None:
            return result
        if refusal is not None or not (self._gpus.have_refused or _lacks_state(session, error)):
            raise error
        session._simplace_refused = True
        self._recorder.remark("Emulated GPUs compute nothing: session runs that needed them returned zeros.")
        return [_zeros(session.graph, fetch) for fetch in fetches]

    def _record_new(self, session: Any, start: int, refusal: Any, pruned_to: Endpoints | None = None) -> bool:
        lines = self._log.since(start, every_thread=session._simplace_remote)  # a master has threads of its own
        placed = [line for line in lines if isinstance(line, Placed) and not line.verbose]
        if placed or refusal is not None:
            self._record(session, placed, refusal, pruned_to)
            self._limit.is_new(_NAME)
        return bool(placed)

    def _record_cut(self, session: Any, start: int, feeds: Any, fetches: Any, targets: Any) -> None:
        """Record the subgraphs of a run, which TensorFlow makes when it sees these feeds and fetches first."""
        if session._simplace_program >= 0:
            record = self._cuts.record_of_master if session._simplace_remote else self._cuts.record
            record(session._simplace_program, start, _endpoints(feeds, fetches, targets))

    def _attempt(self, call: Any) -> tuple[Any, errors_impl.OpError | None]:
        with self._gpus.refusing():
            try:
                return call(), None
            except errors_impl.OpError as error:
                return None, error

    def _record(self, session: Any, placed: list[Placed], error: Any, pruned_to: Endpoints | None) -> None:
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
            session._simplace_kept.update(_stateful(session.graph, placed))

    def _devices(self, session: Any) -> list[dict[str, str]]:
        names = [device.name for device in session.list_devices()]
        return remote(names, self._machine) if session._simplace_remote else described(names, session._simplace_memory)


def _stateful(graph: Any, placed: list[Placed]) -> dict[str, str]:
    """Give the devices of the graph's stateful ops: TensorFlow keeps them when it places the graph again."""
    ops = {op.name for op in graph.get_operations() if _is_stateful(op.type)}
    return {line.node.name: line.node.device for line in placed if line.node.name in ops}


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def _prunes_first(session: Any) -> bool:
    """Say whether TensorFlow prunes the graph to a run before it places it; a master does not know the option."""
    return bool(session._config.graph_options.place_pruned_graph) and not session._simplace_remote


def _endpoints(feeds: Any, fetches: Any, targets: Any) -> Endpoints:
    """Name what a run feeds, fetches and only runs, in the order that DirectSession sorts them to."""
    names = [tf_session.TF_OperationName(target) for target in targets]
    return sorted(map(_tensor_name, feeds)), sorted(map(_tensor_name, fetches)), sorted(names)


def _is_refusal(error: Any) -> bool:
    """Tell the refusal to place from what may go wrong in the same run later."""
    return error is not None and _REFUSAL.match(str(error.message)) is not None


def _lacks_state(session: Any, error: Any) -> bool:
    """Say whether a variable is missing that a run before this one would have set, had its GPU computed anything."""
    missing = (errors_impl.FailedPreconditionError, errors_impl.NotFoundError)
    return session._simplace_refused and isinstance(error, missing)


def _tensor_name(output: Any) -> str:
    return f"{tf_session.TF_OperationName(output.oper)}:{output.index}"


def _zeros(graph: Any, fetch: Any) -> Any:
    tensor = graph.get_tensor_by_name(_tensor_name(fetch))
    return zeros(tensor.dtype.base_dtype, tensor.shape)
