"""How much memory cuDNN's recurrent layers keep for their gradient, and take while they run.

cuDNN says neither how it computes these sizes nor what they are for. The sums below give, to the byte, those that it
was asked for on other machines: of the reserve space and the workspace of four layers of LSTM and of GRU
(pytorch/pytorch#2895, on a P100), and of the workspace of two ReLU layers, padded and not (tensorflow/tensorflow#30889,
but for the lengths of the sequences). Until then cuDNN had no FP32 results of all steps in the workspace; that they
are there since, and that an LSTM's cells are FP32 in half precision, too, is what peaks of two LSTM layers on an H200
show.

TensorFlow allocates both with its own allocator: the reserve space as an output, the workspace for the time of the
kernel, of the gradient's, too (CudnnRnnAllocatorInOutput, CudnnRnnAllocatorInTemp of kernels/cudnn_rnn_ops.cc).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.gpu_recurrences import RecurrentLayers
from simplace.costs.layer_shapes import Dims, find_layers_of_call, find_recurrent_layers
from simplace.graph.dtypes import DataType, data_type_size

_LSTM, _GRU = 4, 3  # gates
_SUM = 4  # bytes of an element of a sum: FP32 at least


def find_reserve_shape(op: str, attrs: Mapping[str, Any], inputs: Sequence[Dims]) -> Dims | None:
    """Return the shape of an op's output `reserve_space`, outside of training a scalar; None if shapes do not fit."""
    if not attrs.get("is_training", True):
        return ()
    layers = find_recurrent_layers(op, attrs, inputs)
    if layers is None:
        return None
    return (-(-count_reserve_bytes(layers, _find_element(attrs)) // _size(attrs)),)


def list_workspace(call: OpCall) -> tuple[Tensor, ...]:
    """List what cuDNN takes for an op while it runs: what does not grow with the batch, and what does."""
    layers = find_layers_of_call(call)
    if layers is None:
        return ()
    element, is_padded = _find_element(call.attrs), not call.attrs.get("time_major", True)
    whole, fixed = (count_workspace_bytes(each, element, is_padded) for each in (layers, replace(layers, batch=0)))
    growing = (whole - fixed) // layers.batch
    return Tensor("uint8", (), fixed), Tensor("uint8", (layers.batch, growing), whole - fixed)


def _size(attrs: Mapping[str, Any]) -> int:
    return data_type_size(attrs.get("T", DataType.DT_FLOAT)) or _SUM


def _find_element(attrs: Mapping[str, Any]) -> int:
    """Return the bytes of an element that cuDNN sees: TensorFlow gives it bfloat16 as FP32."""
    return _SUM if attrs.get("T") == DataType.DT_BFLOAT16 else _size(attrs)


def count_reserve_bytes(layers: RecurrentLayers, element: int) -> int:
    """Return the bytes that a call in training keeps for its gradient; an element has `element` bytes.

    They are the gates of every step, an LSTM's cells or the three parts of a GRU's new state, and what each layer but
    the last puts out.

    >>> count_reserve_bytes(RecurrentLayers(4, 320, 100, 250, (123, 320, 320, 320), 1, False), 4)
    736000000
    """
    kept = {_LSTM: max(_SUM, element), _GRU: 3 * element}.get(layers.gates, 0)
    between = layers.directions * (len(layers.widths) - 1)
    passes = layers.directions * len(layers.widths)
    return _count_outputs(layers) * (passes * (layers.gates * element + kept) + between * element)


def count_workspace_bytes(layers: RecurrentLayers, element: int, is_padded: bool) -> int:
    """Return the bytes of the workspace, where sequences are padded (`ShouldUsePaddedIO`) with unpacked copies of all.

    >>> count_workspace_bytes(RecurrentLayers(1, 512, 64, 20, (512, 512), 1, False), 4, is_padded=False)
    9961472
    """
    gates, passes = layers.gates, layers.directions * len(layers.widths)
    weights = layers.directions * gates * layers.hidden * sum(width + layers.hidden for width in layers.widths)
    states = passes * layers.batch * layers.hidden
    results = max(_SUM, element) * passes * gates * _count_outputs(layers)
    taken = element * (weights + (3 * gates - 1) * states) + results
    if not is_padded:
        return taken
    sequences = layers.steps * layers.batch * (layers.widths[0] + layers.directions * layers.hidden)
    return taken + element * (2 * sequences + 4 * states * (2 if gates == _LSTM else 1))


def _count_outputs(layers: RecurrentLayers) -> int:
    """Return how many numbers a layer puts out in all steps in one direction."""
    return layers.steps * layers.batch * layers.hidden
