"""TensorFlow's protobuf message classes without TensorFlow, in a descriptor pool of their own.

The descriptors are those of TensorFlow 2.21's own .proto files, written by `simplace.kernels.capture`. The pool is
private, so that a TensorFlow imported into the same process keeps its classes and we keep ours.
"""

from __future__ import annotations

import gzip
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_DESCRIPTORS = "tensorflow_protos.binpb.gz"


@lru_cache(maxsize=1)
def pool() -> Any:
    """Give the private descriptor pool, filled at the first call (about 10 ms)."""
    packed = files("simplace.importers").joinpath("data", _DESCRIPTORS).read_bytes()
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(gzip.decompress(packed))
    filled = descriptor_pool.DescriptorPool()
    for file in descriptors.file:  # written dependencies first
        filled.Add(file)
    return filled


@cache
def message_class(name: str) -> Any:
    """Give the class of the message `tensorflow.<name>`; raise `KeyError` for an unknown one.

    >>> message_class("NodeDef")(name="a", op="Const").op
    'Const'
    """
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"tensorflow.{name}"))


@cache
def enum_names(name: str) -> dict[int, str]:
    """Map the numbers of the enum `tensorflow.<name>` to their names.

    >>> enum_names("FullTypeId")[3]
    'TFT_PRODUCT'
    """
    enum = pool().FindEnumTypeByName(f"tensorflow.{name}")
    return {value.number: value.name for value in enum.values}
