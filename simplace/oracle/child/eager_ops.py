"""Eager execution with emulated GPUs: ops are computed on the CPU, results copied to TensorFlow's device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.boundary import raise_as_theirs
from simplace.oracle.child.dataset_functions import DatasetFunctions
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.function_calls import FAILURES, FunctionCalls
from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.patches import find_original, patch_method
from simplace.oracle.child.tensors import (
    find_host,
    is_gpu_variable,
    is_variable,
    make_full_optional,
    make_placeholder,
    to_device,
)
from simplace.oracle.child.tf_private import core, pywrap_tfe

# TensorFlow 2.17 cannot copy eagerly between two pluggable GPUs ("stream cannot wait for itself").
_NO_PEERS = tf.version.VERSION.startswith("2.17.")


class EagerExecution:
    """Intercept the calls from Python into TensorFlow's eager runtime."""

    def __init__(self, calls: FunctionCalls, datasets: DatasetFunctions, emulate: bool) -> None:
        self.ops = 0
        self._calls = calls
        self._datasets = datasets
        self._emulate = emulate
        self._fast = find_original(pywrap_tfe, "TFE_Py_FastPathExecute")
        self._execute = find_original(pywrap_tfe, "TFE_Py_Execute")
        self._execute_cancelable = find_original(pywrap_tfe, "TFE_Py_ExecuteCancelable")

    def watch(self) -> None:
        """Intercept all eager ops and calls from now on."""
        patch_method(pywrap_tfe, "TFE_Py_FastPathExecute", lambda _: self._run_fast)
        patch_method(pywrap_tfe, "TFE_Py_Execute", lambda _: self._run)
        patch_method(pywrap_tfe, "TFE_Py_ExecuteCancelable", lambda _: self._run_cancelable)

    def _run_fast(self, ctx: Any, op: str, name: Any, *args: Any) -> Any:
        if kernel_types.has_dataset_functions(op) or (
            self._emulate and (not kernel_types.is_harmless(op) or _NO_PEERS)
        ):
            raise_as_theirs(core._FallbackException("simplace runs this op by the slow path"))
        self.ops += 1
        return self._fast(ctx, op, name, *args)

    def _run(self, handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, outputs: Any) -> Any:
        def run(device: str | None = device, inputs: Any = inputs, cancellation: Any = None) -> Any:
            if cancellation is not None:
                return self._execute_cancelable(handle, device, op, inputs, attrs, cancellation, outputs)
            return self._execute(handle, device, op, inputs, attrs, outputs)

        return self._dispatch(device, op, inputs, attrs, run)

    def _run_cancelable(
        self, handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, cancellation: Any, outputs: Any
    ) -> Any:
        def run(device: str | None = device, inputs: Any = inputs, cancellation: Any = cancellation) -> Any:
            return self._execute_cancelable(handle, device, op, inputs, attrs, cancellation, outputs)

        return self._dispatch(device, op, inputs, attrs, run)

    def _dispatch(self, device: str | None, op: str | bytes, inputs: Any, attrs: Any, run: Callable[..., Any]) -> Any:
        op = op.decode() if isinstance(op, bytes) else op
        if op.startswith("__") or kernel_types.find_op_def(op) is None:
            return self._calls.run(op, inputs, device or "", run)
        self.ops += 1
        if kernel_types.has_dataset_functions(op):
            self._datasets.record(op, inputs, dict(zip(attrs[::2], attrs[1::2], strict=True)), device or "")
        if self._emulate and kernel_types.is_harmless(op) and _NO_PEERS:
            return run(device, [_through_host(tensor) for tensor in inputs])
        if not self._emulate or kernel_types.is_harmless(op):
            return run()
        if kernel_types.handles_objects(op):
            return self._run_on_objects(op, inputs, attrs, run)
        handles = [tensor for tensor in inputs if getattr(tensor, "dtype", None) == tf.resource]
        if any(is_gpu_variable(tensor) for tensor in handles):
            return self._run_on_clones(inputs, run)
        if any(not is_variable(tensor) for tensor in handles):
            return self._run_on_objects(op, inputs, attrs, run)
        chosen = find_host() if handles else eager_device.choose_device(_kernel_types(op, attrs or ()), device or "")
        if "/device:GPU:" not in chosen:
            return run()
        return [to_device(result, chosen) for result in run(find_host(), inputs)]

    def _run_on_objects(self, op: str, inputs: Sequence[Any], attrs: Any, run: Callable[..., Any]) -> Any:
        """Run an op where TensorFlow places it, on the host if that is a GPU; a dataset's elements are then zeros."""
        try:
            return run()
        except FAILURES as error:
            if not computes_nothing(error):
                raise
        given = dict(zip(attrs[::2], attrs[1::2], strict=True))
        if "output_types" not in given:
            return run(find_host(), inputs)
        self._calls.remark_made_up_elements()
        return _make_element(op, given)

    def _run_on_clones(self, inputs: Sequence[Any], run: Callable[..., Any]) -> Any:
        """Run an op on copies of its GPU variables in host memory, then write the copies back."""
        home = next(tensor.device for tensor in inputs if is_gpu_variable(tensor))
        with lend_to_host(inputs) as lent:
            results = run(find_host(), lent)
        return [to_device(result, home) for result in results]


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
