"""The few protobuf messages of a TensorBoard event file, with TensorFlow's names and field numbers.

They follow tensorflow/core/util/event.proto and tensorflow/core/framework/step_stats.proto, and leave out what a graph
with step times does not need. Their pool is private, as in `simplace.importers.protos`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tensorflow"
_SCALARS = {
    "double": _FIELD.TYPE_DOUBLE, "int64": _FIELD.TYPE_INT64, "string": _FIELD.TYPE_STRING, "bytes": _FIELD.TYPE_BYTES,
}  # fmt: skip

# message: (field, number, type); a type that ends in * is repeated
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Event": (
        ("wall_time", 1, "double"), ("step", 2, "int64"), ("file_version", 3, "string"), ("graph_def", 4, "bytes"),
        ("tagged_run_metadata", 8, "TaggedRunMetadata"),
    ),
    "TaggedRunMetadata": (("tag", 1, "string"), ("run_metadata", 2, "bytes")),
    "RunMetadata": (("step_stats", 1, "StepStats"),),
    "StepStats": (("dev_stats", 1, "DeviceStepStats*"),),
    "DeviceStepStats": (("device", 1, "string"), ("node_stats", 2, "NodeExecStats*")),
    "NodeExecStats": (
        ("node_name", 1, "string"), ("all_start_micros", 2, "int64"), ("op_start_rel_micros", 3, "int64"),
        ("op_end_rel_micros", 4, "int64"), ("all_end_rel_micros", 5, "int64"), ("timeline_label", 8, "string"),
    ),
}  # fmt: skip


@cache
def message_class(name: str) -> Any:
    """Give the class of the message `tensorflow.<name>`.

    >>> message_class("Event")(file_version="brain.Event:2").file_version
    'brain.Event:2'
    """
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@lru_cache(maxsize=1)
def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="simplace/events.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            _add(message, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add(message: Any, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        field.type = scalar
        return
    field.type = _FIELD.TYPE_MESSAGE
    field.type_name = f".{_PACKAGE}.{kind.removesuffix('*')}"
