"""Check whether a TensorFlow version accepts a GraphDef's versions, with TensorFlow's messages.

Mirrors `CheckVersions` of tensorflow/core/framework/versions.cc, and the forward compatibility window of
tensorflow/core/common_runtime/graph_constructor.cc.
"""

from __future__ import annotations

from simplace.graph.node_def import GraphDef

_WINDOW = 21  # days; the version of GraphDefs grows by one a day
_MIN_PRODUCER = 0  # public/version.h: TF_GRAPH_DEF_VERSION_MIN_PRODUCER, in every release since 0.6


def find_version_fault(graph: GraphDef, consumer: int, tensorflow: str) -> str:
    """Return why the release `tensorflow`, whose graphs have the version `consumer`, does not read a graph.

    >>> find_version_fault(GraphDef((), {}, min_consumer=9), 7, "2.0.0")
    'GraphDef min consumer version 9 above current version 7 for TensorFlow 2.0.0.  Please upgrade TensorFlow.'
    """
    if graph.producer < _MIN_PRODUCER:
        return (
            f"GraphDef producer version {graph.producer} below min producer {_MIN_PRODUCER} supported by TensorFlow "
            f"{tensorflow}.  Please regenerate your graph."
        )
    if graph.min_consumer > consumer:
        return (
            f"GraphDef min consumer version {graph.min_consumer} above current version {consumer} for TensorFlow "
            f"{tensorflow}.  Please upgrade TensorFlow."
        )
    if consumer in graph.bad_consumers:
        return (
            f"GraphDef disallows consumer version {consumer}.  Please upgrade TensorFlow: this version is likely buggy."
        )
    return ""


def with_version_warning(fault: str, producer: int, consumer: int) -> str:
    """Add to a reason that the graph is newer than what this TensorFlow can be expected to read, where it is."""
    if not fault or producer - consumer <= _WINDOW:
        return fault
    return (
        f"Converting GraphDef to Graph has failed with an error: '{fault}' The binary trying to import the GraphDef "
        f"was built when GraphDef version was {consumer}. The GraphDef was produced by a binary built when GraphDef "
        f"version was {producer}. The difference between these versions is larger than TensorFlow's forward "
        "compatibility guarantee, and might be the root cause for failing to import the GraphDef."
    )
