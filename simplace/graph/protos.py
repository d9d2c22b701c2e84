"""TensorFlow's protobuf message classes without TensorFlow, in a descriptor pool of their own.

The descriptors are those of TensorFlow 2.21's own .proto files, written by `simplace.oracle.child.capture`. The pool is
private, so that a TensorFlow imported into the same process keeps its classes and we keep ours.
"""

from __future__ import annotations

import gzip
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import EncodeError

from simplace.errors import MalformedError, UnreadableError
from simplace.input_file import DEEPEST

_DESCRIPTORS = Path(__file__).with_name("data") / "tensorflow_protos.binpb.gz"
_LONGEST_REASON = 200


@lru_cache(maxsize=1)
def get_descriptor_pool() -> Any:
    """Return the private descriptor pool, filled at the first call (about 1 ms)."""
    return _fill_pool(_read_descriptors())


@cache
def message_class(name: str) -> Any:
    """Return the class of the message `tensorflow.<name>`; raise `KeyError` for an unknown one.

    >>> message_class("NodeDef")(name="a", op="Const").op
    'Const'
    """
    return message_factory.GetMessageClass(get_descriptor_pool().FindMessageTypeByName(f"tensorflow.{name}"))


@cache
def sealed_class(name: str) -> Any:
    """Return the same class, except that the attributes of a node and the kernels of a list are bytes, one for each.

    The encoding is the same. Most nodes of a large graph share their attributes with others, which equal bytes show
    before anything is decoded; of all kernels, few are asked for.

    >>> node = message_class("NodeDef")(attr={"N": {"i": 1}})
    >>> list(sealed_class("NodeDef").FromString(node.SerializeToString()).attr)
    [b'\\n\\x01N\\x12\\x02\\x18\\x01']
    """
    return message_factory.GetMessageClass(_sealed_pool().FindMessageTypeByName(f"tensorflow.{name}"))


def from_text(name: str, text: str) -> Any:
    """Parse a message in protobuf's text format; `MalformedError` names the line of a mistake.

    >>> from_text("NodeDef", 'name: "a"').name
    'a'
    """
    message = message_class(name)()
    try:
        text_format.Parse(text, message, descriptor_pool=get_descriptor_pool())
    except text_format.ParseError as error:
        raise MalformedError(f"line {error.GetLine() or 1}: {_shorten_parse_error(error)}") from error
    except RecursionError:
        raise too_deep() from None
    return message


def serialize_message(message: Any) -> bytes:
    """Return the bytes of a message; raise `UnreadableError` for one that is nested deeper than can be encoded."""
    try:
        return bytes(message.SerializeToString())
    except EncodeError:
        raise too_deep() from None


def too_deep() -> UnreadableError:
    """Return the refusal of a message that is nested deeper than protobuf decodes."""
    return UnreadableError(f"it is nested more than {DEEPEST} levels deep")


def _shorten_parse_error(error: text_format.ParseError) -> str:
    words = re.sub(r"^\d+:\d+\s*:\s*", "", str(error)).splitlines()
    said = words[0].strip().rstrip(".") if words else "not protobuf text"
    return said if len(said) <= _LONGEST_REASON else said[:_LONGEST_REASON] + "..."


@cache
def enum_names(name: str) -> dict[int, str]:
    """Map the numbers of the enum `tensorflow.<name>` to their names.

    >>> enum_names("FullTypeId")[3]
    'TFT_PRODUCT'
    """
    enum = get_descriptor_pool().FindEnumTypeByName(f"tensorflow.{name}")
    return {value.number: value.name for value in enum.values}


@lru_cache(maxsize=1)
def _sealed_pool() -> Any:
    descriptors = _read_descriptors()
    for file in descriptors.file:
        for message in file.message_type:
            if message.name == "NodeDef":
                (attr,) = (field for field in message.field if field.name == "attr")
                attr.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                attr.ClearField("type_name")
                entry = [nested.name for nested in message.nested_type].index("AttrEntry")
                del message.nested_type[entry]  # a map's entry must not be there without the map
            elif message.name == "KernelList":
                message.field[0].type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                message.field[0].ClearField("type_name")
    return _fill_pool(descriptors)


def _read_descriptors() -> Any:
    return descriptor_pb2.FileDescriptorSet.FromString(gzip.decompress(_DESCRIPTORS.read_bytes()))


def _fill_pool(descriptors: Any) -> Any:
    filled = descriptor_pool.DescriptorPool()
    for file in descriptors.file:  # written dependencies first
        filled.Add(file)
    return filled
