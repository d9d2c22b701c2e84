"""The name scopes in which layers of Keras make their ops: a scope's name may differ from the layer's by a number."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import tensorflow as tf

from simplace.oracle.child.after_import import after_import
from simplace.oracle.child.patches import patch_method


def watch_layer_scopes() -> None:
    """Note from now on which scope of which graph is a layer's."""
    after_import("keras.src.backend.tensorflow.core", _watch_scopes)


def list_layer_scopes(graph: Any) -> dict[str, str]:
    """Map the scopes of a graph in which a layer made ops to the layer's name, where the two differ."""
    return dict(getattr(graph, "_simplace_layers", {}))


def _watch_scopes(core: ModuleType) -> None:
    patch_method(core.name_scope, "__enter__", _note_scope)


def _note_scope(enter: Any) -> Any:
    def enter_noted(scope: Any) -> Any:
        entered = enter(scope)
        if scope.caller is not None and not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            path = graph.get_name_scope()
            if path and path.rpartition("/")[2] != scope.name:
                graph._simplace_layers = {**list_layer_scopes(graph), path: scope.name}
        return entered

    return enter_noted
