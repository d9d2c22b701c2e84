"""The nodes that a run of a session puts where it feeds and fetches, before placement or after it.

Mirrors the rewrites of tensorflow/core/graph/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from simplace.graph.dtypes import DataType, base_type

FED_SHAPE = "_fed_shape"  # the attribute of an argument for the shape that the graph itself says a fed tensor has


class Rewrite(NamedTuple):
    """Name the node that takes the place of a fed tensor, or that a fetched one is handed to."""

    name: str
    op: str
    attrs: Mapping[str, Any]
    types: tuple[tuple[int, ...], tuple[int, ...]]


def feed_rewrite(name: str, slot: int, dtype: int, index: int) -> Rewrite:
    """Return argument `index`, or for -1 what is received (ArgFeedRewrite, RecvFeedRewrite)."""
    kind, types = DataType(base_type(dtype)), ((), (base_type(dtype),))
    if index < 0:
        return Rewrite(f"_recv_{name}_{slot}", "_Recv", {"tensor_type": kind}, types)
    return Rewrite(f"_arg_{name}_{slot}_{index}", "_Arg", {"T": kind, "index": index}, types)


def fetch_rewrite(name: str, slot: int, dtype: int, index: int) -> Rewrite:
    """Return result `index`, or for -1 what is sent (RetvalFetchRewrite, SendFetchRewrite)."""
    kind, types = DataType(base_type(dtype)), ((base_type(dtype),), ())
    if index < 0:
        return Rewrite(f"_send_{name}_{slot}", "_Send", {"T": kind}, types)
    return Rewrite(f"_retval_{name}_{slot}_{index}", "_Retval", {"T": kind, "index": index}, types)


def connection_rewrite(name: str, slot: int, dtype: int) -> Rewrite:
    """Return what forwards the output that takes the place of another one (TensorConnectionPruneRewrite)."""
    types = ((base_type(dtype),), (base_type(dtype),))
    return Rewrite(f"_identity_{name}_{slot}", "Identity", {"T": DataType(base_type(dtype))}, types)
