"""A graph from a file, placed by TensorFlow itself under the emulated devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from simplace.oracle.child.boundary import is_own, raise_as_theirs, wrap_foreign
from simplace.oracle.child.loaded_graphs import change_loaded_graphs
from simplace.oracle.child.tensors import make_zeros
from simplace.oracle.child.unexecuted import silence_debug_ops
from simplace.oracle.child.xla_functions import drop_attributes
from simplace.oracle.protocol import Options


class NotImportedError(Exception):
    """Report a graph or SavedModel that TensorFlow refuses before it places anything of it."""


@contextmanager
def _tell_refusal(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_own(error):
            raise
        raise NotImportedError(f"TensorFlow refuses this {what}: {error}") from error


def place_graph(path: str, options: Options) -> None:
    """Import a serialized GraphDef into a session; TensorFlow places the graph at once."""
    graph = tf.Graph()
    with _tell_refusal("graph"), graph.as_default():
        definition = _read_graph(Path(path).read_bytes())
        silence_debug_ops(definition)
        if not options.jit:
            drop_attributes(definition)
        wrap_foreign(tf.graph_util.import_graph_def)(definition, name="")
    config = tf.compat.v1.ConfigProto(allow_soft_placement=bool(options.soft_placement))
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        wrap_foreign(session._extend_graph)()


def _read_graph(data: bytes) -> Any:
    try:
        return wrap_foreign(tf.compat.v1.GraphDef.FromString)(data)
    except DecodeError:
        return wrap_foreign(text_format.Parse)(data, tf.compat.v1.GraphDef())


def call_saved_model(directory: str, options: Options) -> None:
    """Load a SavedModel and call its signatures with zeros, or the one that is requested, by name."""
    change_loaded_graphs(silence_debug_ops)
    with _tell_refusal("SavedModel"):
        loaded = wrap_foreign(tf.saved_model.load)(directory, tags=list(options.tags) or None)
    names = sorted(loaded.signatures)
    if options.signature and options.signature not in names:
        listed = ", ".join(names) or "none"
        raise_as_theirs(ValueError(f"the SavedModel has no signature {options.signature!r}, only: {listed}"))
    for name in [options.signature] if options.signature else names:
        signature = loaded.signatures[name]
        arguments: dict[str, Any] = signature.structured_input_signature[1]
        given = {key: tf.constant(make_zeros(spec.dtype, spec.shape), spec.dtype) for key, spec in arguments.items()}
        wrap_foreign(signature)(**given)
