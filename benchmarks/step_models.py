"""The ops of a transformer's forward and backward pass, with shapes, from its published dimensions.

Each op is the one of TensorFlow that does the same work, so that a cost model prices it as it prices a graph. The order
and the kinds are those of the eager PyTorch implementations (Hugging Face transformers) that the measured runs were of;
where that has one kernel for what TensorFlow would do in several (dropout with its mask, softmax), the list has one op
that moves the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simplace.costs.cost_model import CollectiveCall, OpCall, Tensor
from simplace.costs.op_work import make_tensor

_WIDTHS = {"float32": 4, "float16": 2, "bool": 1, "int64": 8}
Shape = tuple[int, ...]
Call = OpCall | CollectiveCall


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


@dataclass
class OpList:
    """Record of the ops of a pass in the order of their launch, while it is put together.

    `forward` and `backward` are in the order in which they run. `trains`: what the backward pass needs is recorded
    with each op, and dropout is on. `ways` is how many GPUs share each layer (tensor parallelism).
    """

    dtype: str = "float32"
    trains: bool = False
    ways: int = 1
    forward: list[Call] = field(default_factory=list)
    _backward: list[list[Call]] = field(default_factory=list)

    @property
    def backward(self) -> list[Call]:
        """Return the ops of the backward pass: those of the last op of the forward pass first."""
        return [call for calls in reversed(self._backward) for call in calls]

    def call(self, op: str, inputs: tuple[Shape, ...], *outputs: Shape, **attrs: Any) -> OpCall:
        """Return an op on tensors of this list's type; a shape that starts with -1 is of bytes (a mask)."""
        return OpCall("", op, "GPU", attrs, tuple(map(self._tensor, inputs)), tuple(map(self._tensor, outputs)))

    def _tensor(self, shape: Shape) -> Tensor:
        if shape and shape[0] == -1:
            return make_tensor("bool", shape[1:], 1)
        return make_tensor(self.dtype, shape, _WIDTHS[self.dtype])

    def run(self, call: Call | None, *backward: Call) -> None:
        """Add an op, and the ops of its backward pass."""
        if call is not None:
            self.forward.append(call)
        if self.trains:
            self._backward.append(list(backward))

    def sum_up(self, shape: Shape, is_backward: bool = False) -> None:
        """Add an all-reduce among the GPUs that share a layer, in one of the passes."""
        if self.ways > 1:
            call = CollectiveCall("all_reduce", self._tensor(shape).size, self.ways, "GPU")
            self.run(*((None, call) if is_backward else (call,)))

    def multiply(self, rows: int, deep: int, wide: int, has_bias: bool = True, along_k: bool = True) -> None:
        """Add a dense layer of `rows` x `deep` by `deep` x `wide`; its bias is added in the product's kernel.

        `along_k`: weights lie transposed, as PyTorch's Linear keeps them.
        """
        x, w, y = (rows, deep), (deep, wide), (rows, wide)
        kept = (wide, deep) if along_k else w
        grads = [
            self.call("MatMul", (y, kept), x, transpose_b=not along_k),
            self.call("MatMul", (x, y) if not along_k else (y, x), kept, transpose_a=True),
        ]
        if has_bias:
            grads.append(self.call("Sum", (y,), (wide,)))
        self.run(self.call("MatMul", (x, kept), y, transpose_b=along_k), *grads, self.accumulate(kept))

    def accumulate(self, weights: Shape) -> OpCall:
        """Return what adds the gradient of weights to those of the backward passes before."""
        return self.call("AddN", (weights, weights), weights)

    def multiply_batch(self, b: int, m: int, k: int, n: int, turned: bool = False) -> None:
        """Add b products of m x k by k x n; `turned`: the right one lies transposed."""
        left, right, made = (b, m, k), (b, n, k) if turned else (b, k, n), (b, m, n)
        self.run(
            self.call("BatchMatMulV2", (left, right), made, adj_y=turned),
            self.call("BatchMatMulV2", (made, right), left, adj_y=not turned),
            self.call("BatchMatMulV2", (made, left) if turned else (left, made), right, adj_x=True),
        )

    def map(self, op: str, shape: Shape, tensors: int = 1, grads: tuple[int, ...] = (1,)) -> None:
        """Add an elementwise op that reads some tensors of a shape; `grads` are how many each op backward reads."""
        self.run(
            self.call(op, (shape,) * tensors, shape), *(self.call("Mul", (shape,) * count, shape) for count in grads)
        )

    def add_rows(self, shape: Shape, bias: Shape) -> None:
        """Add a smaller tensor to each part of a larger."""
        self.run(self.call("AddV2", (shape, bias), shape))

    def mask(self, scores: Shape, seq: int) -> None:
        """Add the selection of scores by a mask of what each token may look at."""
        call = self.call("SelectV2", (scores, (-1, seq, seq)), scores)
        self.run(call, call)

    def drop(self, shape: Shape) -> None:
        """Add dropout, in training: one kernel that writes its mask too."""
        if self.trains:
            mask = (-1, *shape)
            self.run(self.call("Mul", (shape,), shape, mask), self.call("Mul", (shape, mask), shape))

    def normalise(self, rows: int, cols: int) -> None:
        """Add a layer normalisation: Keras runs it as the batch normalisation of rows as channels."""
        x, row = (1, rows, cols, 1), (rows,)
        self.run(
            self.call("FusedBatchNormV3", (x, row, row), x, row, row, is_training=True),
            self.call("FusedBatchNormGradV3", (x, x, row), x, row, row, is_training=True),
        )

    def normalise_exponentials(self, shape: Shape) -> None:
        """Add a softmax; its gradient reads the result and the gradient twice each where rows leave the cache."""
        self.run(self.call("Softmax", (shape,), shape), self.call("Mul", (shape, shape), shape))

    def transpose(self, shape: Shape) -> None:
        """Add a copy in another order."""
        self.run(self.call("Transpose", (shape,), shape), self.call("Transpose", (shape,), shape))

    def look_up(self, rows: int, cols: int, table: int) -> None:
        """Add a look-up of rows of a table; the gradient is a whole table of zeros with the rows added in."""
        y = (rows, cols)
        self.run(
            self.call("Gather", (y,), y), self.call("ZerosLike", (), (table, cols)), self.call("AddN", (y, y), y),
            self.accumulate((table, cols)),
        )  # fmt: skip


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
