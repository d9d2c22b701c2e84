"""A graph from a file, placed by TensorFlow itself under the emulated devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.python.saved_model import loader_impl

from simplace.oracle.child.boundary import raise_as_theirs, theirs
from simplace.oracle.child.functions import zeros
from simplace.oracle.child.unexecuted import silence_debug_ops
from simplace.oracle.child.xla_functions import drop_attributes
from simplace.oracle.protocol import Options


def place_graph(path: str, options: Options) -> None:
    """Import a serialized GraphDef into a session and hand the graph to TensorFlow, which places it at once."""
    definition = _read(Path(path).read_bytes())
    _silence(definition)
    if not options.jit:
        drop_attributes(definition)
    graph = tf.Graph()
    with graph.as_default():
        theirs(tf.graph_util.import_graph_def)(definition, name="")
    config = tf.compat.v1.ConfigProto(allow_soft_placement=bool(options.soft_placement))
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        theirs(session._extend_graph)()


def _read(data: bytes) -> Any:
    try:
        return tf.compat.v1.GraphDef.FromString(data)
    except DecodeError:
        return theirs(text_format.Parse)(data, tf.compat.v1.GraphDef())


def _silence(definition: Any) -> None:
    silence_debug_ops(definition.node)
    for function in definition.library.function:
        silence_debug_ops(function.node_def)


def _silence_what_is_parsed() -> None:
    parse = loader_impl.parse_saved_model

    def parse_silenced(directory: str) -> Any:
        model = parse(directory)
        for meta in model.meta_graphs:
            _silence(meta.graph_def)
        return model

    loader_impl.parse_saved_model = parse_silenced


def call_saved_model(directory: str, options: Options) -> None:
    """Load a SavedModel and call its signatures with zeros, or the one that is asked for, by name."""
    _silence_what_is_parsed()
    loaded = theirs(tf.saved_model.load)(directory, tags=list(options.tags) or None)
    names = sorted(loaded.signatures)
    if options.signature and options.signature not in names:
        listed = ", ".join(names) or "none"
        raise_as_theirs(ValueError(f"the SavedModel has no signature {options.signature!r}, only: {listed}"))
    for name in [options.signature] if options.signature else names:
        signature = loaded.signatures[name]
        arguments: dict[str, Any] = signature.structured_input_signature[1]
        given = {key: tf.constant(zeros(spec.dtype, spec.shape), spec.dtype) for key, spec in arguments.items()}
        theirs(signature)(**given)
