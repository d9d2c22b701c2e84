"""Recurrent layers of cuDNN as functions of ops that a CPU has: CudnnRNN, V2, V3 and their gradients.

One layer in one direction, as Keras and most programs make them. Its parameters are one vector: the matrices of the
inputs gate by gate, then those of the state, then the biases of both (CudnnRNNCanonicalToParams,
tensorflow/core/kernels/cudnn_rnn_ops.cc). The gates are in cuDNN's order: input, forget, cell and output of an LSTM;
reset, update and new memory of a GRU, whose reset is applied after the product with the state.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import function_pb2, op_def_registry

LACK = "several layers, or two directions, of a cuDNN op"  # what `lacks_kernel` looks for
_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}
_Signature = tuple[str, str, Any, bool]  # op, kind of cell, data type, whether time is the first dimension


def replace_cudnn_layers(definition: function_pb2.FunctionDef) -> None:
    """Make of each recurrent layer of cuDNN a call of a function that computes the same; others stay."""
    for node in definition.node_def:
        if not node.op.startswith("CudnnRNN") or not _is_supported(node.attr):
            continue
        op = op_def_registry.get(node.op)
        if op is None or op.input_arg[0].name != "input":  # one that converts parameters
            continue
        mode, dtype = node.attr["rnn_mode"].s.decode() or "lstm", tf.as_dtype(node.attr["T"].type)
        is_time_major = node.attr["time_major"].b if "time_major" in node.attr else True
        called = _trace((node.op, mode, dtype, is_time_major))
        _redirect(definition, node.name, [arg.name for arg in op.output_arg])
        node.op = "PartitionedCall"
        node.attr.clear()
        node.attr["f"].func.name = called.name
        for key, specs in (("Tin", called.inputs), ("Tout", called.outputs)):
            node.attr[key].CopyFrom(_types(specs))


def _is_supported(attr: Mapping[str, Any]) -> bool:
    """Return whether a node is one whose parameters have the layout of one layer, as far as its attributes tell."""
    return (
        attr["direction"].s in (b"", b"unidirectional")
        and attr["input_mode"].s in (b"", b"linear_input")
        and not ("num_proj" in attr and attr["num_proj"].i)
    )


def _redirect(definition: Any, name: str, outputs: Sequence[str]) -> None:
    """Make those that take from a node take from a call, whose outputs have one name."""
    renamed = {f"{name}:{output}:0": f"{name}:output:{i}" for i, output in enumerate(outputs)}
    for node in definition.node_def:
        for i, each in enumerate(node.input):
            node.input[i] = renamed.get(each, each)
    for key, each in definition.ret.items():
        definition.ret[key] = renamed.get(each, each)


def _types(tensors: Sequence[Any]) -> Any:
    found = [tensor.dtype.as_datatype_enum for tensor in tensors]
    return tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=found))


@functools.cache
def _trace(signature: _Signature) -> Any:
    """Trace the function that stands for an op."""
    op, mode, dtype, is_time_major = signature
    definition = op_def_registry.get(op)
    assert definition is not None, "asked only for ops that are there"
    names = [arg.name for arg in definition.input_arg]
    compute = _differentiate if "Backprop" in op else _run_layer

    def call(*args: Any) -> Any:
        return compute(dict(zip(names, args, strict=True)), definition, mode, is_time_major)

    types = {"sequence_lengths": tf.int32, "host_reserved": tf.int8}
    with tf.init_scope(), tf.device(None):
        traced = tf.function(call, autograph=False)
        return traced.get_concrete_function(*(tf.TensorSpec(None, types.get(name, dtype)) for name in names))


def _run_layer(given: Mapping[str, Any], definition: Any, mode: str, is_time_major: bool) -> list[Any]:
    """Return what the op returns; what it would keep for its gradient is empty, since that computes it anew."""
    results = _compute(given, mode, is_time_major)
    dtype = given["input"].dtype
    kept = {"reserve_space": tf.zeros([0], dtype), "host_reserved": tf.zeros([0], tf.int8)}
    return [*results, *(kept[arg.name] for arg in definition.output_arg[3:])]


def _differentiate(given: Mapping[str, Any], definition: Any, mode: str, is_time_major: bool) -> list[Any]:
    """Return the gradients of the input, the state and the parameters."""
    names = ("input", "input_h", "input_c", "params")
    sources = [given[name] for name in names]
    results = _compute(given, mode, is_time_major)
    upstream = [given[f"{name}_backprop"] for name in ("output", "output_h", "output_c")]
    used = 3 if mode == "lstm" else 2
    shaped = [tf.reshape(one, tf.shape(other)) for one, other in zip(upstream[:used], results[:used], strict=True)]
    found = tf.gradients(results[:used], sources, shaped)
    return [tf.zeros_like(source) if one is None else one for one, source in zip(found, sources, strict=True)]


def _compute(given: Mapping[str, Any], mode: str, is_time_major: bool) -> list[Any]:
    """Compute a layer: its outputs, its last state, and the last memory of an LSTM."""
    x, state = (tf.ensure_shape(given[name], [None, None, None]) for name in ("input", "input_h"))
    memory, params = given["input_c"], given["params"]
    x = x if is_time_major else tf.transpose(x, [1, 0, 2])
    axis = 0 if is_time_major else 1
    one_layer = tf.debugging.Assert(tf.equal(tf.shape(state)[axis], 1), [LACK])
    with tf.control_dependencies([one_layer]):
        first = tf.squeeze(state, axis)
    steps, batch, units = tf.shape(x)[0], tf.shape(x)[1], tf.shape(first)[1]
    cell = tf.squeeze(tf.reshape(memory, tf.shape(state)), axis) if mode == "lstm" else tf.zeros_like(first)
    lengths = given["sequence_lengths"] if "sequence_lengths" in given else tf.fill([batch], steps)
    step = _STEPS[mode](*_split_params(params, _GATES[mode], tf.shape(x)[2], units))

    def advance(at: Any, state: Any, cell: Any, outputs: Any) -> tuple[Any, ...]:
        is_inside = tf.reshape(at < tf.reshape(lengths, [-1]), [-1, 1])
        new_state, new_cell = step(x[at], state, cell)
        outputs = outputs.write(at, tf.where(is_inside, new_state, tf.zeros_like(new_state)))
        return at + 1, tf.where(is_inside, new_state, state), tf.where(is_inside, new_cell, cell), outputs

    outputs = tf.TensorArray(x.dtype, steps, element_shape=[None, None])
    variant = [tf.TensorShape(shape) for shape in ([], [None, None], [None, None])]
    _, last, cell, outputs = tf.while_loop(
        lambda at, *_: at < steps, advance, (0, first, cell, outputs), shape_invariants=(*variant, tf.TensorShape(None))
    )
    output = outputs.stack()
    output = output if is_time_major else tf.transpose(output, [1, 0, 2])
    kept = tf.expand_dims(cell, axis) if mode == "lstm" else tf.zeros_like(memory)
    return [output, tf.expand_dims(last, axis), kept]


def _split_params(params: Any, gates: int, inputs: Any, units: Any) -> tuple[Any, Any, Any, Any]:
    """Return the matrices of the inputs and of the state, and the biases of both, each with all gates in a row."""
    sizes = tf.stack([gates * units * inputs, gates * units * units, gates * units, gates * units])
    of_input, of_state, input_bias, state_bias = tf.split(tf.reshape(params, [-1]), sizes, num=4)
    kernel = tf.transpose(tf.reshape(of_input, [gates * units, inputs]))
    recurrent = tf.transpose(tf.reshape(of_state, [gates * units, units]))
    return kernel, recurrent, input_bias, state_bias


def _lstm(kernel: Any, recurrent: Any, input_bias: Any, state_bias: Any) -> Callable[..., Any]:
    def step(x: Any, state: Any, cell: Any) -> tuple[Any, Any]:
        gates = x @ kernel + input_bias + state @ recurrent + state_bias
        taken, kept, new, shown = tf.split(gates, 4, axis=1)
        cell = tf.sigmoid(kept) * cell + tf.sigmoid(taken) * tf.tanh(new)
        return tf.sigmoid(shown) * tf.tanh(cell), cell

    return step


def _gru(kernel: Any, recurrent: Any, input_bias: Any, state_bias: Any) -> Callable[..., Any]:
    def step(x: Any, state: Any, cell: Any) -> tuple[Any, Any]:
        reset, update, new = tf.split(x @ kernel + input_bias, 3, axis=1)
        of_state = tf.split(state @ recurrent + state_bias, 3, axis=1)
        update = tf.sigmoid(update + of_state[1])
        new = tf.tanh(new + tf.sigmoid(reset + of_state[0]) * of_state[2])
        return (1 - update) * new + update * state, cell

    return step


def _simple(activation: Callable[[Any], Any]) -> Callable[..., Any]:
    def with_params(kernel: Any, recurrent: Any, input_bias: Any, state_bias: Any) -> Callable[..., Any]:
        return lambda x, state, cell: (activation(x @ kernel + input_bias + state @ recurrent + state_bias), cell)

    return with_params


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn_relu": _simple(tf.nn.relu), "rnn_tanh": _simple(tf.tanh)}
