"""The ops that each built-in Keras layer traces to at inference.

Taken from traces of `tf.function(layer)` with Keras 3.15 on the TensorFlow backend, float32, channels last, a batch
size that is unknown. A layer, or an option of it, that was not traced is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.importers.keras_tracing import FLOAT, INT32, KerasTrace, Value

Dims = tuple[int | None, ...]


class UnsupportedError(Exception):
    """Report a layer or option that is not supported."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Describe a layer of the file: its unique path, class and options; `trace` receives its ops."""

    path: str
    kind: str
    options: Mapping[str, Any]
    trace: KerasTrace = field(repr=False)

    def get(self, option: str, default: Any = None) -> Any:
        """Return an option as the file has it."""
        return self.options.get(option, default)

    def pair(self, option: str, rank: int = 2) -> tuple[int, ...]:
        """Return an option that is one number or one per spatial dimension."""
        value = self.options.get(option)
        return (int(value),) * rank if isinstance(value, int) else tuple(int(one) for one in value or ())

    def must(self, option: str, *allowed: Any) -> None:
        """Refuse the layer unless the option has one of the values that were traced (or is absent)."""
        if option in self.options and self.options[option] not in allowed:
            raise UnsupportedError(f"{option}={self.options[option]!r}")

    def read(self, weight: str, name: str, *dims: int) -> Value:
        """Read one of the layer's weights."""
        return self.trace.read(self.path, weight, name, *dims)


def trace_layer(layer: Layer, inputs: Sequence[Value]) -> Value:
    """Trace one call of a layer; raise `UnsupportedError` for what is not known."""
    if layer.kind not in LAYERS:
        raise UnsupportedError("its class")
    layer.must("data_format", "channels_last", None)
    return LAYERS[layer.kind](layer, inputs)


def trace_operator(trace: KerasTrace, kind: str, operands: Sequence[Value | float]) -> Value:
    """Trace an operator between tensors of a functional model, such as `x + y` or `2.0 * x`."""
    if kind not in OPERATORS:
        raise UnsupportedError(f"the operation {kind}")
    values: list[Value] = []
    for operand in operands:
        if not isinstance(operand, (Value, float)):
            raise UnsupportedError(f"the operand {operand!r}")
        values.append(operand if isinstance(operand, Value) else trace.const("Const", dtype=FLOAT))
    tensors = [value for value in values if value.rank]
    if len(values) != 2 or len({value.rank for value in tensors}) != 1:
        raise UnsupportedError("operands of different ranks")
    shape = tensors[0].shape if len(tensors) == 1 else _broadcast_shapes(tensors[0].shape, tensors[1].shape)
    return trace.op(OPERATORS[kind], values, kind, shape=shape)


# Operation classes of keras.src.ops.numpy
_ERFC_SINCE = (2, 19)  # the version of TensorFlow in which tf.nn.gelu came to use Erfc
OPERATORS: Mapping[str, str] = {"Add": "AddV2", "Divide": "RealDiv", "Multiply": "Mul", "Subtract": "Sub"}


def trace_activation(layer: Layer, value: Value, name: Any) -> Value:
    """Trace an activation function by its Keras name; None and "linear" are no op."""
    if name is None or name == "linear":
        return value
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UnsupportedError(f"the activation {name!r}")
    return ACTIVATIONS[name](layer.trace, value)


def _trace_unary_op(op: str) -> Callable[[KerasTrace, Value], Value]:
    return lambda trace, x: trace.op(op, [x])


def _make_scalar(trace: KerasTrace, name: str) -> Value:
    return trace.const(name, dtype=FLOAT)


def _trace_gelu(trace: KerasTrace, x: Value) -> Value:
    half = trace.op("Mul", [_make_scalar(trace, "Gelu/mul/x"), x], "Gelu/mul", shape=x.shape)
    if trace.tensorflow and trace.tensorflow < _ERFC_SINCE:
        return _gelu_by_erf(trace, x, half)
    minus = trace.op("Neg", [x], "Gelu/Neg")
    scaled = trace.op("Mul", [minus, _make_scalar(trace, "Gelu/Cast/x")], "Gelu/mul_1")
    return trace.op("Mul", [half, trace.op("Erfc", [scaled], "Gelu/Erfc")], "Gelu/mul_2")


def _gelu_by_erf(trace: KerasTrace, x: Value, half: Value) -> Value:
    scaled = trace.op("RealDiv", [x, _make_scalar(trace, "Gelu/Cast/x")], "Gelu/truediv")
    erf = trace.op("Erf", [scaled], "Gelu/Erf")
    added = trace.op("AddV2", [_make_scalar(trace, "Gelu/add/x"), erf], "Gelu/add", shape=x.shape)
    return trace.op("Mul", [half, added], "Gelu/mul_1")


def _trace_silu(trace: KerasTrace, x: Value) -> Value:
    beta = _make_scalar(trace, "beta")
    sigmoid = trace.op("Sigmoid", [trace.op("Mul", [beta, x], "mul", shape=x.shape)])
    product = trace.op("Mul", [x, sigmoid], "mul_1")
    trace.op("Identity", [product])
    return trace.op("IdentityN", [product, x, beta], T=(FLOAT, FLOAT, FLOAT))


def _hard_sigmoid(trace: KerasTrace, x: Value) -> Value:
    added = trace.op("AddV2", [x, _make_scalar(trace, "Const")], "add")
    return trace.op("RealDiv", [trace.op("Relu6", [added]), _make_scalar(trace, "Const_1")], "truediv")


def _hard_silu(trace: KerasTrace, x: Value) -> Value:
    return trace.op("Mul", [x, _hard_sigmoid(trace, x)], "mul")


def _trace_mish(trace: KerasTrace, x: Value) -> Value:
    return trace.op("Mul", [x, trace.op("Tanh", [trace.op("Softplus", [x])])], "mul")


ACTIVATIONS: Mapping[str, Callable[[KerasTrace, Value], Value]] = {
    "elu": _trace_unary_op("Elu"),
    "exponential": _trace_unary_op("Exp"),
    "gelu": _trace_gelu,
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": _hard_silu,
    "hard_swish": _hard_silu,
    "leaky_relu": _trace_unary_op("LeakyRelu"),
    "log_softmax": _trace_unary_op("LogSoftmax"),
    "mish": _trace_mish,
    "relu": _trace_unary_op("Relu"),
    "relu6": _trace_unary_op("Relu6"),
    "selu": _trace_unary_op("Selu"),
    "sigmoid": _trace_unary_op("Sigmoid"),
    "silu": _trace_silu,
    "softmax": _trace_unary_op("Softmax"),
    "softplus": _trace_unary_op("Softplus"),
    "softsign": _trace_unary_op("Softsign"),
    "swish": _trace_silu,
    "tanh": _trace_unary_op("Tanh"),
}


def _require_known_dims(value: Value, *axes: int) -> tuple[int, ...]:
    dims = [value.shape[axis] for axis in axes]
    if any(dim is None for dim in dims):
        raise UnsupportedError(f"an input of shape {value.shape}, with unknown dimensions besides the batch")
    return tuple(dim for dim in dims if dim is not None)


def _pass_through(layer: Layer, inputs: Sequence[Value]) -> Value:
    return inputs[0]


def _trace_dense(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    units = int(layer.get("units"))
    kernel = layer.read("kernel", "Cast", *_require_known_dims(x, -1), units)
    shape = (*x.shape[:-1], units)
    if x.rank == 2:
        y = layer.trace.op("MatMul", [x, kernel], shape=shape, transpose_a=False, transpose_b=False)
    else:
        y = _trace_tensordot(layer.trace, x, kernel, shape)
    if layer.get("use_bias", True):
        y = layer.trace.op("BiasAdd", [y, layer.read("bias", "BiasAdd", units)], data_format=b"NHWC")
    return trace_activation(layer, y, layer.get("activation"))


def _trace_tensordot(trace: KerasTrace, x: Value, kernel: Value, shape: Dims) -> Value:
    free_rank = x.rank - 1
    types: dict[str, Any] = {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32}
    with trace.scope("Tensordot"):
        axes, free = trace.const("axes", 1), trace.const("free", free_rank)
        dims = trace.op("Shape", [x], shape=(x.rank,), dtype=INT32, out_type=INT32)
        kept = trace.op("GatherV2", [dims, free, trace.const("GatherV2/axis", value=0)], shape=(free_rank,), **types)
        summed = trace.op("GatherV2", [dims, axes, trace.const("GatherV2_1/axis", value=0)], shape=(1,), **types)
        rows = trace.op("Prod", [kept, trace.const("Const", 1)], shape=())
        columns = trace.op("Prod", [summed, trace.const("Const_1", 1)], shape=())
        order = trace.op("ConcatV2", [free, axes, trace.const("concat/axis", value=0)], "concat", shape=(x.rank,), N=2)
        matrix = trace.op("Pack", [rows, columns], "stack", shape=(2,), N=2, axis=0)
        turned = trace.op("Transpose", [x, order], "transpose", Tperm=INT32)
        flat = trace.op("Reshape", [turned, matrix], shape=(None, kernel.shape[0]), Tshape=INT32)
        product = trace.op("MatMul", [flat, kernel], shape=(None, kernel.shape[1]))
        tail = [kept, trace.const("Const_2", 1), trace.const("concat_1/axis", value=0)]
        whole = trace.op("ConcatV2", tail, "concat_1", shape=(x.rank,), N=2)
    return trace.op("Reshape", [product, whole], "Tensordot", shape=shape, Tshape=INT32)


def _output_size(size: int | None, window: int, stride: int, padding: str) -> int | None:
    if size is None:
        return None
    return -(-size // stride) if padding == "same" else -(-(size - window + 1) // stride)


def _output_sizes(x: Value, window: Sequence[int], strides: Sequence[int], padding: str) -> Dims:
    sizes = zip(x.shape[1:-1], window, strides, strict=True)
    return tuple(_output_size(size, one, stride, padding) for size, one, stride in sizes)


def _add_bias(layer: Layer, y: Value) -> Value:
    """Add a convolution's bias as Keras does it, by reshaping it to y's rank."""
    if layer.get("use_bias", True):
        trace = layer.trace
        (channels,) = _require_known_dims(y, -1)
        bias = layer.read("bias", "Reshape", channels)
        wide = trace.op(
            "Reshape", [bias, trace.const("Reshape/shape", y.rank)], shape=(1,) * (y.rank - 1) + (channels,)
        )
        narrow = trace.op("Squeeze", [wide], shape=(channels,), squeeze_dims=())
        y = trace.op("BiasAdd", [y, narrow], data_format=b"NHWC")
    return trace_activation(layer, y, layer.get("activation"))


def _trace_conv1d(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("groups", 1)
    layer.must("dilation_rate", 1, [1])
    trace, padding = layer.trace, str(layer.get("padding"))
    window, strides = layer.pair("kernel_size", 1), layer.pair("strides", 1)
    if padding == "causal":
        length = None if x.shape[1] is None else x.shape[1] + window[0] - 1
        paddings = trace.const("Const", 3, 2)
        x = trace.op("Pad", [x, paddings], shape=(x.shape[0], length, x.shape[2]), Tpaddings=INT32)
        padding = "valid"
    filters = int(layer.get("filters"))
    length_out = _output_sizes(x, window, strides, padding)
    with trace.scope("convolution"):
        dim = trace.const("ExpandDims/dim", value=-3)
        wide = trace.op("ExpandDims", [x, dim], shape=(x.shape[0], 1, *x.shape[1:]), Tdim=INT32)
        kernel = layer.read("kernel", "ExpandDims_1", *window, *_require_known_dims(x, -1), filters)
        kernel_dim = trace.const("ExpandDims_1/dim", value=0)
        flat = trace.op("ExpandDims", [kernel, kernel_dim], "ExpandDims_1", shape=(1, *kernel.shape), Tdim=INT32)
    attrs = _conv_attrs((1, *strides), padding)
    y = trace.op("Conv2D", [wide, flat], "convolution", shape=(x.shape[0], 1, *length_out, filters), **attrs)
    y = trace.op("Squeeze", [y], "convolution/Squeeze", shape=(x.shape[0], *length_out, filters), squeeze_dims=(-3,))
    return _add_bias(layer, y)


def _conv_attrs(strides: Sequence[int], padding: str) -> dict[str, Any]:
    return {"strides": (1, *strides, 1), "padding": padding.upper().encode(), "data_format": b"NHWC"}


def _trace_conv2d(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("groups", 1)
    padding, window, strides = str(layer.get("padding")), layer.pair("kernel_size"), layer.pair("strides")
    dilation = layer.pair("dilation_rate")
    filters = int(layer.get("filters"))
    effective = [(size - 1) * rate + 1 for size, rate in zip(window, dilation, strict=True)]
    shape = (x.shape[0], *_output_sizes(x, effective, strides, padding), filters)
    if any(rate > 1 for rate in dilation):
        return _add_bias(layer, _trace_dilated_conv(layer, x, window, padding, shape))
    kernel = layer.read("kernel", "convolution", *window, *_require_known_dims(x, -1), filters)
    y = layer.trace.op("Conv2D", [x, kernel], "convolution", shape=shape, **_conv_attrs(strides, padding))
    return _add_bias(layer, y)


def _trace_dilated_conv(layer: Layer, x: Value, window: tuple[int, ...], padding: str, shape: Dims) -> Value:
    trace = layer.trace
    _require_known_dims(x, 1, 2)
    with trace.scope("convolution"):
        trace.const("dilation_rate", 2)
        if padding == "same":
            trace.const("filter_shape", 4)
            trace.const("stack", 2, 2)
        names = ["input_shape", "paddings", "crops"] if padding == "same" else _PADDING_NAMES
        for name in names:
            trace.const(f"required_space_to_batch_paddings/{name}", *((2,) if name == "input_shape" else (2, 2)))
        block, paddings = trace.const("SpaceToBatchND/block_shape", 2), trace.const("SpaceToBatchND/paddings", 2, 2)
        types: dict[str, Any] = {"Tblock_shape": INT32}
        batches = trace.op("SpaceToBatchND", [x, block, paddings], Tpaddings=INT32, **types)
    kernel = layer.read("kernel", "convolution", *window, *_require_known_dims(x, -1), *_known_dims(shape[-1:]))
    y = trace.op("Conv2D", [batches, kernel], "convolution", shape=shape, **_conv_attrs((1, 1), "valid"))
    with trace.scope("convolution"):
        block, crops = trace.const("BatchToSpaceND/block_shape", 2), trace.const("BatchToSpaceND/crops", 2, 2)
        return trace.op("BatchToSpaceND", [y, block, crops], Tcrops=INT32, **types)


_PADDING_NAMES = ["input_shape", "base_paddings", "paddings", "crops"]


def _known_dims(shape: Dims) -> tuple[int, ...]:
    return tuple(dim for dim in shape if dim is not None)


def _conv2d_transpose(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("dilation_rate", 1, [1, 1])
    layer.must("output_padding", None)
    layer.must("groups", 1)
    trace, padding, strides = layer.trace, str(layer.get("padding")), layer.pair("strides")
    window, filters = layer.pair("kernel_size"), int(layer.get("filters"))
    extra = (
        [0, 0] if padding == "same" else [max(size - stride, 0) for size, stride in zip(window, strides, strict=True)]
    )
    sizes = [
        size * stride + more for size, stride, more in zip(_require_known_dims(x, 1, 2), strides, extra, strict=True)
    ]
    batch = _trace_batch_size(trace, x)
    parts = [trace.const(f"conv_transpose/input_sizes/{i}", value=size) for i, size in enumerate([*sizes, filters], 1)]
    shape = trace.op("Pack", [batch, *parts], "conv_transpose/input_sizes", shape=(4,), N=4, axis=0)
    kernel = layer.read("kernel", "conv_transpose", *window, filters, *_require_known_dims(x, -1))
    attrs = _conv_attrs(strides, padding)
    out = (x.shape[0], *sizes, filters)
    y = trace.op("Conv2DBackpropInput", [shape, kernel, x], "conv_transpose", shape=out, dtype=FLOAT, T=FLOAT, **attrs)
    return _add_bias(layer, y)


def _trace_batch_size(trace: KerasTrace, x: Value) -> Value:
    """Trace `shape(x)[0]`."""
    dims = trace.op("Shape", [x], shape=(x.rank,), dtype=INT32, out_type=INT32)
    slices = [trace.const(f"strided_slice/{name}", 1) for name in ("stack", "stack_1", "stack_2")]
    return trace.op("StridedSlice", [dims, *slices], "strided_slice", shape=(), Index=INT32, shrink_axis_mask=1)


def _depthwise_conv2d(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("dilation_rate", 1, [1, 1])
    window, strides, padding = layer.pair("kernel_size"), layer.pair("strides"), str(layer.get("padding"))
    return _add_bias(layer, _trace_depthwise(layer, x, "depthwise", window, strides, padding))


def _trace_depthwise(
    layer: Layer, x: Value, name: str, window: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> Value:
    (channels,) = _require_known_dims(x, -1)
    multiplier = int(layer.get("depth_multiplier", 1))
    kernel = layer.read("kernel", name, *window, channels, multiplier)
    layer.trace.const(f"{name}/Shape", 4)
    layer.trace.const(f"{name}/dilation_rate", 2)
    shape = (x.shape[0], *_output_sizes(x, window, strides, padding), channels * multiplier)
    attrs = _conv_attrs(strides, padding)
    return layer.trace.op("DepthwiseConv2dNative", [x, kernel], name, shape=shape, **attrs)


def _separable_conv2d(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("dilation_rate", 1, [1, 1])
    trace, (channels,) = layer.trace, _require_known_dims(x, -1)
    window, strides, padding = layer.pair("kernel_size"), layer.pair("strides"), str(layer.get("padding"))
    multiplier, filters = int(layer.get("depth_multiplier", 1)), int(layer.get("filters"))
    depth = layer.read("depthwise_kernel", "separable_conv2d", *window, channels, multiplier)
    point = layer.read("pointwise_kernel", "separable_conv2d", 1, 1, channels * multiplier, filters)
    trace.const("separable_conv2d/Shape", 4)
    trace.const("separable_conv2d/dilation_rate", 2)
    sizes = _output_sizes(x, window, strides, padding)
    attrs = _conv_attrs(strides, padding)
    name = "separable_conv2d/depthwise"
    wide = (x.shape[0], *sizes, channels * multiplier)
    middle = trace.op("DepthwiseConv2dNative", [x, depth], name, shape=wide, **attrs)
    shape = (x.shape[0], *sizes, filters)
    y = trace.op("Conv2D", [middle, point], "separable_conv2d", shape=shape, **_conv_attrs((1, 1), "valid"))
    return _add_bias(layer, y)


def _make_pool_tracer(op: str, rank: int) -> Callable[[Layer, Sequence[Value]], Value]:
    one_d_name = {"MaxPool": "MaxPool1d", "AvgPool": "AvgPool1D"}[op]

    def pool(layer: Layer, inputs: Sequence[Value]) -> Value:
        (x,) = inputs
        trace, padding = layer.trace, str(layer.get("padding"))
        window = layer.pair("pool_size", rank)
        strides = layer.pair("strides", rank) or window
        shape = (x.shape[0], *_output_sizes(x, window, strides, padding), x.shape[-1])
        fill = (1,) * (2 - rank)
        attrs = {**_conv_attrs((*fill, *strides), padding), "ksize": (1, *fill, *window, 1)}
        if rank == 2:
            return trace.op(op, [x], "MaxPool2d" if op == "MaxPool" else "", shape=shape, **attrs)
        dim = trace.const(f"{one_d_name}/ExpandDims/dim", value=1)
        wide = trace.op("ExpandDims", [x, dim], f"{one_d_name}/ExpandDims", shape=(x.shape[0], 1, *x.shape[1:]))
        y = trace.op(op, [wide], one_d_name, shape=(shape[0], 1, *shape[1:]), **attrs)
        return trace.op("Squeeze", [y], f"{one_d_name}/Squeeze", shape=shape, squeeze_dims=(1,))

    return pool


def _global_pool(op: str) -> Callable[[Layer, Sequence[Value]], Value]:
    def pool(layer: Layer, inputs: Sequence[Value]) -> Value:
        (x,) = inputs
        keep = bool(layer.get("keepdims", False))
        axes = layer.trace.const(f"{op}/reduction_indices", *(() if x.rank == 3 else (x.rank - 2,)))
        shape = (x.shape[0], *((1,) * (x.rank - 2) if keep else ()), x.shape[-1])
        return layer.trace.op(op, [x, axes], shape=shape, Tidx=INT32, keep_dims=keep)

    return pool


def _batch_normalization(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("axis", -1, x.rank - 1, [-1], [x.rank - 1])
    trace, (channels,) = layer.trace, _require_known_dims(x, -1)
    has_scale, has_center = layer.get("scale", True), layer.get("center", True)
    weights = ["moving_mean", "moving_variance", *["gamma"] * has_scale, *["beta"] * has_center]
    names = (f"Cast_{i}" if i else "Cast" for i in range(4))
    read = {weight: layer.read(weight, name, channels) for weight, name in zip(weights, names, strict=False)}
    if layer.get("axis") not in (-1, [-1]):  # Keras reshapes for every axis but -1, even where that is the last one
        wide = (1,) * (x.rank - 1) + (channels,)
        for weight in ("moving_mean", "moving_variance", "beta", "gamma"):
            if weight in read:
                shape = trace.const("Reshape/shape", x.rank)
                read[weight] = trace.op("Reshape", [read[weight], shape], shape=wide)
    mean, gamma, beta = read["moving_mean"], read.get("gamma"), read.get("beta")
    with trace.scope("batchnorm"):
        epsilon = trace.const("add/y", dtype=FLOAT)
        factor = trace.op("Rsqrt", [trace.op("AddV2", [read["moving_variance"], epsilon], "add")])
        if gamma is not None:
            factor = trace.op("Mul", [factor, gamma], "mul")
        scaled = trace.op("Mul", [x, factor], "mul")
        if beta is not None:
            shift = trace.op("Sub", [beta, trace.op("Mul", [mean, factor], "mul")], "sub")
        else:
            shift = trace.op("Mul", [trace.op("Neg", [mean]), factor], "mul")
        return trace.op("AddV2", [scaled, shift], "add")


def _layer_normalization(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("axis", -1, [-1])
    layer.must("rms_scaling", False)
    trace, (channels,) = layer.trace, _require_known_dims(x, -1)
    one = (*x.shape[:-1], 1)
    with trace.scope("moments"):
        axes = trace.const("mean/reduction_indices", 1)
        mean = trace.op("Mean", [x, axes], "mean", shape=one, keep_dims=True, Tidx=INT32)
        difference = trace.op("SquaredDifference", [x, trace.op("StopGradient", [mean])])
        axes = trace.const("variance/reduction_indices", 1)
        variance = trace.op("Mean", [difference, axes], "variance", shape=one, keep_dims=True, Tidx=INT32)
    wide = (1,) * (x.rank - 1) + (channels,)
    weights: dict[str, Value] = {}
    for weight, option in (("gamma", "scale"), ("beta", "center")):
        if layer.get(option, True):
            name = "Reshape_1" if weights else "Reshape"
            raw = layer.read(weight, name, channels)
            weights[weight] = trace.op("Reshape", [raw, trace.const(f"{name}/shape", x.rank)], name, shape=wide)
    factor = trace.op("Rsqrt", [trace.op("AddV2", [variance, trace.const("add/y", dtype=FLOAT)], "add")])
    if "gamma" in weights:
        factor = trace.op("Mul", [factor, weights["gamma"]], "mul", shape=x.shape)
    shift = trace.op("Mul", [trace.op("Neg", [mean]), factor], "mul", shape=x.shape)
    if "beta" in weights:
        shift = trace.op("AddV2", [shift, weights["beta"]], "add", shape=x.shape)
        return trace.op("AddV2", [trace.op("Mul", [x, factor], "mul"), shift], "add")
    return trace.op("AddV2", [trace.op("Mul", [x, factor], "mul"), shift], "add")


def _trace_flatten(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    return _reshape_to(layer.trace, x, [prod(_require_known_dims(x, *range(1, x.rank)))])


def _trace_reshape(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    wanted = [int(size) for size in layer.get("target_shape")]
    if -1 in wanted:
        rest = prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = prod(_require_known_dims(x, *range(1, x.rank))) // rest
    return _reshape_to(layer.trace, x, wanted)


def _reshape_to(trace: KerasTrace, x: Value, sizes: Sequence[int]) -> Value:
    parts = [_trace_batch_size(trace, x)]
    parts += [trace.const(f"Reshape/shape/{i}", value=size) for i, size in enumerate(sizes, 1)]
    shape = trace.op("Pack", parts, "Reshape/shape", shape=(len(parts),), N=len(parts), axis=0)
    return trace.op("Reshape", [x, shape], shape=(x.shape[0], *sizes), Tshape=INT32)


def _trace_permute(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    shape = (x.shape[0], *(x.shape[int(axis)] for axis in layer.get("dims")))
    order = layer.trace.const("transpose/perm", x.rank)
    return layer.trace.op("Transpose", [x, order], "transpose", shape=shape, Tperm=INT32)


def _trace_embedding(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("mask_zero", False)
    if x.dtype not in (FLOAT, INT32, DataType.DT_INT64):
        raise UnsupportedError(f"an input of type {x.dtype.name}")
    trace = layer.trace
    dims = int(layer.get("input_dim")), int(layer.get("output_dim"))
    index = trace.cast(x, INT32) if x.dtype == FLOAT else x
    is_negative = trace.op("Less", [index, trace.const("Less/y", dtype=index.dtype, value=0)], dtype=DataType.DT_BOOL)
    layer.read("embeddings", "Shape", *dims)
    slices = [trace.const(f"strided_slice/{name}", 1) for name in ("stack", "stack_1", "stack_2")]
    rows = trace.op(
        "StridedSlice", [trace.const("Shape", 2), *slices], "strided_slice", shape=(), Index=INT32, shrink_axis_mask=1
    )
    wrapped = trace.op("AddV2", [index, trace.cast(rows, index.dtype)], "add")
    chosen = trace.op("SelectV2", [is_negative, wrapped, index], dtype=index.dtype, T=index.dtype)
    table = layer.read("embeddings", "GatherV2", *dims)
    inputs = [table, chosen, trace.const("GatherV2/axis", value=0)]
    types: dict[str, Any] = {"Tparams": FLOAT, "Tindices": index.dtype, "Taxis": INT32}
    return trace.op("GatherV2", inputs, shape=(*x.shape, dims[1]), **types)


def _trace_activation_layer(layer: Layer, inputs: Sequence[Value]) -> Value:
    return trace_activation(layer, inputs[0], layer.get("activation"))


def _trace_relu(layer: Layer, inputs: Sequence[Value]) -> Value:
    layer.must("negative_slope", 0.0, None)
    layer.must("threshold", 0.0, None)
    layer.must("max_value", None, 6.0)
    return layer.trace.op("Relu" if layer.get("max_value") is None else "Relu6", [inputs[0]])


def _trace_elu(layer: Layer, inputs: Sequence[Value]) -> Value:
    layer.must("alpha", 1.0)
    return layer.trace.op("Elu", [inputs[0]])


def _trace_softmax(layer: Layer, inputs: Sequence[Value]) -> Value:
    layer.must("axis", -1, inputs[0].rank - 1)
    return layer.trace.op("Softmax", [inputs[0]])


def _leaky_relu(layer: Layer, inputs: Sequence[Value]) -> Value:
    return layer.trace.op("LeakyRelu", [inputs[0]])


def _trace_prelu(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    layer.must("shared_axes", None)
    trace = layer.trace
    positive = trace.op("Relu", [x])
    slope = trace.op("Neg", [layer.read("alpha", "", *_require_known_dims(x, *range(1, x.rank)))])
    negative = trace.op("Relu", [trace.op("Neg", [x])])
    return trace.op("AddV2", [positive, trace.op("Mul", [slope, negative], "mul", shape=x.shape)], "add")


def _trace_rescaling(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    trace = layer.trace
    x = trace.cast(x, FLOAT)
    scale, offset = _trace_number(layer, "scale"), _trace_number(layer, "offset")
    trace.const("Shape", 0)
    return trace.op("AddV2", [trace.op("Mul", [x, scale], "mul"), offset], "add")


def _trace_number(layer: Layer, option: str) -> Value:
    value = layer.get(option)
    if isinstance(value, float):
        return layer.trace.const("Cast/x", dtype=FLOAT)
    if isinstance(value, int) and not isinstance(value, bool):
        return layer.trace.cast(layer.trace.const("Cast/x", value=value), FLOAT)
    raise UnsupportedError(f"{option}={value!r}")


def _trace_padding(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    padding = layer.get("padding")
    pairs = [padding] if x.rank == 3 else padding
    sizes = (None if size is None else size + sum(pair) for size, pair in zip(x.shape[1:-1], pairs, strict=True))
    paddings = layer.trace.const("Const", x.rank, 2)
    return layer.trace.op("Pad", [x, paddings], shape=(x.shape[0], *sizes, x.shape[-1]), Tpaddings=INT32)


def _trace_cropping2d(layer: Layer, inputs: Sequence[Value]) -> Value:
    (x,) = inputs
    sizes = (size - sum(pair) for size, pair in zip(_require_known_dims(x, 1, 2), layer.get("cropping"), strict=True))
    slices = [layer.trace.const(f"strided_slice/{name}", x.rank) for name in ("stack", "stack_1", "stack_2")]
    shape = (x.shape[0], *sizes, x.shape[-1])
    return layer.trace.op("StridedSlice", [x, *slices], "strided_slice", shape=shape, Index=INT32)


def _make_merge_tracer(op: str, name: str = "") -> Callable[[Layer, Sequence[Value]], Value]:
    def merge(layer: Layer, inputs: Sequence[Value]) -> Value:
        if len({value.rank for value in inputs}) > 1:
            raise UnsupportedError("inputs of different ranks")
        total = inputs[0]
        for value in inputs[1:]:
            total = layer.trace.op(op, [total, value], name, shape=_broadcast_shapes(total.shape, value.shape))
        return total

    return merge


def _broadcast_shapes(a: Dims, b: Dims) -> Dims:
    if any(None not in (x, y) and 1 not in (x, y) and x != y for x, y in zip(a, b, strict=True)):
        raise UnsupportedError(f"inputs of the shapes {list(a)} and {list(b)}")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def _trace_average(layer: Layer, inputs: Sequence[Value]) -> Value:
    total = _make_merge_tracer("AddV2", "Add")(layer, inputs)
    return layer.trace.op("RealDiv", [total, layer.trace.const("truediv/y", dtype=FLOAT)], "truediv")


def _trace_concatenate(layer: Layer, inputs: Sequence[Value]) -> Value:
    axis = int(layer.get("axis", -1)) % inputs[0].rank
    sizes = [value.shape[axis] for value in inputs]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    shape = (*inputs[0].shape[:axis], total, *inputs[0].shape[axis + 1 :])
    parts = [*inputs, layer.trace.const("concat/axis", value=int(layer.get("axis", -1)))]
    return layer.trace.op("ConcatV2", parts, "concat", shape=shape, N=len(inputs), Tidx=INT32)


LAYERS: Mapping[str, Callable[[Layer, Sequence[Value]], Value]] = {
    "Activation": _trace_activation_layer,
    "ActivityRegularization": _pass_through,
    "Add": _make_merge_tracer("AddV2", "Add"),
    "AlphaDropout": _pass_through,
    "Average": _trace_average,
    "AveragePooling1D": _make_pool_tracer("AvgPool", 1),
    "AveragePooling2D": _make_pool_tracer("AvgPool", 2),
    "BatchNormalization": _batch_normalization,
    "Concatenate": _trace_concatenate,
    "Conv1D": _trace_conv1d,
    "Conv2D": _trace_conv2d,
    "Conv2DTranspose": _conv2d_transpose,
    "Cropping2D": _trace_cropping2d,
    "Dense": _trace_dense,
    "DepthwiseConv2D": _depthwise_conv2d,
    "Dropout": _pass_through,
    "ELU": _trace_elu,
    "Embedding": _trace_embedding,
    "Flatten": _trace_flatten,
    "GaussianDropout": _pass_through,
    "GaussianNoise": _pass_through,
    "GlobalAveragePooling1D": _global_pool("Mean"),
    "GlobalAveragePooling2D": _global_pool("Mean"),
    "GlobalMaxPooling1D": _global_pool("Max"),
    "GlobalMaxPooling2D": _global_pool("Max"),
    "LayerNormalization": _layer_normalization,
    "LeakyReLU": _leaky_relu,
    "MaxPooling1D": _make_pool_tracer("MaxPool", 1),
    "MaxPooling2D": _make_pool_tracer("MaxPool", 2),
    "Maximum": _make_merge_tracer("Maximum"),
    "Minimum": _make_merge_tracer("Minimum"),
    "Multiply": _make_merge_tracer("Mul"),
    "PReLU": _trace_prelu,
    "Permute": _trace_permute,
    "ReLU": _trace_relu,
    "Rescaling": _trace_rescaling,
    "Reshape": _trace_reshape,
    "SeparableConv2D": _separable_conv2d,
    "Softmax": _trace_softmax,
    "SpatialDropout1D": _pass_through,
    "SpatialDropout2D": _pass_through,
    "Subtract": _make_merge_tracer("Sub"),
    "ZeroPadding1D": _trace_padding,
    "ZeroPadding2D": _trace_padding,
}
