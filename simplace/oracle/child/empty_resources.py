"""Empty variables and iterators in the place of a call's own: the call is placed as before, and changes nothing.

A call on another task begins as soon as it is placed; nothing here can cancel it in between. With its own resources it
would take elements from some iterators and update some variables before it comes to an op that an emulated GPU does
not compute. What reads an empty variable fails, and so does what takes an iterator for another kind of resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tensors import is_variable, make_empty_variable
from simplace.oracle.child.tf_private import record


def has_resources(inputs: Sequence[Any]) -> bool:
    """Return whether an input is a handle."""
    return any(map(_is_resource, inputs))


@contextmanager
def replace_resources(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the inputs with an empty resource on the same device for each handle."""
    with record.stop_recording():
        empty = {id(tensor): _make_empty(tensor) for tensor in inputs if _is_resource(tensor)}
        try:
            yield [empty.get(id(tensor), tensor) for tensor in inputs]
        finally:
            for handle in empty.values():
                tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)


def _is_resource(tensor: Any) -> bool:
    return bool(getattr(tensor, "dtype", None) == tf.resource)


def _make_empty(handle: Any) -> Any:
    with tf.device(handle.device):
        if not is_variable(handle):  # what TensorFlow instantiates a call for depends on what handles tell
            return tf.raw_ops.AnonymousIteratorV3(output_types=[tf.float32], output_shapes=[tf.TensorShape(None)])
        return make_empty_variable(handle)
