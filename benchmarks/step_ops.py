"""The ops of a pass through a model, put together with those of its backward pass.

Each op is the one of TensorFlow that does the same work, so that a cost model estimates it as it does a graph. Where
the measured framework has one kernel for what TensorFlow would do in several (dropout with its mask, softmax), the list
has one op that moves the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from simplace.costs.cost_model import CollectiveCall, OpCall, Tensor
from simplace.costs.op_work import make_tensor

_WIDTHS = {"float32": 4, "float16": 2}
Shape = tuple[int, ...]
Call = OpCall | CollectiveCall


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
