"""The function of one op that TensorFlow makes of each eager op, and passes to its placer.

Mirrors WrapInCallOp (tensorflow/core/common_runtime/eager/execute.cc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FunctionDef, GraphDef, NodeDef
from simplace.graph.op_kinds import INTS_ON_DEVICE, PARTITIONED_CALLS, SYMBOLIC_GRADIENT
from simplace.kernels.registry import ArgSpec, OpDef, argument_counts, types_of, with_defaults
from simplace.program.eager_op import EagerOp
from simplace.program.program import Program

_CALLS = PARTITIONED_CALLS | {SYMBOLIC_GRADIENT}


def wrap_op(
    op: EagerOp, definition: OpDef, device: str, wanted: Sequence[str], *, keeps_ints_on_device: bool
) -> Program:
    """Return the program of one op on its device; `wanted` are the devices of its inputs."""
    attrs = with_defaults(definition, op.attrs)
    inputs, outputs = (
        _arguments(definition, definition.inputs, attrs),
        _arguments(definition, definition.outputs, attrs),
    )
    name = _function_name(op, definition, attrs, device)
    node = NodeDef(op.op, op.op, device, tuple(f"{arg.name}:0" for arg in inputs), attrs)
    ints = {INTS_ON_DEVICE: True} if keeps_ints_on_device else {}
    function = FunctionDef(
        name, inputs, outputs, (node,), dict(_results(op.op, definition, outputs, attrs)), {}, (), ints, {}
    )
    graph = GraphDef((), {name: function})
    # The function has no configuration, so soft placement is off in it.
    return Program(op.op, "eager", graph, name, tuple(wanted), device, soft_placement=False)


def calls_function(op: EagerOp) -> bool:
    """Return whether an op is replaced by the functions that it calls, of which a run tells nothing."""
    return op.op in _CALLS


def _arguments(definition: OpDef, args: tuple[ArgSpec, ...], attrs: Mapping[str, object]) -> tuple[ArgDef, ...]:
    found = []
    for arg in args:
        types = types_of(definition, (arg,), attrs)
        is_list = bool(arg.number_attr or arg.type_list_attr)
        names = [f"{_escape(arg.name)}_{i}" for i in range(len(types))] if is_list else [_escape(arg.name)]
        found += [ArgDef(name, DataType(dtype)) for name, dtype in zip(names, types, strict=True)]
    return tuple(found)


def _results(
    node: str, definition: OpDef, outputs: Sequence[ArgDef], attrs: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    names = iter(outputs)
    for arg, count in zip(definition.outputs, argument_counts(definition.outputs, attrs), strict=True):
        for i in range(count):
            yield next(names).name, f"{node}:{arg.name}:{i}"


def _function_name(op: EagerOp, definition: OpDef, attrs: Mapping[str, object], device: str) -> str:
    """Name the function (BuildWrappedOpName)."""
    args = (*definition.inputs, *definition.outputs)
    lists = {arg.type_list_attr or arg.number_attr for arg in args} - {""}
    lengths = {name: value if isinstance(value := attrs[name], int) else len(value) for name in sorted(lists)}  # type: ignore[arg-type]
    parts = "".join(f"_{name}_{length}" for name, length in lengths.items())
    return f"__wrapped__{_escape(op.op)}{parts}_device_{device}"


def _escape(name: str) -> str:
    return name.replace("_", "__")
