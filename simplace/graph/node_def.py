"""A node as a GraphDef writes it, with attribute values as plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from simplace.graph.dtypes import REF_OFFSET, DataType, name_in_messages

Shape = tuple[int, ...] | None  # None: unknown rank; -1: unknown dimension


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Record of what is kept of a constant: its type and shape, and its value where it is one small integer.

    `content` is the tensor of a small one with numbers as TensorFlow's serialized TensorProto, for exports; b"" for any
    other. It makes no difference to placement, so it does not count when records are compared.
    """

    dtype: DataType
    shape: Shape
    value: int | None = None
    content: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FuncRef:
    """Name a library function with the attributes it is instantiated with (AttrValue.func).

    Its hash is that of the name: attributes are a mapping, and a hostile file has a function where a type belongs.
    """

    name: str
    attrs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)


# An attribute value: DataType | bytes | int | float | bool | Shape-wrapper | TensorInfo | FuncRef | tuple of these.
AttrValue = Any


@dataclass(frozen=True, slots=True)
class ShapeAttr:
    """Wrap a shape attribute, so that it is never mistaken for a list of integers."""

    dims: Shape


class NodeDef(NamedTuple):
    """Copy one `NodeDef`: inputs are "name", "name:k" or "^name", control inputs last."""

    name: str
    op: str
    device: str
    inputs: tuple[str, ...]
    attrs: Mapping[str, AttrValue]


@dataclass(frozen=True, slots=True)
class ArgDef:
    """Describe one input or output of a function: its name and type (a list argument is several)."""

    name: str
    dtype: DataType
    is_ref: bool = False

    def __str__(self) -> str:
        return format_arg(self.name, name_in_messages(self.dtype) if self.dtype else "", is_ref=self.is_ref)


def format_arg(name: str, types: str, *, is_ref: bool) -> str:
    """Write an argument as TensorFlow's messages do (`Print` of framework/function.cc).

    >>> format_arg("a", "N*float", is_ref=True), str(ArgDef("b", DataType.DT_INVALID))
    ('a:Ref(N*float)', 'b:')
    """
    return f"{name}:Ref({types})" if is_ref else f"{name}:{types}"


class NeededAttr(NamedTuple):
    """Describe an attribute that a call must have for the types of an argument.

    `kind` is "type", "number", "type list" or, where only a call asks for it, "". `argument` is the name of an input or
    an output, `shown` what TensorFlow's messages say of it.
    """

    name: str
    kind: str
    argument: str
    shown: str
    is_output: bool


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """Copy one `FunctionDef`.

    `ret` maps an output argument's name to the tensor it returns ("node:out_arg:k" or an input's name),
    `control_ret` lists the nodes that must run, in the order of the proto's sorted keys.
    `arg_attrs` holds the attributes of argument i, where there are any. `needs` are the attributes that a call must
    have for the types of arguments.
    `signature_attrs` are the attributes that it declares: the name, and whether there is a default.
    `removed_in` is the version of GraphDefs since which the function says to be deprecated, None if it does not.
    """

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    nodes: tuple[NodeDef, ...]
    ret: Mapping[str, str]
    control_ret: Mapping[str, str]
    control_outputs: tuple[str, ...]
    attrs: Mapping[str, AttrValue]
    arg_attrs: Mapping[int, Mapping[str, AttrValue]]
    is_stateful: bool = False
    needs: tuple[NeededAttr, ...] = ()
    signature_attrs: tuple[tuple[str, bool], ...] = ()
    removed_in: int | None = None

    @property
    def call_types(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the types that a call takes and gives, references + 100 (`AddArgToSig`, node_def_util.cc)."""
        inputs, outputs = (
            tuple(int(arg.dtype) + REF_OFFSET * arg.is_ref for arg in args) for args in (self.inputs, self.outputs)
        )
        return inputs, outputs


@dataclass(frozen=True, slots=True)
class GraphDef:
    """Copy one `GraphDef`: nodes in file order and the library's functions by name.

    `producer`, `min_consumer` and `bad_consumers` are its versions; `library_fault` is TensorFlow's message where two
    functions of the library have one name, `gradient_fault` that where one without a body has a gradient.
    `serialized` is the message that it was read from, b"" where it is large or comes from elsewhere.
    """

    nodes: tuple[NodeDef, ...]
    library: Mapping[str, FunctionDef]
    producer: int = 0
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()
    library_fault: str = ""
    gradient_fault: str = ""
    serialized: bytes = field(default=b"", compare=False, repr=False)
