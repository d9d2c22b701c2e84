"""Errors in functions that AutoGraph has converted: the stack in their text has no frames of simplace."""

from __future__ import annotations

import functools
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.source_lines import OWN
from simplace.oracle.child.tf_private import error_utils


def leave_out_own_frames() -> None:
    """Write such errors from now on as they would be without simplace."""
    patch_method(error_utils, "_stack_trace_inside_mapped_code", _of_foreign)


def _of_foreign(summarize: Any) -> Any:
    @functools.wraps(summarize)
    def summarize_foreign(stack: Any, *args: Any) -> Any:
        return summarize([frame for frame in stack if not frame.filename.startswith(OWN)], *args)

    return summarize_foreign
