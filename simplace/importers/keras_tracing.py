"""Record ops as tracing does: unique names, captured variables, control outputs.

Mirrors what `tf.function(model).get_concrete_function(...)` leaves in a FunctionDef.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, AttrValue, FunctionDef, NodeDef, TensorInfo

FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32

# The name of each op's first output argument (tensorflow/core/ops/*.cc); those not listed here call it "output".
_OUTPUTS = {
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Less", "SquaredDifference"), "z"),
    **dict.fromkeys(("Sigmoid", "Tanh", "Erf", "Erfc", "Exp", "Neg", "Rsqrt", "Transpose", "Cast"), "y"),
    **dict.fromkeys(("Relu", "Relu6", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu"), "activations"),
    "LogSoftmax": "logsoftmax",
    "MatMul": "product",
    "ReadVariableOp": "value",
    "Softmax": "softmax",
}
_WITHOUT_T = frozenset({"GatherV2"})  # its types are Tparams, Tindices, Taxis


@dataclass(frozen=True, slots=True)
class Value:
    """Name a tensor inside the function, as FunctionDef does, with its type and shape."""

    ref: str
    dtype: DataType
    shape: tuple[int | None, ...]

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)


class KerasTrace:
    """Collect the nodes of one function while a model's layers are walked.

    `tensorflow` holds the numbers of the version that would trace, such as (2, 18, 1), () for the newest.
    """

    def __init__(self, tensorflow: tuple[int, ...] = ()) -> None:
        self.tensorflow = tensorflow
        self._nodes: list[NodeDef] = []
        self._names: dict[str, int] = {}  # in lower case, with the last number that was tried after each
        self._scopes: list[str] = []
        self._inputs: list[ArgDef] = []
        self._captures: dict[tuple[str, str], ArgDef] = {}
        self._reads: list[str] = []

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of all nodes made inside."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def input(self, name: str, dtype: DataType, shape: tuple[int | None, ...]) -> Value:
        """Add an argument of the function."""
        arg = ArgDef(self._unique(_argument_name(name)), dtype)
        self._inputs.append(arg)
        return Value(arg.name, dtype, shape)

    def op(
        self,
        op: str,
        inputs: Sequence[Value],
        name: str = "",
        *,
        shape: tuple[int | None, ...] | None = None,
        dtype: DataType | None = None,
        **attrs: AttrValue,
    ) -> Value:
        """Add a node, called like its op unless named.

        The output has the type and shape of the first input unless given; the attribute T is the first input's type
        unless given.
        """
        first = inputs[0]
        if op not in _WITHOUT_T:
            attrs.setdefault("T", first.dtype)
        made = self._plain(op, name or op, inputs, attrs)
        return Value(
            f"{made}:{_OUTPUTS.get(op, 'output')}:0",
            first.dtype if dtype is None else dtype,
            first.shape if shape is None else shape,
        )

    def const(self, name: str, *dims: int, dtype: DataType = INT32, value: int | None = None) -> Value:
        """Add a constant with the given dimensions, a scalar without any."""
        made = self._plain("Const", name, [], {"dtype": dtype, "value": TensorInfo(dtype, dims, value)})
        return Value(f"{made}:output:0", dtype, dims)

    def read(self, layer: str, weight: str, name: str, *dims: int) -> Value:
        """Read a float weight; the first read of a weight makes it an argument of the function."""
        key = (layer, weight)
        local = f"{name}/ReadVariableOp".lstrip("/")
        full = "/".join([*self._scopes, local])
        if key not in self._captures:
            self._captures[key] = ArgDef(self._unique(_argument_name(f"{full}/resource")), DataType.DT_RESOURCE)
        handle = Value(self._captures[key].name, DataType.DT_RESOURCE, ())
        made = self._plain("ReadVariableOp", local, [handle], {"dtype": FLOAT})
        self._reads.append(made)
        return Value(f"{made}:value:0", FLOAT, dims)

    def cast(self, value: Value, dtype: DataType, name: str = "Cast") -> Value:
        """Add a Cast, where the type differs."""
        if value.dtype == dtype:
            return value
        made = self._plain("Cast", name, [value], {"SrcT": value.dtype, "DstT": dtype, "Truncate": False})
        return Value(f"{made}:y:0", dtype, value.shape)

    def function(self, name: str, outputs: Sequence[Value]) -> FunctionDef:
        """Close the function: an Identity per output, after all reads."""
        used = {one for node in self._nodes for one in node.inputs}
        reads = sorted(read for read in self._reads if f"{read}:value:0" in used)  # an unused read need not run
        waits = [f"^{read}" for read in reads]
        ret: dict[str, str] = {}
        args: list[ArgDef] = []
        barrier = self._unique("NoOp") if waits else ""
        for value in outputs:
            inputs = (value.ref, f"^{barrier}") if waits else (value.ref,)
            identity = self._unique("Identity")
            self._nodes.append(NodeDef(identity, "Identity", "", inputs, MappingProxyType({"T": value.dtype})))
            arg = ArgDef(identity.lower(), value.dtype)
            ret[arg.name] = f"{identity}:output:0"
            args.append(arg)
        if waits:
            self._nodes.append(NodeDef(barrier, "NoOp", "", tuple(waits), MappingProxyType({})))
        return FunctionDef(
            name=name,
            inputs=(*self._inputs, *self._captures.values()),
            outputs=tuple(args),
            nodes=tuple(self._nodes),
            ret=ret,
            control_ret={read: read for read in reads},
            control_outputs=tuple(reads),
            attrs=MappingProxyType({}),
            arg_attrs=MappingProxyType({}),
            is_stateful=bool(self._reads),
        )

    def _plain(self, op: str, name: str, inputs: Sequence[Value], attrs: dict[str, AttrValue]) -> str:
        full = self._unique("/".join([*self._scopes, name]))
        self._nodes.append(NodeDef(full, op, "", tuple(value.ref for value in inputs), MappingProxyType(attrs)))
        return full

    def _unique(self, name: str) -> str:
        unique, plain = name, name.lower()  # function_def names and Graph.unique_name ignore case
        while unique.lower() in self._names:
            self._names[plain] += 1
            unique = f"{name}_{self._names[plain]}"
        self._names[unique.lower()] = 0
        return unique


def _argument_name(name: str) -> str:
    return re.sub(r"\W", "_", name).lower()
