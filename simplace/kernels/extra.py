"""Read a user's own ops and kernels from a TOML file.

An op is written with the words of TensorFlow's REGISTER_OP, a kernel with those of REGISTER_KERNEL_BUILDER:

    [[op]]
    name = "MyScan"
    inputs = ["x: T", "weights: N * float", "handle: resource", "rest: Tin"]
    outputs = ["y: Ref(T)"]
    attrs = ["T: {float, double} = DT_FLOAT", "N: int >= 1", "Tin: list(type)", "mode: string = 'fast'"]
    stateful = true

    [[kernel]]
    op = "MyScan"
    device = "GPU"
    types = { T = ["float"] }        # TypeConstraint; without it every type
    host_memory = ["handle"]
    priority = 0
    label = ""

The op of a kernel may also be one that TensorFlow has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplace.errors import MalformedError, TargetError, UnreadableError, join_choices
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue
from simplace.input_file import read_toml
from simplace.kernels.registry import ArgSpec, Kernel, KernelTable, OpDef

_KINDS = frozenset({"string", "int", "float", "bool", "type", "shape", "tensor", "func"})
_ARG = re.compile(r"\s*(\w+)\s*:\s*(Ref\(\s*)?(?:(\w+)\s*\*\s*)?(\w+)\s*(\))?\s*\Z")
_ATTR = re.compile(r"\s*(\w+)\s*:\s*(list\(\s*)?(\w+|\{[^}]*\})\s*(\))?\s*(?:>=\s*-?\d+\s*)?(?:=\s*(.+?)\s*)?\Z")
_OP_KEYS = frozenset({"name", "inputs", "outputs", "attrs", "stateful"})
_MOST_PRIORITY = (1 << 31) - 1  # kernel_def.proto: int32
_KERNEL_KEYS = frozenset({"op", "device", "types", "host_memory", "priority", "label"})


def load_extra(path: str | Path) -> KernelTable:
    """Read a file of ops and kernels, to be merged with `table.with_extra(...)`; `TargetError` for a mistake in it."""
    try:
        return parse_extra(read_toml(path), Path(path).name)
    except MalformedError as error:
        raise TargetError(f"kernel file {path} is not TOML: {error}") from error
    except UnreadableError as error:
        raise TargetError(f"kernel file {path} cannot be read: {error}") from error
    except _MistakeError as error:
        raise TargetError(f"kernel file {path}: {error}") from error


def parse_extra(content: Mapping[str, Any], name: str) -> KernelTable:
    """Make a table of the content of such a file; raise `ValueError` with one plain line for a mistake.

    >>> table = parse_extra({"kernel": [{"op": "Foo", "device": "GPU", "types": {"T": ["half"]}}]}, "mine")
    >>> table.kernels("Foo")[0].constraints
    (('T', frozenset({<DataType.DT_HALF: 19>})),)
    """
    _only_keys(content, frozenset({"op", "kernel"}), "the file")
    ops = [_parse_op(entry) for entry in _get_tables(content, "op")]
    kernels = [_parse_kernel(entry) for entry in _get_tables(content, "kernel")]
    return KernelTable.from_records(name, ops, kernels)


class _MistakeError(ValueError):
    """Report what is wrong in the file."""


def _parse_op(entry: Mapping[str, Any]) -> OpDef:
    name = _get_text(entry, "name", "an [[op]]")
    where = f"op {name}"
    _only_keys(entry, _OP_KEYS, where)
    attr_types: dict[str, str] = {}
    defaults: dict[str, AttrValue] = {}
    allowed: dict[str, tuple[AttrValue, ...]] = {}
    for spec in _get_texts(entry, "attrs", where):
        attr, kind, values, default = _parse_attr(spec, where)
        attr_types[attr] = kind
        if values is not None:
            allowed[attr] = values
        if default is not None:
            defaults[attr] = default
    inputs = tuple(_parse_arg(spec, attr_types, where) for spec in _get_texts(entry, "inputs", where))
    outputs = tuple(_parse_arg(spec, attr_types, where) for spec in _get_texts(entry, "outputs", where))
    return OpDef(name, inputs, outputs, attr_types, defaults, allowed, bool(entry.get("stateful", False)))


def _parse_kernel(entry: Mapping[str, Any]) -> Kernel:
    op = _get_text(entry, "op", "a [[kernel]]")
    where = f"kernel of {op}"
    _only_keys(entry, _KERNEL_KEYS, where)
    types = entry.get("types", {})
    if not isinstance(types, Mapping):
        raise _MistakeError(f'{where}: types must be a table like {{ T = ["float"] }}')
    return Kernel(
        op=op,
        device_type=_get_text(entry, "device", where),
        label=str(entry.get("label", "")),
        priority=_check_priority(entry.get("priority", 0), where),
        constraints=tuple(
            (attr, frozenset(_parse_type(one, where) for one in _get_texts(types, attr, where))) for attr in types
        ),
        host_memory=frozenset(_get_texts(entry, "host_memory", where)),
    )


def _check_priority(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -_MOST_PRIORITY <= value <= _MOST_PRIORITY:
        return value
    raise _MistakeError(f"{where}: priority = {value!r} must be a whole number, such as 0")


def _parse_arg(spec: str, attr_types: Mapping[str, str], where: str) -> ArgSpec:
    found = _ARG.match(spec)
    if found is None or bool(found[2]) != bool(found[5]):
        raise _MistakeError(f'{where}: {spec!r} is not an argument; write e.g. "x: T", "xs: N * T" or "v: Ref(T)"')
    name, ref, number, what = found[1], bool(found[2]), found[3] or "", found[4]
    if attr_types.get(what) == "list(type)":
        return ArgSpec(name, type_list_attr=what, is_ref=ref)
    if attr_types.get(what) == "type":
        return ArgSpec(name, type_attr=what, number_attr=number, is_ref=ref)
    return ArgSpec(name, _parse_type(what, where), number_attr=number, is_ref=ref)


def _parse_attr(spec: str, where: str) -> tuple[str, str, tuple[AttrValue, ...] | None, AttrValue]:
    found = _ATTR.match(spec)
    if found is None or bool(found[2]) != bool(found[4]):
        raise _MistakeError(f'{where}: {spec!r} is not an attribute; write "T: type", "N: int >= 1", "b: bool = true"')
    name, is_list, what, default = found[1], bool(found[2]), found[3], found[5]
    values: tuple[AttrValue, ...] | None = None
    if what.startswith("{"):
        words = [word.strip() for word in what[1:-1].split(",") if word.strip()]
        what = "string" if words and words[0][:1] in "'\"" else "type"
        values = tuple(_parse_value(word, what, where) for word in words)
    if what not in _KINDS:
        raise _MistakeError(f"{where}: {what!r} is not an attribute type; the types are {join_choices(_KINDS)}")
    if default is None:
        return name, f"list({what})" if is_list else what, values, None
    if not is_list:
        return name, what, values, _parse_value(default, what, where)
    items = [item.strip() for item in default.strip("[] ").split(",") if item.strip()]
    return name, f"list({what})", values, tuple(_parse_value(item, what, where) for item in items)


def _parse_value(word: str, kind: str, where: str) -> AttrValue:
    try:
        return _READ[kind](word)
    except (KeyError, ValueError) as error:
        raise _MistakeError(f"{where}: {word!r} is not a value for an attribute of type {kind}") from error


def _parse_bool(word: str) -> bool:
    return {"true": True, "false": False}[word]


_READ: Mapping[str, Any] = {
    "type": dtypes.parse_dtype,
    "string": lambda word: word.strip("'\"").encode(),
    "int": int,
    "float": float,
    "bool": _parse_bool,
}


def _parse_type(word: str, where: str) -> DataType:
    try:
        return dtypes.parse_dtype(word)
    except ValueError as error:
        raise _MistakeError(f"{where}: {word!r} is neither a data type nor an attribute that holds one") from error


def _get_tables(content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = content.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise _MistakeError(f"{key} must be a list of tables; write [[{key}]]")
    return entries


def _only_keys(entry: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    strange = sorted(set(entry) - known)
    if strange:
        raise _MistakeError(f"{where} has the unknown key {strange[0]!r}; the known keys are {join_choices(known)}")


def _get_text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise _MistakeError(f'{where} needs {key} = "..."')
    return value


def _get_texts(entry: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _MistakeError(f"{where}: {key} must be a list of strings")
    return value
