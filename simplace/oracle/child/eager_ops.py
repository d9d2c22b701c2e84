"""Eager execution with emulated GPUs: ops are computed on the CPU, results copied to TensorFlow's device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.boundary import forget_frames, raise_as_theirs
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.cpu_functions import lacks_kernel
from simplace.oracle.child.custom_devices import CustomDevices
from simplace.oracle.child.dataset_feeds import DatasetFeeds
from simplace.oracle.child.dataset_functions import DatasetFunctions
from simplace.oracle.child.dataset_twins import DatasetTwins
from simplace.oracle.child.dataset_walks import WALKS, without_elements
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.eager_collectives import EagerCollectives
from simplace.oracle.child.eager_log import EagerKind, EagerLog
from simplace.oracle.child.eager_repeats import EagerRepeats, Repeat, count_inputs
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.fast_path_names import FastPathNames
from simplace.oracle.child.function_calls import FunctionCalls
from simplace.oracle.child.host_ints import put_on_device
from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.own_executor import run_at_once
from simplace.oracle.child.own_work import INSIDE, is_in_py_function, is_inside, watch_py_functions
from simplace.oracle.child.packed_handles import note_members
from simplace.oracle.child.patches import find_original, patch_method
from simplace.oracle.child.sequence_inputs import call_raw_op, split_tensors
from simplace.oracle.child.shared_rendezvous import rerun_aborted, run_alone
from simplace.oracle.child.tensors import (
    find_host,
    is_gpu_variable,
    is_variable,
    make_full_optional,
    make_placeholder,
    to_device,
)
from simplace.oracle.child.tf_private import constant_op, context, core, execute, ops, pywrap_tfe

# TensorFlow 2.17 cannot copy eagerly between two pluggable GPUs ("stream cannot wait for itself").
_NO_PEERS = tf.version.VERSION.startswith("2.17.")
_CONSTANT = "_EagerConst"
Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Given:
    """Record of an op that is to run: `run` takes another device, and by name other inputs and attributes."""

    op: str
    scope: str
    inputs: Sequence[Any]
    attrs: Sequence[Any]
    run: Call

    def named_attrs(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return dict(zip(self.attrs[::2], self.attrs[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class DatasetParts:
    """Record of the parts of a run that follow datasets: their functions, their elements, their twins on the CPU."""

    functions: DatasetFunctions
    feeds: DatasetFeeds
    twins: DatasetTwins


class EagerExecution:
    """Intercept the calls from Python into TensorFlow's eager runtime."""

    def __init__(
        self,
        calls: FunctionCalls,
        datasets: DatasetParts,
        custom: CustomDevices,
        eager: EagerLog | None,
        emulate: bool,
    ) -> None:
        self.ops = 0
        self._names = FastPathNames()
        self._collectives = EagerCollectives()
        self._walked: set[str] = set()  # the functions of walks that TensorFlow has placed
        self._calls = calls
        self._custom = custom
        self._datasets = datasets
        self._eager = eager
        self._repeats = None if eager is None else EagerRepeats(eager)
        self._emulate = emulate
        run_shared = run_alone if emulate else (lambda call: call)
        self._fast = run_shared(find_original(pywrap_tfe, "TFE_Py_FastPathExecute"))
        self._execute = find_original(pywrap_tfe, "TFE_Py_Execute")
        self._execute_cancelable = find_original(pywrap_tfe, "TFE_Py_ExecuteCancelable")
        self._make_constant = run_shared(find_original(constant_op, "convert_to_eager_tensor"))

    def watch(self) -> None:
        """Intercept all eager ops and calls from now on."""
        patch_method(pywrap_tfe, "TFE_Py_FastPathExecute", lambda _: self._run_fast)
        patch_method(pywrap_tfe, "TFE_Py_Execute", lambda _: self._run)
        patch_method(pywrap_tfe, "TFE_Py_ExecuteCancelable", lambda _: self._run_cancelable)
        patch_method(ops, "pack_eager_tensors", note_members)
        if self._eager is not None:
            patch_method(constant_op, "convert_to_eager_tensor", lambda _: self._convert)
            watch_py_functions()

    def _run_fast(self, ctx: Any, op: str, name: Any, *args: Any) -> Any:
        is_watched = self._eager is not None and not is_inside()
        if is_watched and (inputs := count_inputs(op)) is not None:
            given = args[:inputs]
            repeat = self._find_repeat(ctx, op, given, args[inputs:])
            if repeat is not None:
                self._names.note(op, name, args)
                return self._named(op, lambda: self._run_again(ctx, op, given, repeat))
        is_slow = is_watched or kernel_types.has_dataset_functions(op)
        if is_slow or (self._emulate and (not kernel_types.is_harmless(op) or _NO_PEERS or is_in_py_function())):
            split = split_tensors(op, args)
            if split is not None:
                return call_raw_op(op, name, split)
            self._names.note(op, name, args)
            raise_as_theirs(core._FallbackException("simplace runs this op by the slow path"))
        self.ops += 1
        return self._fast(ctx, op, name, *args)

    def _run(self, handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, outputs: Any) -> Any:
        def run(device: str | None = device, inputs: Any = inputs, cancellation: Any = None, attrs: Any = attrs) -> Any:
            if cancellation is not None:
                return self._execute_cancelable(handle, device, op, inputs, attrs, cancellation, outputs)
            return self._execute(handle, device, op, inputs, attrs, outputs)

        return self._named(op, lambda: self._dispatch(device, op, inputs, attrs, run))

    def _named(self, op: str | bytes, call: Call) -> Any:
        """Run an op such that its error has the name that was given to it."""
        try:
            return call()
        except FAILURES as error:
            self._names.complete(op.decode() if isinstance(op, bytes) else op, error)
            raise

    def _run_cancelable(
        self, handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, cancellation: Any, outputs: Any
    ) -> Any:
        def run(
            device: str | None = device, inputs: Any = inputs, cancellation: Any = cancellation, attrs: Any = attrs
        ) -> Any:
            return self._execute_cancelable(handle, device, op, inputs, attrs, cancellation, outputs)

        return self._dispatch(device, op, inputs, attrs, run)

    def _dispatch(self, device: str | None, op: str | bytes, inputs: Any, attrs: Any, run: Call) -> Any:
        op = op.decode() if isinstance(op, bytes) else op
        watched = self._eager if not is_inside() else None
        with INSIDE, self._datasets.twins.lend_variables(inputs):
            if not all(isinstance(tensor, ops.EagerTensor) for tensor in inputs):
                return run()  # a tensor of a graph, which TensorFlow refuses
            if self._custom.takes(device or "", inputs):
                return self._custom.run(op, run)
            if op.startswith("__") or kernel_types.find_op_def(op) is None:
                is_function = context.context().has_function(op)  # TensorFlow refuses what is neither
                return self._call(op, inputs, device or "", run, attrs or ()) if is_function else run()
            self.ops += 1
            functions: list[str] = []
            given = _Given(op, device or "", inputs, attrs or (), run)
            if kernel_types.has_dataset_functions(op):
                functions = self._datasets.functions.record(op, inputs, given.named_attrs(), given.scope)
            self._datasets.functions.settle(op, inputs, given.attrs, given.scope)
            given = self._exchange(given)
            with run_at_once():
                if watched is not None:
                    results = self._run_watched(watched, given)
                else:
                    results = self._compute_in_py_function(given) if is_in_py_function() else self._compute(given)
                if self._emulate:
                    results = self._datasets.twins.follow(op, inputs, given.attrs, functions, run, results)
            self._datasets.functions.mark(op, functions, inputs, given.attrs, results)
            return self._datasets.feeds.hand_on(op, inputs, functions, results)

    def _exchange(self, given: _Given) -> _Given:
        """Return an op with other datasets in the place of those that have twins."""
        inputs = self._datasets.twins.exchange(given.op, given.inputs) if self._emulate else given.inputs
        return given if inputs is given.inputs else replace(given, inputs=inputs, run=partial(given.run, inputs=inputs))

    def _call(self, function: str, inputs: Sequence[Any], scope: str, run: Call, attrs: Sequence[Any]) -> Any:
        """Call a function of the program, and note which datasets it is given elements of."""
        self._datasets.functions.settle_given(inputs)
        self._datasets.feeds.note_call(function, inputs)
        return self._datasets.feeds.hand_on(function, inputs, (), self._calls.run(function, inputs, scope, run, attrs))

    def _run_watched(self, watched: EagerLog, given: _Given) -> Any:
        """Run an op of the program, and count it."""
        kind = watched.kind_of(given.op, given.scope, watched.describe(given.inputs), given.attrs)
        results = self._run_first(watched, kind, given) if watched.claims(kind) else self._run_known(kind, given)
        if self._repeats is not None and isinstance(results, list):
            self._repeats.note(given.op, given.inputs, Repeat(kind, given.attrs, len(results)))
        return kind.sign(results)

    def _find_repeat(self, ctx: Any, op: str, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Repeat | None:
        return None if self._repeats is None else self._repeats.find(ctx, op, inputs, attrs)

    def _run_again(self, ctx: Any, op: str, inputs: tuple[Any, ...], repeat: Repeat) -> Any:
        """Run an op whose like has run; return what TensorFlow's fast path does."""
        handle, scope = ctx._handle, ctx.device_name

        def run(device: str | None = scope, inputs: Any = inputs, attrs: Any = repeat.attrs) -> Any:
            return self._execute(handle, device, op, list(inputs), attrs, repeat.outputs)

        self.ops += 1
        with INSIDE, self._datasets.twins.lend_variables(inputs):
            self._datasets.functions.settle(op, inputs, repeat.attrs, scope or "")
            with run_at_once():
                known = self._run_known(repeat.kind, self._exchange(_Given(op, scope or "", inputs, repeat.attrs, run)))
                if self._emulate:
                    known = self._datasets.twins.follow(op, inputs, repeat.attrs, (), run, known)
            results = repeat.kind.sign(known)
            self._datasets.functions.mark(op, (), inputs, (), results)
            self._datasets.feeds.hand_on(op, inputs, (), results)
        if execute.must_record_gradient():
            execute.record_gradient(op, list(inputs), repeat.attrs, results)
        return results if repeat.outputs > 1 else next(iter(results), None)

    def _run_known(self, kind: EagerKind, given: _Given) -> Any:
        kind.count(given.inputs)
        return self._compute_on_host(given, kind.device) if kind.is_for_host else self._compute(given)

    def _run_first(self, watched: EagerLog, kind: EagerKind, given: _Given) -> Any:
        """Run the first op of a kind as the program calls it, so that TensorFlow says where it belongs."""
        is_walk = self._is_walk(given)
        call = self._walk_nowhere(given) if is_walk else self._bare(given)
        start = watched.position()
        result, error = _result(call)
        attempt = watched.attempt(given.op, start)
        is_refused = error is not None and watched.is_refused(attempt, error)
        watched.tell(kind, attempt, error if is_refused else None)
        kind.count(given.inputs)
        if error is None and not is_walk:
            return result
        if error is not None and not computes_nothing(error):
            try:
                raise error
            finally:
                del error  # see raise_as_theirs
        if error is not None:
            forget_frames(error)
        kind.is_for_host = is_walk or not _works_on_objects(given)  # an iterator is to advance, and to end
        kind.device = kind.device or _choose_device(given)  # of another task, which logs elsewhere
        return self._compute_on_host(given, kind.device)

    def _compute(self, given: _Given) -> Any:
        """Run an op where TensorFlow places it, or on the host if that is a GPU which would have to compute."""
        if self._is_walk(given):
            return self._walk(given)
        result, error = _result(self._bare(given))
        if error is None:
            return result
        if not computes_nothing(error):
            try:
                raise error
            finally:
                del error  # see raise_as_theirs
        forget_frames(error)
        return self._compute_on_host(given, _choose_device(given))

    def _compute_in_py_function(self, given: _Given) -> Any:
        """Run an op on the host at once where it would be on a GPU.

        On a GPU, TensorFlow hands its parts to the inter-op pool, all of whose threads may run such Python functions
        and so wait for each other; and the parts meet in one rendezvous for all threads, where ops that are alike would
        get each other's tensors (DoEagerExecute of eager/execute.cc).
        """
        home = _choose_device(given) if self._emulate else ""
        if not _is_gpu(home) or _works_on_objects(given) or _list_resources(given):
            return self._compute(given)
        results = given.run(find_host(), inputs=list(map(_through_host, given.inputs)))
        return [_move_number(result, home) for result in results]

    def _compute_on_host(self, given: _Given, home: str) -> Any:
        """Compute an op on the host, and put its results where TensorFlow would have; make up a dataset's elements."""
        if self._is_walk(given):
            return self._walk(given)
        if self._collectives.takes(given.op):
            return [self._put(given.op, self._join_collective(given, home), home)]
        handles = _list_resources(given)
        if any(is_gpu_variable(tensor) for tensor in handles):
            with lend_to_host(given.inputs) as lent:
                results = given.run(find_host(), inputs=lent)
            return [self._put(given.op, result, home) for result in results]
        if _works_on_objects(given) or handles:
            attrs = given.named_attrs()
            if "output_types" in attrs:
                self._calls.remark_made_up_elements()
                return _make_element(given.op, attrs)
            return given.run(find_host())
        inputs = list(map(_through_host, given.inputs))  # the program may have forbidden implicit copies
        return [self._put(given.op, result, home) for result in self._run_on_host(given, inputs)]

    def _is_walk(self, given: _Given) -> bool:
        return self._emulate and given.op in WALKS

    def _walk(self, given: _Given) -> Any:
        """Walk through a dataset with a copy of the function that needs no GPU; TensorFlow has placed the function."""
        if read_function_name(given.named_attrs()["f"]) not in self._walked:
            self._walk_nowhere(given)()
        with lend_to_host(given.inputs) as lent:
            return given.run(find_host(), inputs=lent, attrs=self._calls.copy_for_datasets(given.attrs))

    def _walk_nowhere(self, given: _Given) -> Call:
        """Return the call of a walk that TensorFlow only places."""
        self._walked.add(read_function_name(given.named_attrs()["f"]))
        return partial(given.run, inputs=without_elements(given.inputs))

    def _join_collective(self, given: _Given, home: str) -> Any:
        inputs = [tensor if tensor.dtype == tf.resource else _through_host(tensor) for tensor in given.inputs]
        return self._collectives.join(given.op, given.named_attrs(), inputs, home)

    def _run_on_host(self, given: _Given, inputs: Sequence[Any]) -> list[Any]:
        try:
            return list(given.run(find_host(), inputs=inputs))
        except FAILURES as error:
            if not lacks_kernel(error):
                raise
            forget_frames(error)
        return self._calls.compute_op(given.op, given.named_attrs(), inputs)

    def _put(self, op: str, result: Any, home: str) -> Any:
        """Put a result where TensorFlow would have: an int32 may belong to a GPU and be in host memory."""
        if result.dtype != tf.int32 or not kernel_types.keeps_ints_on_host(op, "GPU"):
            return to_device(result, home)
        return put_on_device(result, home)

    def _bare(self, given: _Given) -> Call:
        """Return the call of an op as the program makes it, alone if it is for a GPU and cannot wait for another."""
        if not self._emulate:
            return given.run
        may_wait = _works_on_objects(given)
        if not kernel_types.is_harmless(given.op):
            is_alone = not may_wait and _is_gpu(_choose_device(given))
            return run_alone(given.run, tries=1) if is_alone else given.run
        run = rerun_aborted(given.run) if may_wait else run_alone(given.run)
        return (lambda: run(given.scope or None, inputs=list(map(_through_host, given.inputs)))) if _NO_PEERS else run

    def _convert(self, value: Any, ctx: Any, dtype: Any = None) -> Any:
        """Make a tensor of a Python value, which TensorFlow copies by an op of its own to a device other than CPU:0."""
        watched, home = self._eager, ctx.device_name or ""
        if self._emulate and is_in_py_function() and not isinstance(value, ops.EagerTensor):
            with tf.device(find_host()):
                made = self._make_constant(value, ctx, dtype)
            types = _kernel_types(_CONSTANT, ("T", made.dtype.as_datatype_enum))
            return _move_number(made, eager_device.choose_device(types, home) or home)
        if watched is None or is_inside() or isinstance(value, ops.EagerTensor) or self._custom.takes(home):
            return self._make_constant(value, ctx, dtype)
        start = watched.position()
        with run_at_once():
            tensor = self._make_constant(value, ctx, dtype)
        if watched.position() == start:  # a number that TensorFlow had made before, or one for the CPU
            return tensor
        described = watched.describe_constant(tensor)
        kind = watched.kind_of(_CONSTANT, home, described, ("T", described[0][0]))
        attempt = watched.attempt(_CONSTANT, start)
        if attempt.device:
            if watched.claims(kind):
                watched.tell(kind, attempt)
            kind.count([tensor])
            kind.sign([tensor])
        return tensor


def _works_on_objects(given: _Given) -> bool:
    return kernel_types.handles_objects(given.op) or any(not is_variable(tensor) for tensor in _list_resources(given))


def _list_resources(given: _Given) -> list[Any]:
    return [tensor for tensor in given.inputs if getattr(tensor, "dtype", None) == tf.resource]


def _is_gpu(device: str) -> bool:
    return "/device:GPU:" in device


def _move_number(result: Any, home: str) -> Any:
    """Put a result on a GPU without an op there; an int32, which is in host memory in any case, stays on the host."""
    return result if result.dtype == tf.int32 else to_device(result, home)


def _choose_device(given: _Given) -> str:
    return eager_device.choose_device(_kernel_types(given.op, given.attrs), given.scope)


def _kernel_types(op: str, attrs: Sequence[Any]) -> frozenset[str]:
    return kernel_types.device_types(op, dict(zip(attrs[::2], attrs[1::2], strict=True)))


def _make_element(op: str, attrs: dict[str, Any]) -> list[Any]:
    types, shapes = map(tf.as_dtype, attrs["output_types"]), map(tf.TensorShape, attrs["output_shapes"])
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    if op == "IteratorGetNextAsOptional":
        return [make_full_optional(specs)]
    return [make_placeholder("", spec.dtype, spec.shape) for spec in specs]


def _through_host(tensor: Any) -> Any:
    return to_device(tensor, find_host()) if "/device:GPU:" in getattr(tensor, "device", "") else tensor


def _result(call: Call) -> tuple[Any, Any]:
    try:
        return call(), None
    except FAILURES as error:
        return None, error
