"""Read a GraphDef, binary or text, into plain records.

Mirrors tensorflow/core/framework/{graph,node_def,attr_value,function}.proto. The single way in for every importer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any

from google.protobuf.message import DecodeError

from simplace.errors import MalformedError, TargetError, UnreadableError
from simplace.graph import protos
from simplace.graph.collector import paused_collector
from simplace.graph.dtypes import DataType, TypeNumber, data_type_size, name_in_messages
from simplace.graph.function_library import find_gradient_fault, find_library_fault
from simplace.graph.message_count import AS_BINARY, FieldLimit, PartLimit, check_count, check_text, most_parts
from simplace.graph.node_def import (
    ArgDef,
    AttrValue,
    FuncRef,
    FunctionDef,
    GraphDef,
    NeededAttr,
    NodeDef,
    Shape,
    ShapeAttr,
    TensorInfo,
    format_arg,
)
from simplace.input_file import LARGEST_MODEL_TEXT, open_file, read_bytes

MOST_ARGUMENTS = 1 << 16
LARGEST_KEPT = 16 << 20  # bytes of a serialized graph, which TensorFlow may be asked about
_OP_NAME = re.compile(r"[A-Za-z0-9_.>][A-Za-z0-9_.>\-/]*\Z")  # node_def.proto: ops, functions and their namespaces
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NO_ATTRS: Mapping[str, AttrValue] = MappingProxyType({})
_LARGEST_CONTENT = 4096  # bytes of a constant that is kept: shape inference reads shapes, axes, permutations, paddings
_WITHOUT_NUMBERS = (DataType.DT_STRING, DataType.DT_RESOURCE, DataType.DT_VARIANT)
_LARGEST_UNCOUNTED = 16 << 20  # bytes of a file whose nodes are decoded, into 30 times as many, before they are counted
_LARGEST_SHARED = 1024  # bytes; larger attributes are constants, each with a value of its own
_DTYPES: Mapping[int, DataType] = {int(dtype): dtype for dtype in DataType}
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive; unpack it, or give it a name that ends in .keras if it is a Keras model"),
    (b"\x89HDF", "an HDF5 file (old Keras format); load it in a script and give the script"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the real file with `git lfs pull`"),
    (b"\x80\x04\x95", "a Python pickle; give the script that makes the graph"),
    (b"\x80\x05\x95", "a Python pickle; give the script that makes the graph"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"%PDF", "a PDF document"),
)
_MARKUP = re.compile(rb"\s*<(!doctype|html|\?xml|head|body)", re.IGNORECASE)


def read_graph_file(path: str | Path, *, is_ours: bool = False) -> GraphDef:
    """Read a file that holds a GraphDef or a MetaGraphDef; raise `TargetError` for anything else.

    The content decides between binary and text and between the two messages, not the name. A file that TensorFlow wrote
    for us (`is_ours`) may have any number of nodes.
    """
    file = Path(path)
    if file.is_dir():
        raise TargetError(f"{path} is a directory; give a GraphDef file, or a SavedModel directory with saved_model.pb")
    try:
        with open_file(file) as opened:
            is_empty = opened.read(1) == b"\0"  # such as a file that was never filled, of whatever size
        data = b"\0" if is_empty else read_bytes(file)
    except UnreadableError as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    try:
        text = _as_text(data)
        if text is not None and len(data) > LARGEST_MODEL_TEXT and not is_ours:
            raise TargetError(f"text of {len(data):,} bytes; at most {LARGEST_MODEL_TEXT:,} are read, {AS_BINARY}")
        return parse_graph_def(data, is_ours=is_ours) if text is None else parse_text(text, is_ours=is_ours)
    except TargetError as error:
        raise TargetError(f"{path}: {error}") from error.__cause__


def parse_graph_def(data: bytes, *, is_ours: bool = False) -> GraphDef:
    """Parse the bytes of a GraphDef or a MetaGraphDef; raise `TargetError` for anything else; see `read_graph_file`.

    >>> message = protos.message_class("GraphDef")(node=[{"name": "a", "op": "NoOp"}])
    >>> parse_graph_def(message.SerializeToString()).nodes[0].op
    'NoOp'
    """
    _refuse_known_formats(data)
    decoder = _Decoder(data, is_ours)
    graph = decoder.convert(decoder.decode("GraphDef"))
    if graph is not None and _is_plausible(graph):
        return _with_message(graph, data)
    meta = decoder.decode("MetaGraphDef")
    found = decoder.convert_if_plausible(meta.graph_def) if meta is not None and meta.graph_def.node else None
    if found is not None:
        return _with_message(found, meta.graph_def.SerializeToString())
    saved = decoder.decode("SavedModel")
    inner = saved.meta_graphs[0].graph_def if saved is not None and saved.meta_graphs else None
    if decoder.convert_if_plausible(inner) is not None:
        raise TargetError("a SavedModel message; give the directory that holds saved_model.pb instead")
    if decoder.excess is not None:
        raise TargetError(f"cannot be read: {decoder.excess}") from decoder.excess
    if graph is None:
        raise TargetError("not a binary GraphDef: truncated, damaged, or another kind of file; write it again")
    raise TargetError("not a GraphDef: no node with a name and an op in it; write one with tf.io.write_graph")


def parse_text(text: str, *, is_ours: bool = False) -> GraphDef:
    """Parse a GraphDef or MetaGraphDef in protobuf's text format; `TargetError` names the line of a mistake.

    >>> parse_text('node { name: "a" op: "NoOp" }').nodes[0].name
    'a'
    """
    _refuse_known_formats(text[:4096].encode())
    try:
        if not is_ours:
            check_text(text)
        found = from_message(_message_from_text(text))
    except MalformedError as error:
        raise TargetError(f"not a GraphDef in text form, {error}") from error
    except UnreadableError as error:
        raise TargetError(f"cannot be read: {error}") from error
    if not _is_plausible(found):
        raise TargetError("not a GraphDef: no node with a name and an op in it; write one with tf.io.write_graph")
    return found


def from_message(message: Any) -> GraphDef:
    """Convert a `GraphDef` message, of our classes or of TensorFlow's own, without sharing anything with it."""
    data = protos.serialize_message(message)
    try:
        return _with_message(_convert_graph(protos.sealed_class("GraphDef").FromString(data)), data)
    except DecodeError as error:  # what was whole a moment ago is not damaged
        raise protos.too_deep() from error


def _with_message(graph: GraphDef, data: bytes) -> GraphDef:
    return replace(graph, serialized=data) if len(data) <= LARGEST_KEPT else graph


def function_from_message(message: Any) -> FunctionDef:
    """Convert a `FunctionDef` message.

    An argument whose type is an attribute gets the attribute's value where the function has one, else DT_INVALID;
    a list argument becomes one argument per element, called `<name>_<i>`.
    """
    return _convert_function(protos.sealed_class("FunctionDef").FromString(message.SerializeToString()), _NodeReader())


def _convert_function(message: Any, reader: _NodeReader) -> FunctionDef:
    signature = message.signature
    attrs = attrs_from_message(message.attr)
    control_ret = dict(message.control_ret)
    return FunctionDef(
        name=signature.name,
        inputs=_convert_args(signature.input_arg, attrs),
        outputs=_convert_args(signature.output_arg, attrs),
        nodes=reader.nodes(message.node_def),
        ret=dict(message.ret),
        control_ret={key: control_ret[key] for key in sorted(control_ret)},
        control_outputs=tuple(signature.control_output),
        attrs=attrs,
        arg_attrs={i: attrs_from_message(message.arg_attr[i].attr) for i in sorted(message.arg_attr)},
        is_stateful=signature.is_stateful,
        needs=(
            *_needed_type_attrs(signature.input_arg, is_output=False),
            *_needed_type_attrs(signature.output_arg, is_output=True),
        ),
        signature_attrs=tuple((attr.name, attr.HasField("default_value")) for attr in signature.attr),
        removed_in=signature.deprecation.version if signature.HasField("deprecation") else None,
    )


def _needed_type_attrs(args: Any, *, is_output: bool) -> Iterator[NeededAttr]:
    """Yield the attributes that arguments take types from, as `ArgNumType` of framework/function.cc and a call do."""
    for arg in args:
        number = f"{arg.number_attr}*" if arg.number_attr else ""
        types = number + (name_in_messages(arg.type) if arg.type else arg.type_attr)
        where = arg.name, format_arg(arg.name, types, is_ref=arg.is_ref), is_output
        if arg.number_attr:
            yield NeededAttr(arg.number_attr, "" if arg.type_list_attr else "number", *where)
        if arg.type_attr:
            yield NeededAttr(arg.type_attr, "" if arg.type_list_attr or arg.type else "type", *where)
        if arg.type_list_attr:
            yield NeededAttr(arg.type_list_attr, "type list", *where)


def attrs_from_message(attrs: Any) -> Mapping[str, AttrValue]:
    """Convert a map of `AttrValue` messages to plain Python values, as node_def.py lists them.

    A placeholder (`$T` in a function template) becomes its name as a `str`, a value that is not set None.
    """
    if not attrs:
        return _NO_ATTRS
    return {key: attr_value(value) for key, value in attrs.items()}


def attr_value(message: Any) -> AttrValue:
    """Convert one `AttrValue` message."""
    kind = message.WhichOneof("value")
    return None if kind is None else _VALUES[kind](message)


def convert_shape(message: Any) -> Shape:
    """Convert a `TensorShapeProto` message."""
    return None if message.unknown_rank else tuple([dim.size for dim in message.dim])


def data_type(number: int) -> DataType | TypeNumber:
    """Return the `DataType` of a number, or the number itself where there is none (a reference, a newer type).

    >>> data_type(1), data_type(101), data_type(77)
    (<DataType.DT_FLOAT: 1>, 101, 77)
    """
    return _DTYPES.get(number) or TypeNumber(number)


def _convert_graph(message: Any, parts: PartLimit | None = None) -> GraphDef:
    """Convert a sealed message; raise `DecodeError` where attributes in it are damaged.

    `parts` counts what is in its nodes, where that has not been counted; raise `UnreadableError` for too many.
    """
    reader = _NodeReader(parts)
    with paused_collector():
        nodes = reader.nodes(message.node)
        functions = [_convert_function(function, reader) for function in message.library.function]
    return GraphDef(
        nodes,
        {function.name: function for function in functions},
        message.versions.producer,
        message.versions.min_consumer,
        tuple(message.versions.bad_consumers),
        find_library_fault(message.library),
        find_gradient_fault(message.library),
    )


class _NodeReader:
    """Convert sealed nodes; nodes with equal attributes share one mapping, equal names are one string."""

    def __init__(self, parts: PartLimit | None = None) -> None:
        self._parts = parts
        self._entry = protos.message_class("NodeDef.AttrEntry")
        self._known: dict[tuple[bytes, ...], Mapping[str, AttrValue]] = {}
        self._entries: dict[bytes, tuple[str, AttrValue]] = {}

    def nodes(self, messages: Any) -> tuple[NodeDef, ...]:
        known, parts = self._known, self._parts
        nodes = []
        for message in messages:
            attrs = _NO_ATTRS
            entries, texts = message.attr, message.input
            if parts is not None:
                parts.take_node(len(texts), len(entries))
            if entries:  # to ask whether there are any is quicker than to walk through none
                sealed = tuple(entries)
                attrs = known.get(sealed) or self._opened(sealed)
            inputs = tuple(map(intern, texts)) if texts else ()
            nodes.append(NodeDef(intern(message.name), intern(message.op), intern(message.device), inputs, attrs))
        return tuple(nodes)

    def _opened(self, sealed: tuple[bytes, ...]) -> Mapping[str, AttrValue]:
        attrs = dict([self._entries.get(entry) or self._opened_entry(entry) for entry in sealed])
        if sum(map(len, sealed)) <= _LARGEST_SHARED:
            self._known[sealed] = attrs
        return attrs

    def _opened_entry(self, entry: bytes) -> tuple[str, AttrValue]:
        if self._parts is not None:
            self._parts.take_attr(entry)
        message = self._entry.FromString(entry)
        pair = intern(message.key), attr_value(message.value)
        if len(entry) <= _LARGEST_SHARED:
            self._entries[entry] = pair
        return pair


def _convert_tensor(message: Any) -> TensorInfo:
    dims = convert_shape(message.tensor_shape)
    value = _read_scalar(message) if dims == () else None
    has_numbers = message.dtype not in _WITHOUT_NUMBERS and value is None
    content = message.SerializeToString() if has_numbers and message.ByteSize() <= _LARGEST_CONTENT else b""
    return TensorInfo(data_type(message.dtype), dims, value, content)  # type: ignore[arg-type]


def _read_scalar(message: Any) -> int | None:
    field = _SCALAR_FIELDS.get(message.dtype)
    if field is None:
        return None
    if message.tensor_content:
        if len(message.tensor_content) != data_type_size(message.dtype):
            return None
        return int.from_bytes(message.tensor_content, "little", signed=True)
    values = getattr(message, field)
    return int(values[-1]) if values else 0  # tensor.cc: a missing value is zero


_SCALAR_FIELDS = {DataType.DT_INT32: "int_val", DataType.DT_INT64: "int64_val", DataType.DT_BOOL: "bool_val"}


def _convert_func(message: Any) -> FuncRef:
    return FuncRef(message.name, attrs_from_message(message.attr))


def _convert_list(message: Any) -> tuple[Any, ...]:
    """Convert a list; one with values of several kinds, which no op takes, has them all, in the order of the kinds."""
    fields = message.ListFields()
    if len(fields) > 1:
        return tuple(_ELEMENTS.get(field.name, _keep_value)(value) for field, values in fields for value in values)
    for field, values in fields:
        convert = _ELEMENTS.get(field.name)
        return tuple(values) if convert is None else tuple(map(convert, values))
    return ()


def _keep_value(value: Any) -> Any:
    return value


_ELEMENTS: Mapping[str, Callable[[Any], Any]] = {
    "type": data_type,
    "shape": lambda message: ShapeAttr(convert_shape(message)),
    "tensor": _convert_tensor,
    "func": _convert_func,
}

_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "type": lambda message: data_type(message.type),
    "s": lambda message: message.s,
    "i": lambda message: message.i,
    "f": lambda message: message.f,
    "b": lambda message: message.b,
    "shape": lambda message: ShapeAttr(convert_shape(message.shape)),
    "tensor": lambda message: _convert_tensor(message.tensor),
    "func": lambda message: _convert_func(message.func),
    "list": lambda message: _convert_list(message.list),
    "placeholder": lambda message: message.placeholder,
}


def _convert_args(messages: Any, attrs: Mapping[str, AttrValue]) -> tuple[ArgDef, ...]:
    args: list[ArgDef] = []
    for arg in messages:
        types = attrs.get(arg.type_list_attr) if arg.type_list_attr else None
        dtype = data_type(arg.type) if arg.type else attrs.get(arg.type_attr, DataType.DT_INVALID)
        count = attrs.get(arg.number_attr) if arg.number_attr else None
        if isinstance(count, int):
            if not 0 <= count <= MOST_ARGUMENTS:
                raise TargetError(
                    f"argument {arg.name!r} of a function stands for {count:,} tensors; the limit is {MOST_ARGUMENTS:,}"
                )
            types = (dtype,) * count
        if types is None:
            args.append(ArgDef(arg.name, dtype, arg.is_ref))  # type: ignore[arg-type]  # a type newer than ours stays a number
        else:
            args.extend(ArgDef(f"{arg.name}_{i}", one, arg.is_ref) for i, one in enumerate(types))
    return tuple(args)


def _as_text(data: bytes) -> str | None:
    if not data or data.isspace() or _CONTROL_BYTES.search(data):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _refuse_known_formats(data: bytes) -> None:
    if not data or data.isspace():
        raise TargetError("empty, so not a GraphDef; write it again")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise TargetError(f"not a GraphDef but {what}")
    if data[4:8] == b"TFL3":
        raise TargetError("not a GraphDef but a TensorFlow Lite model; give the model it was converted from")
    if _CONTROL_BYTES.search(data):  # a message may begin with a line feed and a length that looks like "{" or "<"
        return
    if _MARKUP.match(data):
        raise TargetError("not a GraphDef but an HTML or XML page; download the file itself")
    if data.lstrip()[:1] in (b"{", b"["):
        raise TargetError("not a GraphDef but JSON, it seems; write a GraphDef with tf.io.write_graph")


class _Decoder:
    """Decode the bytes of a file as messages of several kinds, whose fields are counted together unless they are ours.

    So a file with a great many is refused before it was walked through for each kind. `excess` is why a message was
    not decoded that may be whole.
    """

    def __init__(self, data: bytes, is_ours: bool) -> None:
        self._data = data
        self._is_ours = is_ours
        self._limit = FieldLimit(len(data))
        self._parts: PartLimit | None = None  # of the last message, whose nodes are counted as they are converted
        self.excess: UnreadableError | None = None

    def decode(self, name: str) -> Any:
        """Return a sealed message, None for what is none or has too many parts."""
        try:
            if not self._is_ours:
                self._count(name)
            return protos.sealed_class(name).FromString(self._data)
        except UnreadableError as error:
            self.excess = self.excess or error
            return None
        except (DecodeError, UnicodeDecodeError):
            return None

    def _count(self, name: str) -> None:
        is_small = len(self._data) <= _LARGEST_UNCOUNTED
        self._parts = PartLimit(most_parts(len(self._data))) if is_small else None
        check_count(name, self._data, sealed=True, parts=self._parts, limit=self._limit, into_nodes=not is_small)

    def convert(self, message: Any) -> GraphDef | None:
        """Return the graph in the message that was decoded last, None for what is none or has too many parts."""
        try:
            return None if message is None else _convert_graph(message, self._parts)
        except UnreadableError as error:
            self.excess = self.excess or error
            return None
        except (DecodeError, UnicodeDecodeError):  # in an attribute
            return None

    def convert_if_plausible(self, message: Any) -> GraphDef | None:
        """Return the same, but None for what is no graph of named nodes."""
        graph = self.convert(message)
        return graph if graph is not None and _is_plausible(graph) else None


def _is_plausible(graph: GraphDef) -> bool:
    if not graph.nodes:
        return bool(graph.library) and all(graph.library)
    ops = {node.op for node in graph.nodes} - graph.library.keys()  # TensorFlow checks no name of a function
    return all(node.name for node in graph.nodes) and all(map(_OP_NAME.match, ops))


def _message_from_text(text: str) -> Any:
    """Parse a GraphDef, or the one in a MetaGraphDef; for anything else report its first error as a GraphDef."""
    try:
        return protos.from_text("GraphDef", text)
    except MalformedError as mistake:
        try:
            meta = protos.from_text("MetaGraphDef", text)
        except MalformedError:
            raise mistake from None
        if not meta.graph_def.node:
            raise
        return meta.graph_def
