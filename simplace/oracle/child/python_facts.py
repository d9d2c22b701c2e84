"""Facts on device scopes and logging that only the running program shows, for no graph keeps them.

Each is an event `python`: a kind, the user's line, and values as text. `simplace.doctor` judges them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device
from simplace.oracle.child.after_import import after_import
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import context, ops, session, structured_function

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_NO_WORK = frozenset({"Placeholder", "Identity", "IdentityN", "NoOp", "Const"})


class PythonFacts:
    """The facts that the running program shows, each recorded once."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._told: set[tuple[str, ...]] = set()
        self._existing: set[str] = set()
        self._layers: dict[int, tuple[str, str, str]] = {}
        self._has_gpus = False  # whether a session has made the GPUs' allocators, which all later ones share

    def watch(self) -> None:
        """Observe the program from now on."""
        self._watch_log_flag()
        self._watch_log_level()
        patch_method(context._EagerDeviceContext, "__enter__", self._note_scopes)
        patch_method(ops.Graph, "colocate_with", self._note_scopes_outside)
        patch_method(ops.Graph, "_create_op_helper", self._note_lost_scopes)
        patch_method(structured_function.StructuredFunctionWrapper, "__init__", self._note_dataset_functions)
        after_import("keras.src.layers.layer", self._watch_layers)

    def _tell(self, kind: str, at: str, **values: str) -> None:
        fact = (kind, at, *values.values())
        if fact not in self._told:
            self._told.add(fact)
            self._recorder.event("python", fact=kind, at=at, values=values)

    def _watch_log_flag(self) -> None:
        """Record when the program switches the placement log on, and whether TensorFlow's context existed already."""
        patch_method(context.Context, "log_device_placement", self._note_flag)
        patch_method(session.BaseSession, "__init__", self._note_config)

    def _note_flag(self, setting: Any) -> Any:
        def set_noted(ctx: Any, enable: Any) -> None:
            if enable:
                self._tell("log flag", self._lines.here(), late="yes" if ctx._context_handle is not None else "")
            setting.fset(ctx, enable)

        return setting.setter(set_noted)

    def _note_config(self, create: Any) -> Any:
        def create_noted(self_: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
            if config is not None and config.log_device_placement:
                self._tell("log flag", self._lines.here(), late="")
            if not (config is not None and "GPU" in config.device_count and not config.device_count["GPU"]):
                self._note_first(config)
            create(self_, target, graph, config)

        return create_noted

    def _note_first(self, config: Any) -> None:
        """Record what the options of the first session with GPUs say of their memory.

        A process has one allocator for each GPU (`GetGPUAllocator` of gpu_process_state.cc), made with these options,
        or before any session with those of the eager context.
        """
        is_late = self._has_gpus or context.context()._context_handle is not None
        self._has_gpus = True
        if is_late or config is None:
            return
        at, gpus = self._lines.here(), config.gpu_options
        if gpus.allow_growth:
            self._tell("memory growth", at)
        if gpus.per_process_gpu_memory_fraction:
            self._tell("memory fraction", at, fraction=repr(gpus.per_process_gpu_memory_fraction))

    def _watch_log_level(self) -> None:
        """Record when the program sets the log level; TensorFlow reads it once, while it is imported."""

        def note(event: str, arguments: tuple[Any, ...]) -> None:
            if event != "os.putenv" or os.fsdecode(arguments[0]) != _LOG_LEVEL:
                return
            at = self._lines.here()
            if at and not _knows_tensorflow():
                self._tell("log level", at, level=os.fsdecode(arguments[1]))

        sys.addaudithook(note)

    def _note_scopes(self, enter: Any) -> Any:
        """Record a `tf.device` around eager code that names no device of this run."""

        def enter_noted(scope: Any) -> None:
            enter(scope)
            name = scope._ctx.device_name
            if name and name not in self._existing and tf.executing_eagerly():  # a graph's nodes come later
                self._judge_scope(name)

        return enter_noted

    def _judge_scope(self, name: str) -> None:
        wanted = tf.DeviceSpec.from_string(name)
        devices = context.context().devices()
        is_there = any(eager_device.fits_spec(wanted, tf.DeviceSpec.from_string(each)) for each in devices)
        if is_there or context.context().is_custom_device(name):
            self._existing.add(name)
        elif at := self._lines.here():
            self._tell("scope without device", at, requested=name)

    def _note_scopes_outside(self, colocate: Any) -> Any:
        """Keep the device scope around each `colocate_with`, which resets it for what is inside."""

        @contextmanager
        def colocate_noted(graph: Any, op: Any, ignore_existing: bool = False) -> Iterator[None]:
            outside = getattr(graph, "_simplace_scope_outside", "")
            graph._simplace_scope_outside = _merge_scopes(outside, _scope_of(graph))
            try:
                with colocate(graph, op, ignore_existing):
                    yield
            finally:
                graph._simplace_scope_outside = outside

        return colocate_noted

    def _note_lost_scopes(self, create: Any) -> Any:
        """Record ops of the user's whose `tf.device` was overridden by the device of what they are colocated with."""

        def create_noted(graph: Any, op: Any, compute_device: bool = True) -> None:
            create(graph, op, compute_device)
            if graph._colocation_stack:
                self._judge_op(graph, op)

        return create_noted

    def _judge_op(self, graph: Any, op: Any) -> None:
        wanted = _merge_scopes(getattr(graph, "_simplace_scope_outside", ""), _scope_of(graph))
        if not wanted or not op.device or not _scopes_conflict(wanted, op.device):
            return
        leader = next(iter(graph._colocation_stack.peek_objs()))
        at, library = self._lines.trace_op()
        if at and not library:  # an optimizer means its slots and updates to be where the variables are
            name = getattr(leader, "name", "")
            self._tell("scope lost", at, requested=wanted, got=op.device, node=op.name, op=op.type, leader=name)

    def _note_dataset_functions(self, create: Any) -> Any:
        """Record functions passed to a dataset under a scope that requests a GPU: they don't see that scope."""

        def create_noted(wrapper: Any, func: Any, transformation_name: str, *args: Any, **kwargs: Any) -> None:
            create(wrapper, func, transformation_name, *args, **kwargs)
            scope = _current_scope()
            if "GPU" not in scope.upper():
                return
            graph = getattr(wrapper._function, "graph", None)
            found = [] if graph is None else [op for op in graph.get_operations() if op.type not in _NO_WORK]
            if found and not any(op.device for op in found):
                names = ", ".join(sorted({op.type for op in found})[:3])
                self._tell("dataset scope", self._lines.here(), requested=scope, transformation=transformation_name,
                           ops=names)  # fmt: skip

        return create_noted

    def _watch_layers(self, module: ModuleType) -> None:
        """Record Keras layers that got their variables under one device scope and are called under another."""
        patch_method(module.Layer, "add_weight", self._note_variables)
        patch_method(module.Layer, "__call__", self._note_calls)

    def _note_variables(self, add: Any) -> Any:
        def add_noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if (scope := _current_scope()) and not tf.distribute.has_strategy():  # that makes a variable a replica
                self._layers.setdefault(id(layer), (scope, self._lines.here(), layer.name))
            return add(layer, *args, **kwargs)

        return add_noted

    def _note_calls(self, call: Any) -> Any:
        def call_noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(layer, *args, **kwargs)
            if id(layer) in self._layers:
                self._judge_layer(layer, args, result)
            return result

        return call_noted

    def _judge_layer(self, layer: Any, inputs: Any, outputs: Any) -> None:
        built, at, name = self._layers[id(layer)]
        symbolic = any(type(each).__name__ == "KerasTensor" for each in inputs)
        scope = _current_scope() or _find_scope_inside(outputs)
        if symbolic or name != layer.name or (scope and not _scopes_conflict(scope, built)):
            return
        self._tell("layer scope", at, requested=built, called=scope, called_at=self._lines.here(), layer=name)


def _knows_tensorflow() -> bool:
    """Return whether the program's main module has TensorFlow or Keras among its names by now.

    In this process TensorFlow is always imported, so whether the program has done so shows in its names alone.
    """
    names = vars(sys.modules["__main__"])
    modules = [value for value in names.values() if isinstance(value, ModuleType)]
    return any(module.__name__.partition(".")[0] in ("tensorflow", "keras") for module in modules)


def _current_scope() -> str:
    """Return the device scope around the op that would be made now, "" for none; device functions are ignored."""
    eager = context.context().device_name or "" if context.context()._context_handle is not None else ""
    return eager if tf.executing_eagerly() else _merge_scopes(eager, _scope_of(tf.compat.v1.get_default_graph()))


def _find_scope_inside(outputs: Any) -> str:
    """Return the device that a layer's own code requests for its first output; "" for none, or outside graphs."""
    found = next((each for each in tf.nest.flatten(outputs) if tf.is_tensor(each)), None)
    return str(found.op.device) if isinstance(found, tf.Tensor) and hasattr(found, "graph") else ""


def _scope_of(graph: Any) -> str:
    scope = ""
    for each in reversed(list(graph._device_function_stack.peek_objs())):
        device = each._device_name_or_function
        scope = (
            "" if device is None else _merge_scopes(scope, _format_device(device))
        )  # tf.device(None) resets the scopes around it
    return scope


def _format_device(device: Any) -> str:
    """Return the argument of `tf.device` as text, "" for a function."""
    device = getattr(device, "_spec", device)
    if isinstance(device, str):
        return device
    return str(device.to_string()) if hasattr(device, "to_string") else ""


def _merge_scopes(outer: str, inner: str) -> str:
    if not inner:
        return outer
    merged = tf.DeviceSpec.from_string(outer).make_merged_spec(tf.DeviceSpec.from_string(inner))
    return str(merged.to_string())


def _scopes_conflict(first: str, second: str) -> bool:
    one, other = (tf.DeviceSpec.from_string(text) for text in (first, second))
    fields = ("job", "replica", "task", "device_type", "device_index")
    pairs = ((getattr(one, field), getattr(other, field)) for field in fields)
    return any(a is not None and b is not None and a != b for a, b in pairs)
