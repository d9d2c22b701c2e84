"""The graphs of SavedModels, changed before TensorFlow loads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.tf_private import loader_impl

_changes: list[Callable[[Any], None]] = []


def change_loaded_graphs(change: Callable[[Any], None]) -> None:
    """Apply `change` to each GraphDef of the SavedModels that are loaded from now on, after the earlier changes."""
    if not _changes:
        patch_method(loader_impl, "parse_saved_model", _parse_changed)
    _changes.append(change)


def list_node_defs(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a GraphDef, then those of its functions."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _parse_changed(parse: Any) -> Any:
    def parse_and_change(directory: str) -> Any:
        model = parse(directory)
        for meta in model.meta_graphs:
            for change in _changes:
                change(meta.graph_def)
        return model

    return parse_and_change
