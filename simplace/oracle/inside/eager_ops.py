"""Eager execution with emulated GPUs: compute on the CPU, and leave the result where TensorFlow would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, core, record
from tensorflow.python.framework import dtypes, ops, versions
from tensorflow.python.ops import gen_resource_variable_ops

from simplace.oracle.inside import call_device, kernel_types
from simplace.oracle.inside.calls import (
    FunctionCalls,
    host,
    is_gpu_variable,
    is_initialized,
    is_variable,
    read_variable,
    to_device,
)

# These create, read, write or copy; their GPU kernels need no GPU.
_HARMLESS = frozenset({
    "AssignVariableOp", "DestroyResourceOp", "Identity", "IdentityN", "NoOp", "ReadVariableOp", "VarHandleOp",
    "VarIsInitializedOp", "_EagerConst", "StopGradient", "Reshape",
})  # fmt: skip

# TensorFlow 2.17 cannot copy eagerly between two pluggable GPUs ("stream cannot wait for itself").
_NO_PEERS = versions.VERSION.startswith("2.17.")


class EagerExecution:
    """Stand between Python and TensorFlow's eager runtime."""

    def __init__(self, calls: FunctionCalls, emulate: bool) -> None:
        self.ops = 0
        self._calls = calls
        self._emulate = emulate
        self._fast = pywrap_tfe.TFE_Py_FastPathExecute
        self._execute = pywrap_tfe.TFE_Py_Execute
        self._execute_cancelable = pywrap_tfe.TFE_Py_ExecuteCancelable

    def watch(self) -> None:
        """Take all eager ops and calls from now on."""
        pywrap_tfe.TFE_Py_FastPathExecute = self._run_fast
        pywrap_tfe.TFE_Py_Execute = self._run
        pywrap_tfe.TFE_Py_ExecuteCancelable = self._run_cancelable

    def _run_fast(self, ctx: Any, op: str, name: Any, *args: Any) -> Any:
        if self._emulate and (op not in _HARMLESS or _NO_PEERS) and not kernel_types.handles_objects(op):
            raise core._FallbackException("simplace runs this op by the slow path")
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
        if op.startswith("__") or kernel_types.signature(op) is None:
            return self._calls.run(op, inputs, device or "", run)
        self.ops += 1
        if self._emulate and op in _HARMLESS and _NO_PEERS:
            return run(device, [_through_host(tensor) for tensor in inputs])
        if not self._emulate or op in _HARMLESS or kernel_types.handles_objects(op):
            return run()
        handles = [tensor for tensor in inputs if getattr(tensor, "dtype", None) == dtypes.resource]
        if any(is_gpu_variable(tensor) for tensor in handles):
            return self._run_on_clones(inputs, run)
        if any(not is_variable(tensor) for tensor in handles):
            return run()
        chosen = host() if handles else call_device.choose(_kernel_types(op, attrs or ()), device or "")
        if "/device:GPU:" not in chosen:
            return run()
        return [to_device(result, chosen) for result in run(host(), inputs)]

    def _run_on_clones(self, inputs: Sequence[Any], run: Callable[..., Any]) -> Any:
        """Run an op that works on GPU variables on copies of them in host memory, then write the copies back."""
        clones = {id(tensor): _clone(tensor) for tensor in inputs if is_gpu_variable(tensor)}
        home = next(tensor.device for tensor in inputs if is_gpu_variable(tensor))
        results = run(host(), [clones.get(id(tensor), tensor) for tensor in inputs])
        with record.stop_recording():
            for tensor in inputs:
                if id(tensor) in clones and is_initialized(clones[id(tensor)]):
                    gen_resource_variable_ops.assign_variable_op(tensor, read_variable(clones[id(tensor)]))
        for clone in clones.values():
            gen_resource_variable_ops.destroy_resource_op(clone, ignore_lookup_error=True)
        return [to_device(result, home) for result in results]


def _kernel_types(op: str, attrs: Sequence[Any]) -> frozenset[str]:
    return kernel_types.device_types(op, dict(zip(attrs[::2], attrs[1::2], strict=True)))


def _through_host(tensor: Any) -> Any:
    return to_device(tensor, host()) if "/device:GPU:" in getattr(tensor, "device", "") else tensor


def _clone(handle: Any) -> Any:
    described = handle._handle_data.shape_and_type[0]
    with record.stop_recording(), ops.device(host()):
        clone = gen_resource_variable_ops.var_handle_op(
            dtype=described.dtype, shape=described.shape, shared_name=context.anonymous_name()
        )
        clone._handle_data = handle._handle_data
        if is_initialized(handle):
            gen_resource_variable_ops.assign_variable_op(clone, read_variable(handle))
    return clone
