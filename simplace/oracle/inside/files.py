"""A graph from a file, placed by TensorFlow itself under the emulated devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from simplace.oracle.inside.functions import zeros
from simplace.oracle.messages import Options


def place_graph(path: str, options: Options) -> None:
    """Import a serialized GraphDef into a session and hand the graph to TensorFlow, which places it at once."""
    definition = _read(Path(path).read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(definition, name="")
    config = tf.compat.v1.ConfigProto(allow_soft_placement=bool(options.soft_placement))
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session._extend_graph()


def _read(data: bytes) -> Any:
    try:
        return tf.compat.v1.GraphDef.FromString(data)
    except DecodeError:
        return text_format.Parse(data, tf.compat.v1.GraphDef())


def call_saved_model(directory: str, options: Options) -> None:
    """Load a SavedModel and call its signatures with zeros, or the one that is asked for, by name."""
    loaded = tf.saved_model.load(directory, tags=list(options.tags) or None)
    names = sorted(loaded.signatures)
    if options.signature and options.signature not in names:
        listed = ", ".join(names) or "none"
        raise ValueError(f"the SavedModel has no signature {options.signature!r}, only: {listed}")
    for name in [options.signature] if options.signature else names:
        signature = loaded.signatures[name]
        arguments: dict[str, Any] = signature.structured_input_signature[1]
        signature(**{key: tf.constant(zeros(spec.dtype, spec.shape), spec.dtype) for key, spec in arguments.items()})
