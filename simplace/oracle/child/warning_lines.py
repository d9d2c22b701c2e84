"""Python's warnings name the line that they would name without simplace's own frames on the stack."""

from __future__ import annotations

import functools
import inspect
import warnings
from types import FrameType
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.source_lines import OWN


def skip_own_frames() -> None:
    """Leave simplace's frames out of the `stacklevel` of warnings from now on."""
    patch_method(warnings, "warn", _count_foreign)


def _count_foreign(warn: Any) -> Any:
    @functools.wraps(warn)
    def warn_at(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
        warn(message, category, 1 + _find_level(inspect.currentframe(), stacklevel), *args, **kwargs)

    return warn_at


def _find_level(frame: FrameType | None, stacklevel: int) -> int:
    """Return how far above `frame`, itself being 1, the frame is that is the `stacklevel`th foreign one.

    As `warnings` does, it passes over the frames of the import system.
    """
    level, foreign = 1, 0
    while frame is not None:
        file = frame.f_code.co_filename
        foreign += not file.startswith(OWN) and not _is_of_import(file)
        if foreign >= max(stacklevel, 1):
            return level
        level += not _is_of_import(file)
        frame = frame.f_back
    return level


def _is_of_import(file: str) -> bool:
    return "importlib" in file and "_bootstrap" in file
