"""The version of the installed TensorFlow, read without importing it."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGES = ("tensorflow", "tensorflow-cpu")
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")  # on Linux; the second needs the first


def installed_version() -> str | None:
    """Return the version of the TensorFlow that this Python would import, None where there is none.

    An installed package has a folder `<name>-<version>.dist-info` beside it; where there is none, an older form of
    installing is looked for with importlib.metadata, whose import takes longer than all else here.
    """
    folders = [Path(folder) for folder in sys.path if folder]
    names = [name.replace("-", "_") for name in _PACKAGES]
    infos = (info for name in names for folder in folders for info in folder.glob(f"{name}-*.dist-info"))
    found = next(infos, None)
    return found.stem.partition("-")[2] if found is not None else _in_an_older_form()


def installed_libraries() -> list[str]:
    """Return the files of the C library of the TensorFlow that this Python would import, [] where there are none."""
    packages = (Path(folder, "tensorflow") for folder in sys.path if folder)
    package = next((package for package in packages if package.is_dir()), None)
    files = [] if package is None else [package / name for name in _LIBRARIES]
    return [str(file) for file in files] if all(file.is_file() for file in files) else []


def _in_an_older_form() -> str | None:
    import importlib.metadata

    for name in _PACKAGES:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
