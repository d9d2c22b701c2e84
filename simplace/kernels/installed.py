"""The version of the installed TensorFlow, read without importing it."""

from __future__ import annotations

import importlib.metadata

_PACKAGES = ("tensorflow", "tensorflow-cpu")


def installed_version() -> str | None:
    """Give the version of the TensorFlow that this Python would import, None where there is none."""
    for name in _PACKAGES:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
