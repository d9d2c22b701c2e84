"""Sessions computed on the CPU: beside each session of the program one that sees no GPU runs the same graph.

Where no device is a GPU, soft placement puts what asks for one on the CPU. In a cluster, whose GPUs every session sees,
and where GPUs exchange values or are called by name, the second session runs a copy of the graph with each node on the
CPU of its task. All state of the program (variables, iterators, queues) is that of the second session: the first one
only places and partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import TAKING_ELEMENTS, is_control_flow, is_write
from simplace.oracle.child.cut_sessions import make_callable
from simplace.oracle.child.element_shapes import TAKES
from simplace.oracle.child.graph_copy import copy_to_cpus, needs_copy
from simplace.oracle.child.partition_graphs import Run
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.session_datasets import list_needed, tensor_name
from simplace.oracle.child.tf_private import config_pb2
from simplace.oracle.child.tf_private import pywrap_tf_session as tf_session
from simplace.oracle.child.tf_private import session as session_module
from simplace.oracle.child.waiting_ops import has_put, list_called_types, list_run_ops, uses_container


@dataclass(frozen=True, slots=True)
class RunKind:
    """Record of what a run of a session does, which decides how often it is computed.

    `types` are those of the ops that it needs, without functions, `elements` names those that take an element from an
    iterator each time, whatever branches do. `is_step` tells that it takes an element from an
    iterator, a queue or a reader, and is no producer, which only hands on what it takes: others wait for as many
    elements as they need. `uses_container` tells that runs may wait for each other, by a queue for example.
    """

    types: frozenset[str]
    elements: tuple[str, ...]
    is_step: bool
    uses_container: bool


class CpuSessions:
    """The second sessions: made when first needed, and run in place of the program's."""

    def __init__(self) -> None:
        base = session_module.BaseSession
        self._create = find_original(base, "__init__")
        self._extend, self._close = find_original(base, "_extend_graph"), find_original(base, "close")
        self._run = find_original(base, "_call_tf_sessionrun")
        self._make_callable = find_original(base._Callable, "__init__")
        self._call_callable = find_original(base._Callable, "__call__")
        self._set_up = find_original(tf_session, "TF_SessionPRunSetup_wrapper")
        self._run_part = find_original(base, "_call_tf_sessionprun")
        self._turn = threading.RLock()

    def run(self, session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        """Run what `BaseSession._call_tf_sessionrun` is asked to."""
        second = self._second(session)
        own = _Translation(second.graph)
        run = options, own.feeds(feeds), own.tensors(fetches), own.ops(targets), metadata
        return self._run(second, *run)

    def list_types(self, session: Any, run: Run) -> frozenset[str]:
        """List the types of the ops that a run of a session needs where it is computed."""
        return frozenset(op.type for op in list_run_ops(self._second(session).graph, run))

    def make_callable(self, session: Any, options: Any) -> Any:
        """Return what `BaseSession._make_callable_from_options` returns."""
        given = config_pb2.CallableOptions()
        given.CopyFrom(options)
        for devices in (given.feed_devices, given.fetch_devices):  # which may be GPUs
            devices.clear()
        made = object.__new__(session_module.BaseSession._Callable)
        self._make_callable(made, self._second(session), given)
        return made

    def call(self, made: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what `make_callable` made."""
        return self._call_callable(made, *args, **kwargs)

    def set_up_partial_run(self, session: Any, feeds: Any, fetches: Any, targets: Any) -> Any:
        """Begin a partial run; return its handle."""
        second = self._second(session)
        own = _Translation(second.graph)
        return self._set_up(second._session, own.tensors(feeds), own.tensors(fetches), own.ops(targets))

    def prepare_run(self, session: Any, feeds: Any, fetches: Any, targets: Any) -> None:
        """Make a master place and partition what a run needs, and run nothing: it waits for a partial run's feeds."""
        self._set_up(session._session, list(feeds), fetches, targets)

    def run_part(self, session: Any, handle: Any, feeds: Any, fetches: Any) -> Any:
        """Continue a partial run."""
        second = self._second(session)
        own = _Translation(second.graph)
        return self._run_part(second, handle, own.feeds(feeds), own.tensors(fetches))

    def close(self, session: Any) -> None:
        """Close a session and the one beside it."""
        second = getattr(session, "_simplace_second", None)
        if second is not None:
            self._close(second)
        self._close(session)

    def _second(self, session: Any) -> Any:
        """Return the session beside `session`, with all of its graph; several threads may run the session."""
        with self._turn:
            second = getattr(session, "_simplace_second", None)
            if second is None:
                is_copied = session._simplace_remote or needs_copy(session.graph)
                target = session.sess_str if session._simplace_remote else ""
                second = self._make(session, target, tf.Graph() if is_copied else session.graph)
            if second.graph is not session.graph:
                copy_to_cpus(session.graph, second.graph, session._simplace_homes)
            self._extend(second)
        return second

    def _make(self, session: Any, target: str | bytes, graph: Any) -> Any:
        made = session._simplace_second = object.__new__(session_module.BaseSession)
        made._simplace_is_second = True
        made._session = None
        self._create(made, target, graph, _without_gpus(session))
        return made


class _Translation:
    """The tensors and ops of a run as those of the same names in a graph."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def tensors(self, outputs: Iterable[Any]) -> list[Any]:
        """Return tensors as a session takes them."""
        return [self._graph.get_tensor_by_name(tensor_name(output))._as_tf_output() for output in outputs]

    def feeds(self, feeds: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return values by the tensors that they are fed for."""
        return dict(zip(self.tensors(feeds), feeds.values(), strict=True))

    def ops(self, targets: Iterable[Any]) -> list[Any]:
        """Return ops as a session takes them."""
        return [self._graph.get_operation_by_name(tf_session.TF_OperationName(op))._c_op for op in targets]


def prepare_run(session: Any, feeds: Iterable[Any], fetches: Iterable[Any], targets: Iterable[Any]) -> None:
    """Make TensorFlow place and partition what a run of a session needs, and run nothing."""
    options = config_pb2.CallableOptions(
        feed=sorted(map(tensor_name, feeds)),
        fetch=sorted(map(tensor_name, fetches)),
        target=sorted(map(tf_session.TF_OperationName, targets)),
    )
    make_callable(session, options)


def describe_run(graph: Any, run: Run) -> RunKind:
    """Return what a run of a graph does."""
    ops = list_run_ops(graph, run)
    types = frozenset(op.type for op in ops)
    elements = sorted(op.name for op in ops if op.type == TAKES and not _may_be_dead(op))
    takes_element = any(each.startswith(TAKING_ELEMENTS) for each in types)
    all_types = types | list_called_types(graph, ops)
    is_step = takes_element and not _is_producer(graph, run, all_types)
    return RunKind(types, tuple(elements), is_step, uses_container(all_types))


def _may_be_dead(op: Any) -> bool:
    """Return whether it depends on a branch or a loop whether an op runs: what did not run cannot be fetched."""
    return any(is_control_flow(each.type) for each in list_needed([op]))


def _is_producer(graph: Any, run: Run, types: frozenset[str]) -> bool:
    """Return whether a run of ops of these types ends in puts alone, and writes no variable as a step of training does.

    What is fetched may wait for a put, as where `tf.cond` decides on it.
    """
    if not has_put(types) or any(map(is_write, types)):
        return False
    return all(_needs_put(graph, end) for end in _list_ends(run))


def _list_ends(run: Run) -> Iterator[Run]:
    """Yield for each fetch and target of a run one that has nothing else."""
    yield from ({**run, "fetches": [name], "targets": []} for name in run["fetches"])
    yield from ({**run, "fetches": [], "targets": [name]} for name in run["targets"])


def _needs_put(graph: Any, run: Run) -> bool:
    ops = list_run_ops(graph, run)
    return has_put(op.type for op in ops) or has_put(list_called_types(graph, ops))


def _without_gpus(session: Any) -> Any:
    """Return a configuration as the program has it, but without GPUs: what its Grappler prunes never runs."""
    made = tf.compat.v1.ConfigProto()
    made.CopyFrom(session._config)
    made.device_count["GPU"] = 0
    made.allow_soft_placement = True
    made.log_device_placement = False
    made.graph_options.optimizer_options.opt_level = session._simplace_level
    made.graph_options.rewrite_options.disable_meta_optimizer = session._simplace_is_unoptimized
    made.ClearField("gpu_options")
    if "pluggable_device_options" in made.DESCRIPTOR.fields_by_name:
        made.ClearField("pluggable_device_options")
    return made
