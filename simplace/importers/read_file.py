"""Read the programs of a model file: a graph, a SavedModel, a .keras file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from simplace.graph import graph_def
from simplace.importers.target import Kind, Target
from simplace.program.program import Program


def read_file(target: Target, tensorflow: str | None) -> list[Program]:
    """Return the programs in the order of the file; `tensorflow` is the version that would place them."""
    return _READERS[target.kind](target.path, tensorflow)


def _read_graph(path: Path, _: str | None) -> list[Program]:
    return [Program(path.stem, "graph", graph_def.read_graph_file(path), soft_placement=False)]


def _read_saved_model(path: Path, _: str | None) -> list[Program]:
    from simplace.importers import saved_model

    return list(saved_model.read_saved_model(path))


def _read_keras(path: Path, version: str | None) -> list[Program]:
    from simplace.importers import keras_file

    return list(keras_file.read_keras_file(path, version))


_READERS: Mapping[Kind, Callable[[Path, str | None], list[Program]]] = {
    "graph": _read_graph,
    "saved_model": _read_saved_model,
    "keras": _read_keras,
}
