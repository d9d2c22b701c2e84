"""`tf.compat.v1.Session` under observation: every placement of its graph becomes a program."""

from __future__ import annotations

import os
from typing import Any

from tensorflow.python.client import pywrap_tf_session as tf_session
from tensorflow.python.client import session as session_module
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl, op_def_registry

from simplace.oracle.inside.calls import CallLimit, code_name
from simplace.oracle.inside.devices import Gpus, described, session_config
from simplace.oracle.inside.functions import Functions, notes_of, zeros
from simplace.oracle.inside.recorder import LogFile, Recorder
from simplace.oracle.inside.source_lines import SourceLines
from simplace.oracle.messages import Request
from simplace.oracle.placement_log import Placed

_NAME = "Session.run"


class SessionRuns:
    """Observe the sessions of a program."""

    def __init__(
        self,
        functions: Functions,
        recorder: Recorder,
        log: LogFile,
        limit: CallLimit,
        gpus: Gpus,
        lines: SourceLines,
        request: Request,
    ) -> None:
        self._functions = functions
        self._recorder = recorder
        self._log = log
        self._limit = limit
        self._gpus = gpus
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
            logged, session._simplace_memory = session_config(given, self._machine, self._plugin)
            if self._soft is not None:
                logged.allow_soft_placement = self._soft
            create(session, target, graph, logged)
            session._simplace_kept = {}

        def extend_observed(session: Any) -> None:
            self._extend(session, lambda: extend(session))

        def run_observed(session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
            return self._run(session, fetches, lambda: run(session, options, feeds, fetches, targets, metadata))

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

    def _run(self, session: Any, fetches: Any, call: Any) -> Any:
        start = self._log.end()
        result, error = self._attempt(call)
        if not self._record_new(session, start, None):  # only with place_pruned_graph is there a placement in a run
            self._limit.count(_NAME)
        if error is None:
            return result
        if not self._gpus.have_refused:
            raise error
        self._recorder.remark("Emulated GPUs compute nothing: session runs that needed them returned zeros.")
        return [_zeros(session.graph, fetch) for fetch in fetches]

    def _record_new(self, session: Any, start: int, refusal: Any) -> bool:
        placed = [line for line in self._log.since(start) if isinstance(line, Placed) and not line.verbose]
        if placed or refusal is not None:
            self._record(session, placed, refusal)
            self._limit.is_new(_NAME)
        return bool(placed)

    def _attempt(self, call: Any) -> tuple[Any, errors_impl.OpError | None]:
        with self._gpus.refusing():
            try:
                return call(), None
            except errors_impl.OpError as error:
                return None, error

    def _record(self, session: Any, placed: list[Placed], error: Any) -> None:
        graph = session.graph.as_graph_def()
        names = [function.signature.name for function in graph.library.function]
        self._placed += 1
        self._functions.write_notes(names)
        self._recorder.event("notes", function=f"graph {self._placed}", nodes=notes_of(session.graph, self._lines))
        shown = self._name if self._placed == 1 else f"{self._name} ({self._placed})"
        if session._config.graph_options.place_pruned_graph:
            self._recorder.remark(f"{shown} sets place_pruned_graph: TensorFlow places less than the graph shown here.")
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
            log=[[line.node.name, line.node.op, line.node.device] for line in placed],
            refused=None if error is None else self._recorder.refusal(code_name(error.error_code), str(error.message)),
            devices=described([device.name for device in session.list_devices()], session._simplace_memory),
        )
        if error is None:
            session._simplace_kept.update(_stateful(session.graph, placed))


def _stateful(graph: Any, placed: list[Placed]) -> dict[str, str]:
    """Give the devices of the graph's stateful ops: TensorFlow keeps them when it places the graph again."""
    ops = {op.name for op in graph.get_operations() if _is_stateful(op.type)}
    return {line.node.name: line.node.device for line in placed if line.node.name in ops}


def _is_stateful(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is not None and bool(definition.is_stateful)


def _zeros(graph: Any, fetch: Any) -> Any:
    tensor = graph.get_tensor_by_name(f"{tf_session.TF_OperationName(fetch.oper)}:{fetch.index}")
    return zeros(tensor.dtype.base_dtype, tensor.shape)
