"""The full type of a value, as full_type.proto writes it, and how attributes fill it.

Mirrors tensorflow/core/framework/full_type_util.cc (`SpecializeType`, `IsHostMemoryType`) and types.cc (`DT_TO_FT`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simplace.errors import SimplaceError
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue


class FullTypeError(SimplaceError):
    """Report a node whose attributes do not fill the full type that its op declares."""


@dataclass(frozen=True, slots=True)
class FullType:
    """Record of a full type: `type_id` is its name in full_type.proto ("TFT_DATASET"), `args` are its arguments.

    `attr` is the attribute that a TFT_VAR stands for, "" elsewhere. `str()` gives e.g. `Dataset[Product[Int64]]`.
    """

    type_id: str
    args: tuple[FullType, ...] = ()
    attr: str = ""

    def __str__(self) -> str:
        word = "".join(part.capitalize() for part in self.type_id.removeprefix("TFT_").split("_"))
        inner = ", ".join(map(str, self.args)) or self.attr
        return f"{word}[{inner}]" if inner else word


UNSET = FullType("TFT_UNSET")
_ON_HOST = frozenset({"TFT_DATASET", "TFT_MUTEX_LOCK", "TFT_STRING"})
_WRAPPERS = frozenset({"TFT_TENSOR", "TFT_ARRAY", "TFT_RAGGED", "TFT_ITERATOR", "TFT_OPTIONAL"})

_OF_DTYPE: Mapping[int, str] = {
    DataType.DT_FLOAT: "TFT_FLOAT",
    DataType.DT_DOUBLE: "TFT_DOUBLE",
    DataType.DT_INT32: "TFT_INT32",
    DataType.DT_UINT8: "TFT_UINT8",
    DataType.DT_INT16: "TFT_INT16",
    DataType.DT_INT8: "TFT_INT8",
    DataType.DT_STRING: "TFT_STRING",
    DataType.DT_COMPLEX64: "TFT_COMPLEX64",
    DataType.DT_INT64: "TFT_INT64",
    DataType.DT_BOOL: "TFT_BOOL",
    DataType.DT_UINT16: "TFT_UINT16",
    DataType.DT_COMPLEX128: "TFT_COMPLEX128",
    DataType.DT_HALF: "TFT_HALF",
    DataType.DT_UINT32: "TFT_UINT32",
    DataType.DT_UINT64: "TFT_UINT64",
    DataType.DT_VARIANT: "TFT_LEGACY_VARIANT",
}


def is_host(full_type: FullType) -> bool:
    """Return whether a value of this type can only be in host memory.

    >>> is_host(FullType("TFT_ARRAY", (FullType("TFT_TENSOR", (FullType("TFT_STRING"),)),)))
    True
    >>> is_host(FullType("TFT_ARRAY"))
    False
    """
    if full_type.type_id in _ON_HOST:
        return True
    if full_type.type_id in _WRAPPERS:
        return any(map(is_host, full_type.args[:1]))
    return full_type.type_id == "TFT_PRODUCT" and any(map(is_host, full_type.args))


def specialize_type(declared: FullType, attrs: Mapping[str, AttrValue]) -> FullType:
    """Fill the attributes of a node, defaults included, into the full type that its op declares.

    Raise `FullTypeError` where TensorFlow refuses: an attribute that is missing, an empty list in a TFT_FOR_EACH.

    >>> dataset = FullType("TFT_DATASET", (FullType("TFT_VAR", (), "output_types"),))
    >>> str(specialize_type(dataset, {"output_types": (DataType.DT_STRING,)}))
    'Dataset[String]'
    """
    if declared.type_id == "TFT_VAR":
        return _substitute_variable(declared, attrs)
    if declared.type_id == "TFT_FOR_EACH":
        return _for_each(declared, attrs)
    args = tuple(specialize_type(arg, attrs) for arg in declared.args)
    return FullType(declared.type_id, () if any(map(_is_variant_tensor, args)) else args, declared.attr)


def of_dtype(dtype: int) -> FullType:
    """Return the full type of a data type, `UNSET` for those that have none.

    >>> of_dtype(DataType.DT_STRING).type_id, of_dtype(DataType.DT_FLOAT8_E5M2).type_id
    ('TFT_STRING', 'TFT_UNSET')
    """
    name = _OF_DTYPE.get(dtype)
    return UNSET if name is None else FullType(name)


def _substitute_variable(declared: FullType, attrs: Mapping[str, AttrValue]) -> FullType:
    value = _require_attr(declared.attr, attrs)
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    if not isinstance(value, int) or isinstance(value, bool):
        raise FullTypeError(f"the full type needs one type in the attribute {declared.attr!r}, found {value!r}")
    return of_dtype(value)


def _for_each(declared: FullType, attrs: Mapping[str, AttrValue]) -> FullType:
    container, template, variable = declared.args
    value = _require_attr(variable.attr, attrs)
    types = value if isinstance(value, tuple) else (value,)
    if not types:
        raise FullTypeError(f"the full type needs a type in the attribute {variable.attr!r}, which is an empty list")
    args = tuple(specialize_type(template, {**attrs, variable.attr: one}) for one in types)
    return FullType(container.type_id, args)


def _require_attr(name: str, attrs: Mapping[str, AttrValue]) -> AttrValue:
    if name not in attrs:
        raise FullTypeError(f"the full type needs the attribute {name!r}, which the node does not have")
    return attrs[name]


def _is_variant_tensor(full_type: FullType) -> bool:
    return full_type.type_id == "TFT_TENSOR" and full_type.args[:1] == (FullType("TFT_LEGACY_VARIANT"),)
