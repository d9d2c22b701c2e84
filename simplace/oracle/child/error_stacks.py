"""Stacks in the texts of TensorFlow's errors: they have no frames of simplace."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.source_lines import OWN
from simplace.oracle.child.tf_private import error_utils, tf_stack


def leave_out_own_frames() -> None:
    """Write errors of functions that AutoGraph converted, and of nodes, as they would be without simplace."""
    patch_method(error_utils, "_stack_trace_inside_mapped_code", _of_foreign)
    own = frozenset(map(str, Path(__file__).parents[1].rglob("*.py")))
    patch_method(tf_stack.SentinelFilter, "get_filtered_filenames", lambda _: lambda self: own)
    patch_method(tf_stack.SentinelFilter, "__init__", _updating)
    for first, *_ in tf_stack._source_filter_stacks.values():
        first.update()


def _updating(create: Any) -> Any:
    def create_updated(self: Any) -> None:
        create(self)
        self.update()

    return create_updated


def _of_foreign(summarize: Any) -> Any:
    @functools.wraps(summarize)
    def summarize_foreign(stack: Any, *args: Any) -> Any:
        return summarize([frame for frame in stack if not frame.filename.startswith(OWN)], *args)

    return summarize_foreign
