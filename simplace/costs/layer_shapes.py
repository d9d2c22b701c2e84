"""The shapes of convolutions and of cuDNN's recurrent layers, from the tensors and attributes of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from simplace.costs.cost_model import OpCall
from simplace.costs.gpu_convolutions import Convolution, Pass
from simplace.costs.gpu_recurrences import RecurrentLayers

Dims = tuple[int, ...]
_PASSES: Mapping[str, Pass] = {
    "Conv2D": "forward", "_FusedConv2D": "forward", "Conv2DBackpropInput": "input", "Conv2DBackpropFilter": "filter",
}  # fmt: skip
_RECURRENT = frozenset("CudnnRNN CudnnRNNV2 CudnnRNNV3 CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3".split())
RESERVE_SPACE = 3  # the number of this output; the next is `host_reserved`, a scalar
_GATES: Mapping[bytes, int] = {b"lstm": 4, b"gru": 3, b"rnn_relu": 1, b"rnn_tanh": 1}


def find_convolution(call: OpCall) -> tuple[Convolution, Pass] | None:
    """Return the convolution of an op, and which of its passes the op is; None for others, and grouped convolutions.

    >>> from simplace.costs.cost_model import Tensor
    >>> x, f, y = (Tensor("float32", shape, 0) for shape in ((8, 9, 9, 3), (3, 3, 3, 16), (8, 5, 5, 16)))
    >>> found = find_convolution(OpCall("c", "Conv2D", "GPU", {"strides": (1, 2, 2, 1)}, (x, f), (y,)))
    >>> found and (found[0].in_channels, found[0].out_h, found[0].stride, found[1])
    (3.0, 5.0, 4.0, 'forward')
    """
    kind = _PASSES.get(call.op)
    if kind is None or not call.outputs or len(call.inputs) < (2 if kind == "forward" else 3):
        return None
    given, result = call.inputs, call.outputs[0]
    image = (result if kind == "input" else given[0]).shape
    window = (result if kind == "filter" else given[1]).shape
    made = (result if kind == "forward" else given[2]).shape
    strides = call.attrs.get("strides", (1, 1, 1, 1))
    if not len(image) == len(window) == len(made) == 4 or not isinstance(strides, tuple):
        return None
    if call.attrs.get("data_format", b"NHWC") == b"NCHW":
        batch, channels, height, width = image
        _, outs, out_h, out_w = made
    else:
        batch, height, width, channels = image
        _, out_h, out_w, outs = made
    sizes = (batch, channels, height, width, outs, window[0], window[1], out_h, out_w, prod(strides))
    if channels != window[2] or outs != window[3] or 0 in sizes:
        return None
    return Convolution(*map(float, sizes)), kind


def is_kept(op: str, slot: int) -> bool:
    """Return whether an output is what cuDNN's recurrent layers keep for their gradient.

    >>> is_kept("CudnnRNNV3", RESERVE_SPACE), is_kept("CudnnRNNV3", 0), is_kept("CudnnRNNBackpropV3", RESERVE_SPACE)
    (True, False, False)
    """
    return op in _RECURRENT and "Backprop" not in op and slot >= RESERVE_SPACE


def find_layers_of_call(call: OpCall) -> RecurrentLayers | None:
    """Return the recurrent layers of a call, as `find_recurrent_layers`."""
    if call.op not in _RECURRENT:
        return None
    return find_recurrent_layers(call.op, call.attrs, [tensor.shape for tensor in call.inputs])


def find_recurrent_layers(op: str, attrs: Mapping[str, Any], inputs: Sequence[Dims]) -> RecurrentLayers | None:
    """Return the layers of cuDNN's recurrent ops; None for other ops, and where the shapes of the inputs do not fit.

    The first two dimensions of states, layers and batch, change places with those of inputs, steps and batch
    (`ExtractForwardInput` of tensorflow/core/kernels/cudnn_rnn_ops.cc): Keras has the batch first.
    """
    gates = _GATES.get(attrs.get("rnn_mode", b"lstm"))
    if op not in _RECURRENT or gates is None or len(inputs) < 4:
        return None
    x, state = inputs[0], inputs[1]
    directions = 2 if attrs.get("direction") == b"bidirectional" else 1
    if len(x) != 3 or len(state) != 3 or min(*x, *state) < 1:
        return None
    is_time_major = attrs.get("time_major", True)
    steps, batch = x[:2] if is_time_major else (x[1], x[0])
    layers = state[0] if is_time_major else state[1]
    if layers % directions:
        return None
    later = (directions * state[2],) * (layers // directions - 1)
    is_gradient = "Backprop" in op
    return RecurrentLayers(gates, state[2], batch, steps, (x[2], *later), directions, is_gradient)
