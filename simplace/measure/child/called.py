"""The functions that a program calls, each with the inputs of its first call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.oracle.child import script
from simplace.oracle.child.patches import patch_method, restore_method
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import describe_variable, make_zeros
from simplace.oracle.child.tf_private import concrete_function, context, server_lib, session

_CALLS = 10  # of one function since the last new one: nothing new is to be expected


@dataclass(frozen=True, slots=True)
class Element:
    """Record of what an iterator yielded, in the place of the iterator."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """Record of a variable's value, in the place of its handle."""

    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """Record of a function's graph with a value for each of its inputs; None for what cannot be passed."""

    name: str
    graph: Any
    values: tuple[Any, ...]


class CannotRunError(Exception):
    """Report why something cannot be run alone."""


class ProgramEndedError(Exception):
    """Report how a program ended early: a record as `script.failure_of` returns it."""

    def __init__(self, failure: dict[str, Any]) -> None:
        super().__init__(failure["text"])
        self.failure = failure


class _Enough(BaseException):
    """End the program: the requested function has been called."""


class _Clustered(BaseException):
    """End the program: it would wait for other tasks of its cluster."""


class _Watcher:
    def __init__(self, function: str) -> None:
        self.function = function
        self.calls: dict[int, Call] = {}
        self.runs_sessions = False
        self._since_new: dict[int, int] = {}

    def saw(self, function: Any, inputs: list[Any]) -> None:
        key = id(function)
        if key not in self.calls:
            name = shown_name(function.name.decode() if isinstance(function.name, bytes) else function.name)
            if self.function and name.split(" ")[0] != self.function:
                return
            values = tuple(_take_value(tensor, function.graph, i) for i, tensor in enumerate(inputs))
            self.calls[key] = Call(name, function.graph, values)
            self._since_new.clear()
            if self.function:
                raise _Enough
        self._since_new[key] = self._since_new.get(key, 0) + 1
        if self._since_new[key] >= _CALLS:
            raise _Enough


def find_script_call(path: str, arguments: list[str], function: str) -> tuple[Call | None, list[str]]:
    """Run a script; return the call of `function`, else of the function with the largest graph, and remarks.

    The script is ended where nothing new is to come; None where it calls no such function. Raise `CannotRunError` where
    it is one task of several or runs sessions alone, `ProgramEndedError` where it raises, or exits with an error before
    any call.
    """
    watcher = _Watcher(function)
    module = script.new_main(path, tuple(arguments))
    with _watch_calls(watcher), _watch_clusters():
        try:
            script.run_script(module)
        except _Enough:
            pass
        except _Clustered:
            raise CannotRunError(
                "the program is a task of a cluster, which cannot be measured on one computer; "
                "simplace schedule without measured costs simulates its steps"
            ) from None
        except (Exception, SystemExit) as error:
            failure = script.failure_of(error, SourceLines(path))
            if failure is not None and not (watcher.calls and isinstance(error, SystemExit)):
                raise ProgramEndedError(failure) from None
    calls = list(watcher.calls.values())
    if not calls and watcher.runs_sessions and not function:
        raise CannotRunError(
            "the program runs its steps in a session, which is not measured; "
            "simplace schedule without measured costs simulates its steps"
        )
    if not calls:
        return None, []
    found = max(calls, key=_count_nodes)
    return found, [f"{found.name} runs with the inputs of its first call"]


def find_signature_call(directory: str, signature: str, batch: int) -> tuple[Call | None, list[str]]:
    """Load a SavedModel; return the call of a signature, the largest for "", with values of the declared shapes."""
    loaded = tf.saved_model.load(directory)
    found = {name: one for name, one in loaded.signatures.items() if signature in ("", name)}
    if not found:
        return None, []
    name, function = max(found.items(), key=lambda item: len(item[1].graph.get_operations()))
    captured = list(function.captured_inputs)
    given = [
        make_random_value(tensor.dtype, tensor.shape, batch) for tensor in function.inputs[: -len(captured) or None]
    ]
    values = [*given, *(_take_value(tensor, function.graph, len(given) + i) for i, tensor in enumerate(captured))]
    function.graph._simplace_keeps = loaded  # its variables and tables live as long as it does
    return Call(name, function.graph, tuple(values)), [
        f"{name} runs with random numbers in the shapes that it declares"
    ]


def make_random_value(dtype: Any, shape: Any, batch: int) -> Any:
    """Return random numbers between 0 and 1, zeros for other types; unknown sizes are `batch` if first, else 1."""
    import numpy as np

    dims = [] if shape.rank is None else [
        size if size is not None else batch if place == 0 else 1 for place, size in enumerate(shape.as_list())
    ]  # fmt: skip
    if dtype.is_floating or dtype.is_complex:
        return np.random.default_rng(0).random(dims).astype(dtype.as_numpy_dtype)
    return make_zeros(dtype, tf.TensorShape(dims))


@contextmanager
def _watch_calls(watcher: _Watcher) -> Iterator[None]:
    def wrap(call_flat: Any) -> Any:
        def call(function: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
            if tf.executing_eagerly():
                watcher.saw(function, [*tensor_inputs, *captured_inputs])
            return call_flat(function, tensor_inputs, captured_inputs)

        return call

    def wrap_run(run: Any) -> Any:
        def run_session(own: Any, *args: Any, **kwargs: Any) -> Any:
            watcher.runs_sessions = True
            return run(own, *args, **kwargs)

        return run_session

    patch_method(concrete_function.ConcreteFunction, "_call_flat", wrap)
    patch_method(session.BaseSession, "run", wrap_run)
    try:
        yield
    finally:
        restore_method(session.BaseSession, "run")
        restore_method(concrete_function.ConcreteFunction, "_call_flat")


@contextmanager
def _watch_clusters() -> Iterator[None]:
    def of_result(make: Any) -> Any:
        return lambda *args, **kwargs: _refuse_cluster(make(*args, **kwargs))

    def of_argument(take: Any) -> Any:
        return lambda ctx, server, *args, **kwargs: take(ctx, _refuse_cluster(server), *args, **kwargs)

    patch_method(server_lib, "_make_server_def", of_result)
    patch_method(context.Context, "set_server_def", of_argument)
    patch_method(context.Context, "enable_collective_ops", of_argument)
    try:
        yield
    finally:
        restore_method(server_lib, "_make_server_def")
        restore_method(context.Context, "set_server_def")
        restore_method(context.Context, "enable_collective_ops")


def _refuse_cluster(server: Any) -> Any:
    """Return the definition of a server, unless it is one task of several."""
    if sum(len(job.tasks) for job in server.cluster.job) > 1:
        raise _Clustered
    return server


def _count_nodes(call: Call) -> int:
    graph = call.graph.as_graph_def()
    return len(graph.node) + sum(len(function.node_def) for function in graph.library.function)


def _take_value(tensor: Any, graph: Any, place: int) -> Any:
    if tensor.dtype == tf.variant:
        return None
    if tensor.dtype != tf.resource:
        return tensor.numpy()
    spec = describe_variable(tensor)
    if spec is None:
        return _take_element(tensor, graph.inputs[place])
    if not tf.raw_ops.VarIsInitializedOp(resource=tensor):
        return None
    return Variable(tf.raw_ops.ReadVariableOp(resource=tensor, dtype=spec.dtype).numpy())


def _take_element(handle: Any, inner: Any) -> Element | None:
    """Return one element of an iterator; None for another resource, or where it has come to its end."""
    readers = [op for op in inner.consumers() if op.type == "IteratorGetNext"]
    if not readers or len(readers) != len(inner.consumers()):
        return None
    types, shapes = readers[0].get_attr("output_types"), readers[0].get_attr("output_shapes")
    try:
        values = tf.raw_ops.IteratorGetNext(
            iterator=handle, output_types=types, output_shapes=[tf.TensorShape(shape) for shape in shapes]
        )
    except tf.errors.OutOfRangeError:
        return None
    return Element(tuple(value.numpy() for value in values))
