"""The ops and kernels of one TensorFlow build.

Mirrors tensorflow/core/framework/{op_def,kernel_def}.proto. A table comes from a file (`simplace.kernels.table_file`)
that `simplace.oracle.child.capture` wrote; an op is decoded when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from simplace.errors import SimplaceError, TargetError
from simplace.graph import protos
from simplace.graph.dtypes import REF_OFFSET, DataType, TypeNumber
from simplace.graph.graph_def import attr_value, data_type
from simplace.graph.node_def import AttrValue
from simplace.kernels import table_file
from simplace.kernels.full_type import FullType
from simplace.kernels.table_file import TableFile, is_release_of, version_key

MOST_TENSORS = 1 << 16  # of an argument; TensorFlow would take some 2**31, and all of the memory
Constraint = tuple[str, frozenset[Any]]


class AttrError(SimplaceError):
    """Report a node that lacks an attribute its op needs, or has it with a value of the wrong kind."""


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """Describe one input or output argument of an op.

    `type` is 0 where an attribute gives it: `type_attr` one type, `type_list_attr` a list of them. `number_attr`
    says how many tensors of one type the argument has. `full_type` is what the op declares, attributes unfilled.
    """

    name: str
    type: DataType | int = DataType.DT_INVALID
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False
    full_type: FullType | None = None


@dataclass(frozen=True, slots=True)
class OpDef:
    """Describe an op: its arguments and, by attribute name, the kinds, defaults and allowed values.

    `attr_types` has the words of op_def.proto ("type", "list(type)", "int" ...), in the order of declaration.
    `minimums` are those of numbers, and of the length of lists. `removed_in` is the GraphDef version since which the op
    is deprecated (None: it is not), `instead` the explanation.
    """

    name: str
    inputs: tuple[ArgSpec, ...] = ()
    outputs: tuple[ArgSpec, ...] = ()
    attr_types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, AttrValue] = field(default_factory=lambda: MappingProxyType({}))
    allowed: Mapping[str, tuple[AttrValue, ...]] = field(default_factory=lambda: MappingProxyType({}))
    is_stateful: bool = False
    is_commutative: bool = False
    minimums: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    removed_in: int | None = None
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Describe one kernel registration: the op on a device type, for the attribute values of `constraints`.

    `host_memory` names the arguments that live in host memory.
    """

    op: str
    device_type: str
    label: str = ""
    priority: int = 0
    constraints: tuple[Constraint, ...] = ()
    host_memory: frozenset[str] = frozenset()


class KernelTable:
    """The ops of a TensorFlow build and the kernels of each; `name` names the build."""

    def __init__(self, name: str, version: str, source: _Source, graph_def_version: int = 0) -> None:
        self.name = name
        self.version = version
        self.graph_def_version = graph_def_version  # TF_GRAPH_DEF_VERSION, 0 where it is not known
        self._source = source
        self._ops: dict[str, OpDef | None] = {}
        self._kernels: dict[str, tuple[Kernel, ...]] = {}
        self._by_key: dict[tuple[str, str, str], tuple[Kernel, ...]] = {}

    def __repr__(self) -> str:
        return f"KernelTable({self.name!r})"

    def op(self, name: str) -> OpDef | None:
        """Return the definition of an op, None for a name that is not registered in this build."""
        if name not in self._ops:
            self._ops[name] = self._source.op(name)
        return self._ops[name]

    def is_stateful(self, name: str) -> bool:
        """Return whether an op has effects besides its outputs; one that is not known has."""
        definition = self.op(name)
        return definition is None or definition.is_stateful

    def is_commutative(self, name: str) -> bool:
        """Return whether an op computes the same with its inputs in any order."""
        definition = self.op(name)
        return definition is not None and definition.is_commutative

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        """Return an op's registrations in the order in which TensorFlow lists them."""
        if op not in self._kernels:
            self._kernels[op] = self._source.kernels(op)
        return self._kernels[op]

    def registrations(self, op: str, device_type: str, label: str = "") -> tuple[Kernel, ...]:
        """Return the registrations under one key of the kernel registry."""
        key = (op, device_type, label)
        if key not in self._by_key:
            self._by_key[key] = tuple(k for k in self.kernels(op) if k.device_type == device_type and k.label == label)
        return self._by_key[key]

    def op_names(self) -> tuple[str, ...]:
        """List all ops, sorted."""
        return tuple(sorted(self._source.op_names()))

    def with_extra(self, extra: KernelTable) -> KernelTable:
        """Add another table's ops and kernels; of two definitions of one op the extra one counts."""
        return KernelTable(f"{self.name} + {extra.name}", self.version, _Merged(self, extra), self.graph_def_version)

    @classmethod
    def from_records(cls, name: str, ops: Iterable[OpDef], kernels: Iterable[Kernel]) -> KernelTable:
        """Make a table of plain records.

        >>> KernelTable.from_records("mine", [OpDef("Foo")], [Kernel("Foo", "GPU")]).kernels("Foo")[0].device_type
        'GPU'
        """
        by_op: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            by_op.setdefault(kernel.op, []).append(kernel)
        return cls(name, "", _Records({op.name: op for op in ops}, {op: tuple(ks) for op, ks in by_op.items()}))

    @classmethod
    def load(cls, path: str | Path) -> KernelTable:
        """Read a table file; raise `TargetError` where it is none."""
        file = table_file.read_table_file(path)
        version = file.about.get("graph_def_version", 0)
        return cls(str(file.about["name"]), str(file.about["version"]), _Messages(file), version)

    @classmethod
    def shipped(cls, version: str | None = None) -> KernelTable:
        """Return the table that comes with simplace for a TensorFlow version, by default the newest one.

        "2.18" stands for any patch release of it. A version without a table of its own gets the nearest one of the
        same major version, whose name then says so (of two, the newer one); with another major version, or with
        no version at all, it is a `TargetError` that lists those there are.
        """
        known = cls.versions()
        nearest = nearest_version(version, known) if version else known[-1]
        if nearest is None:
            raise TargetError(f"no kernel table for TensorFlow {version}; there is one for {', '.join(known)}")
        table = _load_shipped_table(nearest)
        if version is None or is_release_of(nearest, version):
            return table
        name = f"{table.name}, the nearest to {version}"
        return KernelTable(name, table.version, table._source, table.graph_def_version)

    @classmethod
    def versions(cls) -> tuple[str, ...]:
        """List the TensorFlow versions whose tables come with simplace, oldest first."""
        return table_file.shipped_versions()


def nearest_version(version: str, known: Sequence[str]) -> str | None:
    """Return the version of `known` (oldest first) that is nearest, None where none has the same major version.

    >>> [nearest_version(one, ["2.16.2", "2.18.1", "2.21.0"]) for one in ("2.18", "2.18.0", "2.17", "2.30.1", "1.15")]
    ['2.18.1', '2.18.1', '2.18.1', '2.21.0', None]
    """
    wanted = version_key(version)
    near = [one for one in known if version_key(one)[:1] == wanted[:1]]
    if not near:
        return None
    minor, patch = (*wanted, 0, 0)[1:3]

    def distance(one: str) -> tuple[int, int, tuple[int, ...]]:
        key = version_key(one)
        return abs(key[1] - minor), abs(key[2] - patch), tuple(-number for number in key)

    return min(near, key=distance)


def with_defaults(op_def: OpDef, attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue]:
    """Add the defaults of attributes that a node lacks, or has without a value (`_SetDefaultAttrValues`, importer.py).

    >>> dict(with_defaults(OpDef("Foo", defaults={"N": 2, "T": 1}), {"T": 3}))
    {'N': 2, 'T': 3}
    """
    if None in attrs.values():
        attrs = {name: value for name, value in attrs.items() if value is not None or name not in op_def.defaults}
    if op_def.defaults.keys() <= attrs.keys():
        return attrs
    return {**op_def.defaults, **attrs}


def type_attrs(op_def: OpDef) -> tuple[str, ...]:
    """List the attributes that an op's types depend on.

    >>> type_attrs(OpDef("AddN", (ArgSpec("inputs", type_attr="T", number_attr="N"),)))
    ('N', 'T')
    """
    args = (*op_def.inputs, *op_def.outputs)
    names = {name for arg in args for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    return tuple(sorted(names - {""}))


def argument_types(op_def: OpDef, attrs: Mapping[str, AttrValue]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the types of a node's inputs and outputs, lists expanded and references + 100 (InOutTypesForNode).

    Raise `AttrError` where an attribute is missing that has no default.

    >>> spec = OpDef("AddN", (ArgSpec("inputs", type_attr="T", number_attr="N"),), (ArgSpec("sum", type_attr="T"),))
    >>> argument_types(spec, {"T": 1, "N": 2})
    ((1, 1), (1,))
    """
    return types_of(op_def, op_def.inputs, attrs), types_of(op_def, op_def.outputs, attrs)


def types_of(op_def: OpDef, args: tuple[ArgSpec, ...], attrs: Mapping[str, AttrValue]) -> tuple[int, ...]:
    """Return the types of some of an op's arguments, as `argument_types` does."""
    types: list[int] = []
    for arg in args:
        types.extend(_arg_types(op_def, arg, attrs))
    return tuple(types)


def argument_ranges(
    op_def: OpDef, args: tuple[ArgSpec, ...], attrs: Mapping[str, AttrValue]
) -> tuple[tuple[str, int, int], ...]:
    """Return each argument's name with the first slot it has and the one after its last (NameRangesForNode).

    >>> spec = OpDef("AddN", (ArgSpec("inputs", type_attr="T", number_attr="N"), ArgSpec("last", 3)))
    >>> argument_ranges(spec, spec.inputs, {"T": 1, "N": 2})
    (('inputs', 0, 2), ('last', 2, 3))
    """
    ranges: list[tuple[str, int, int]] = []
    start = 0
    for arg in args:
        stop = start + len(_arg_types(op_def, arg, attrs))
        ranges.append((arg.name, start, stop))
        start = stop
    return tuple(ranges)


def argument_counts(args: tuple[ArgSpec, ...], attrs: Mapping[str, AttrValue]) -> list[int]:
    """Return the number of tensors of each argument; attributes that are no lists or numbers count as none.

    >>> argument_counts((ArgSpec("inputs", type_attr="T", number_attr="N"), ArgSpec("last", 3)), {"N": 100_000_000})
    [100000000, 1]
    """
    counts = []
    for arg in args:
        named = arg.type_list_attr or arg.number_attr  # "" can be the name of an attribute, too
        value = attrs.get(named, 1) if named else 1
        counts.append(len(value) if isinstance(value, tuple) else value if isinstance(value, int) else 0)
    return counts


def _arg_types(op_def: OpDef, arg: ArgSpec, attrs: Mapping[str, AttrValue]) -> tuple[int, ...]:
    if arg.type_list_attr:
        types: tuple[int, ...]
        found = _require_attr(op_def, attrs, arg.type_list_attr, tuple)
        types = tuple(one for one in found if isinstance(one, (DataType, TypeNumber)))
        if found and not types:
            raise AttrError(f"a node of op {op_def.name} has a list {arg.type_list_attr!r} that is not of types")
    else:
        one = arg.type or _require_attr(op_def, attrs, arg.type_attr, int)
        count = _require_attr(op_def, attrs, arg.number_attr, int) if arg.number_attr else 1
        if not 0 <= count <= MOST_TENSORS:
            raise AttrError(
                f"a node of op {op_def.name} has {count:,} tensors as {arg.name!r}; it may have 0 to {MOST_TENSORS:,}"
            )
        types = (one,) * count
    return tuple(int(dtype) + REF_OFFSET for dtype in types) if arg.is_ref else types


def _require_attr(op_def: OpDef, attrs: Mapping[str, AttrValue], name: str, kind: type) -> Any:
    value = attrs[name] if name in attrs else op_def.defaults.get(name)
    if isinstance(value, kind):
        return value
    what = "lacks the attribute" if value is None else f"has {value!r} as the attribute"
    raise AttrError(f"a node of op {op_def.name} {what} {name!r}, of type {op_def.attr_types.get(name, kind.__name__)}")


class _Source(Protocol):
    """Provide definitions by op name; each kind of table has its own."""

    def op(self, name: str) -> OpDef | None: ...

    def kernels(self, op: str) -> tuple[Kernel, ...]: ...

    def op_names(self) -> Iterable[str]: ...


class _Messages:
    def __init__(self, file: TableFile) -> None:
        self._ops = file.ops
        self._kernels = file.kernels

    def op(self, name: str) -> OpDef | None:
        message = self._ops.get(name)
        return None if message is None else op_from_message(message)

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        read = protos.message_class("KernelDef").FromString
        return tuple(kernel_from_message(read(encoded)) for encoded in self._kernels.get(op, ()))

    def op_names(self) -> Iterable[str]:
        return self._ops


class _Records:
    def __init__(self, ops: Mapping[str, OpDef], kernels: Mapping[str, tuple[Kernel, ...]]) -> None:
        self._ops = ops
        self._kernels = kernels

    def op(self, name: str) -> OpDef | None:
        return self._ops.get(name)

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return self._kernels.get(op, ())

    def op_names(self) -> Iterable[str]:
        return self._ops


class _Merged:
    def __init__(self, base: KernelTable, extra: KernelTable) -> None:
        self._base = base
        self._extra = extra

    def op(self, name: str) -> OpDef | None:
        return self._extra.op(name) or self._base.op(name)

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return self._base.kernels(op) + self._extra.kernels(op)

    def op_names(self) -> Iterable[str]:
        return {*self._base.op_names(), *self._extra.op_names()}


def op_from_message(message: Any) -> OpDef:
    """Convert an `OpDef` message."""
    attrs = list(message.attr)
    return OpDef(
        name=message.name,
        inputs=tuple(map(_read_arg, message.input_arg)),
        outputs=tuple(map(_read_arg, message.output_arg)),
        attr_types={attr.name: attr.type for attr in attrs},
        defaults={attr.name: attr_value(attr.default_value) for attr in attrs if attr.HasField("default_value")},
        allowed={attr.name: attr_value(attr.allowed_values) for attr in attrs if attr.HasField("allowed_values")},
        is_stateful=message.is_stateful,
        is_commutative=message.is_commutative,
        minimums={attr.name: attr.minimum for attr in attrs if attr.has_minimum},
        removed_in=message.deprecation.version if message.HasField("deprecation") else None,
        instead=message.deprecation.explanation,
    )


def kernel_from_message(message: Any) -> Kernel:
    """Convert a `KernelDef` message."""
    return Kernel(
        op=message.op,
        device_type=message.device_type,
        label=message.label,
        priority=message.priority,
        constraints=tuple((one.name, frozenset(attr_value(one.allowed_values))) for one in message.constraint),
        host_memory=frozenset(message.host_memory_arg),
    )


def _read_arg(message: Any) -> ArgSpec:
    return ArgSpec(
        name=message.name,
        type=data_type(message.type),
        type_attr=message.type_attr,
        number_attr=message.number_attr,
        type_list_attr=message.type_list_attr,
        is_ref=message.is_ref,
        full_type=_full_type(message.experimental_full_type) if message.HasField("experimental_full_type") else None,
    )


def _full_type(message: Any) -> FullType:
    number = message.type_id
    name = protos.enum_names("FullTypeId").get(number, f"TFT_{number}")
    return FullType(name, tuple(map(_full_type, message.args)), message.s)


@cache
def _load_shipped_table(version: str) -> KernelTable:
    return KernelTable.load(table_file.shipped_path(version))
