"""The layers of transformers, op by op, from their published dimensions.

The order and the kinds of ops are those of the eager PyTorch implementations that the measured runs were of: Hugging
Face transformers, and Megatron-LM where several GPUs took part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.step_ops import OpList, Shape


@dataclass(frozen=True, slots=True)
class Transformer:
    """Record of the dimensions of a transformer: `inner` is the width of its feed-forward layer.

    `kind` is the family of its layers, a key of `LAYERS`.
    """

    kind: str
    layers: int
    hidden: int
    heads: int
    inner: int
    vocabulary: int
    size: int  # of a head


def add_inputs(ops: OpList, model: Transformer, batch: int, seq: int) -> None:
    """Add what comes before the layers: looking up tokens and positions."""
    tokens, h = batch * seq, model.hidden
    x = (tokens, h)
    ops.look_up(tokens, h, model.vocabulary // ops.ways)
    ops.sum_up(x)
    if model.kind == "switch":
        ops.drop(x)
        return
    if model.kind == "bert":
        ops.look_up(tokens, h, 2)
        ops.map("AddV2", x, 2, ())
    ops.add_rows(x, (seq, h))
    if model.kind == "bert":
        ops.normalise(*x)
    if model.kind != "opt":
        ops.drop(x)


def add_outputs(ops: OpList, model: Transformer, batch: int, seq: int) -> None:
    """Add what comes after the layers: the logits of each token, or of each sequence where BERT classifies."""
    tokens, h = batch * seq, model.hidden
    if model.kind == "bert" and not ops.trains:  # measured as a classifier; trained as a language model
        ops.multiply(batch, h, h)
        return
    if model.kind == "bert":
        ops.multiply(tokens, h, h)
        ops.map("Gelu", (tokens, h), 1, (2,))
    if model.kind == "switch":
        _normalise_by_root(ops, (tokens, h))
    else:
        ops.normalise(tokens, h)
    ops.sum_up((tokens, h), is_backward=True)
    ops.multiply(tokens, h, model.vocabulary // ops.ways, has_bias=model.kind == "bert")


def _attend(ops: OpList, model: Transformer, batch: int, seq: int, between: Callable[[Shape], None]) -> None:
    """Add attention between queries, keys and values that lie apart: products, `between` them softmax and the like."""
    pairs, size = batch * model.heads, model.size
    for _ in range(3):
        ops.transpose((batch, seq, model.heads, size))
    ops.multiply_batch(pairs, seq, size, seq, turned=True)
    between((pairs, seq, seq))
    ops.multiply_batch(pairs, seq, seq, size)
    ops.transpose((batch, seq, model.heads, size))


def _list_bert_layer(ops: OpList, model: Transformer, batch: int, seq: int, layer: int) -> None:
    tokens, h = batch * seq, model.hidden
    x = (tokens, h)

    def between(scores: Shape) -> None:
        ops.map("Mul", scores)
        ops.add_rows(scores, (batch, seq))
        ops.normalise_exponentials(scores)
        ops.drop(scores)

    for _ in range(3):
        ops.multiply(tokens, h, h)
    _attend(ops, model, batch, seq, between)
    ops.multiply(tokens, h, h)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))  # backward, the gradients of two branches meet
    ops.normalise(*x)
    ops.multiply(tokens, h, model.inner)
    ops.map("Gelu", (tokens, model.inner), 1, (2,))
    ops.multiply(tokens, model.inner, h)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))
    ops.normalise(*x)


def _list_gpt2_layer(ops: OpList, model: Transformer, batch: int, seq: int, layer: int) -> None:
    tokens, h = batch * seq, model.hidden
    x, wide = (tokens, h), (tokens, model.inner)

    def between(scores: Shape) -> None:
        ops.map("RealDiv", scores)
        ops.mask(scores, seq)
        ops.normalise_exponentials(scores)
        ops.drop(scores)

    ops.normalise(*x)
    ops.multiply(tokens, h, 3 * h, along_k=False)  # Conv1D keeps its weights as they are multiplied
    _attend(ops, model, batch, seq, between)
    ops.multiply(tokens, h, h, along_k=False)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))
    ops.normalise(*x)
    ops.multiply(tokens, h, model.inner, along_k=False)
    for op, tensors, grads in _GELU_OF_TANH:
        ops.map(op, wide, tensors, grads)
    ops.multiply(tokens, model.inner, h, along_k=False)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))


# 0.5 x (1 + tanh(a (x + b x^3))), op by op: the gradients that meet at x are added.
_GELU_OF_TANH = (
    ("Mul", 1, (1,)), ("Pow", 1, (1, 1, 2)), ("Mul", 1, (1,)), ("AddV2", 2, (2, 2)), ("Mul", 1, (1,)),
    ("Tanh", 1, (2,)), ("AddV2", 1, ()), ("Mul", 2, (2, 2)),
)  # fmt: skip


def _list_opt_layer(ops: OpList, model: Transformer, batch: int, seq: int, layer: int) -> None:
    tokens, h = batch * seq, model.hidden
    x, wide = (tokens, h), (tokens, model.inner)

    def between(scores: Shape) -> None:
        ops.add_rows(scores, (batch, seq, seq))
        # max(scores, lowest): its gradient compares twice, halves ties and selects
        ops.map("Maximum", scores, 1, (1, 1, 1, 1))
        ops.normalise_exponentials(scores)

    ops.normalise(*x)
    for _ in range(3):
        ops.multiply(tokens, h, h)
    ops.map("Mul", x)
    _attend(ops, model, batch, seq, between)
    ops.multiply(tokens, h, h)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))
    ops.normalise(*x)
    ops.multiply(tokens, h, model.inner)
    ops.map("Relu", wide, 1, (2,))
    ops.multiply(tokens, model.inner, h)
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))


def _list_megatron_layer(ops: OpList, model: Transformer, batch: int, seq: int, layer: int) -> None:
    """Add a layer of Megatron-LM's GPT, whose attention heads and feed-forward columns `ops.ways` GPUs share.

    In half precision scale, mask and softmax are one kernel; bias and GELU, and bias, dropout and sum, always are.
    """
    tokens, h, ways = batch * seq, model.hidden, ops.ways
    x, pairs, inner = (tokens, h), batch * model.heads // ways, model.inner // ways
    own, scores = model.heads // ways * model.size, (pairs, seq, seq)
    ops.normalise(*x)
    ops.sum_up(x, is_backward=True)
    ops.multiply(tokens, h, 3 * own)
    ops.run(None, ops.call("ConcatV2", ((tokens, 3 * own),), (tokens, 3 * own)))  # of the gradients of the three
    ops.multiply_batch(pairs, seq, model.size, seq, turned=True)
    if ops.dtype == "float32":
        ops.mask(scores, seq)
    ops.normalise_exponentials(scores)
    ops.drop(scores)
    ops.multiply_batch(pairs, seq, seq, model.size)
    ops.transpose((tokens, own))
    ops.multiply(tokens, own, h, has_bias=False)
    ops.sum_up(x)
    _add_dropped(ops, x)
    ops.normalise(*x)
    ops.sum_up(x, is_backward=True)
    ops.multiply(tokens, h, inner)
    ops.map("Gelu", (tokens, inner), 1, (2,))
    ops.multiply(tokens, inner, h, has_bias=False)
    ops.sum_up(x)
    _add_dropped(ops, x)


def _add_dropped(ops: OpList, x: Shape) -> None:
    """Add bias, dropout and the sum with what went around, as one kernel."""
    mask = (-1, *x)
    ops.run(ops.call("AddV2", (x, x), x, mask), ops.call("Mul", (x, mask), x), ops.call("AddV2", (x, x), x))


def _list_switch_layer(ops: OpList, model: Transformer, batch: int, seq: int, layer: int) -> None:
    """Add a layer of a Switch Transformer: of the encoder in the first half of the layers, then of the decoder.

    Every second one has four experts of which each takes 64 tokens of a sequence at most. All tokens being equal, all
    go to one expert: the other three have nothing to do.
    """
    tokens = batch * seq
    _attend_switch(ops, model, batch, seq, bias_reads=_SECTOR)
    if layer >= model.layers // 2:  # the decoder looks at the encoder, too, where distance means nothing
        _attend_switch(ops, model, batch, seq, bias_reads=1)
    x = (tokens, model.hidden)
    _normalise_by_root(ops, x)
    if layer % 2:
        ops.multiply(tokens, model.hidden, _EXPERTS, has_bias=False)
        ops.map("Mul", x)  # a copy, into which what experts made is written
        tokens = min(_CAPACITY, seq) * batch
        for _ in range(2 * (_EXPERTS - 1)):  # experts without tokens have gradients too: zeros
            weights = (model.hidden, model.inner)
            ops.run(None, ops.call("ZerosLike", (), weights), ops.accumulate(weights))
    ops.multiply(tokens, model.hidden, model.inner, has_bias=False)
    ops.map("Relu", (tokens, model.inner), 1, (2,))
    ops.drop((tokens, model.inner))
    ops.multiply(tokens, model.inner, model.hidden, has_bias=False)
    if layer % 2:
        ops.map("Mul", x, 1, (2,))  # by the router's probability
    ops.drop(x)
    ops.map("AddV2", x, 2, (2,))


_EXPERTS, _CAPACITY = 4, 64
# The bias by distance lies with heads side by side, and is read along another dimension: of each sector of 32 bytes
# that memory hands out, four are used ("Strided Accesses", CUDA C++ Best Practices Guide).
_SECTOR = 8


def _attend_switch(ops: OpList, model: Transformer, batch: int, seq: int, bias_reads: int) -> None:
    tokens, h, wide = batch * seq, model.hidden, model.heads * model.size

    def between(scores: Shape) -> None:
        bias = (bias_reads, *scores)  # with the mask of each sequence added to it
        ops.run(ops.call("AddV2", (scores, bias), scores), ops.call("AddN", (scores, scores), scores))
        ops.normalise_exponentials(scores)
        ops.drop(scores)

    _normalise_by_root(ops, (tokens, h))
    for _ in range(3):
        ops.multiply(tokens, h, wide, has_bias=False)
    _attend(ops, model, batch, seq, between)
    ops.multiply(tokens, wide, h, has_bias=False)
    ops.drop((tokens, h))
    ops.map("AddV2", (tokens, h), 2, (2,))


def _normalise_by_root(ops: OpList, x: Shape) -> None:
    """Add T5's normalisation by the root of the mean square, op by op."""
    ops.map("Square", x, 1, (2,))
    ops.run(ops.call("Mean", (x,), x[:1]), ops.call("Mul", (x[:1],), x))
    ops.map("Mul", x, 1, (2, 1))
    ops.map("Mul", x, 1, (2, 1))


LAYERS: Mapping[str, Callable[[OpList, Transformer, int, int, int], None]] = {
    "bert": _list_bert_layer, "gpt2": _list_gpt2_layer, "opt": _list_opt_layer, "megatron": _list_megatron_layer,
    "switch": _list_switch_layer,
}  # fmt: skip
