"""Texts that a run takes in place of the user's Python files, as if they had been edited; no file is written."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

_texts: dict[str, str] = {}


def replace_sources(sources: Iterable[tuple[str, str]]) -> None:
    """Replace the texts of files for imports, `read_source` and what reads source lines (tracebacks, AutoGraph)."""
    _texts.update(sources)
    if not _texts:
        return
    sys.meta_path.insert(0, _Finder())
    read_lines = linecache.updatecache

    def updatecache(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        return _keep_lines(filename) or read_lines(filename, module_globals)

    linecache.updatecache = updatecache  # all other functions of linecache read files by it, as AutoGraph does


def read_source(script: str) -> bytes:
    """Return the source of a script: its replacement if it has one."""
    text = _text_of(script)
    return Path(script).read_bytes() if text is None else _encode(text)


class _Loader(SourceFileLoader):
    """Loads a module of a replaced file; no compiled copy is read, and none is written."""

    def get_data(self, path: str) -> bytes:
        text = _text_of(path)
        return super().get_data(path) if text is None else _encode(text)

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is replaced, so there is no time of its last change")


class _Finder(MetaPathFinder):
    """Finds the modules of replaced files where Python does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or _text_of(spec.origin) is None:
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def _text_of(path: str) -> str | None:
    return _texts.get(os.path.realpath(path)) if _texts else None


def _encode(text: str) -> bytes:
    """Return UTF-8 that says so, and blank a declaration of another encoding: a comment of the first two lines."""
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines[:2]):
        if line.lstrip().startswith("#") and "coding" in line:
            lines[i] = "#" + line[len(line.rstrip("\r\n")) :]
    return b"\xef\xbb\xbf" + "".join(lines).encode()


def _keep_lines(name: str) -> list[str]:
    """Keep the lines of a replaced file in linecache, without a time of change, so that no file is looked at."""
    text = _text_of(name)
    if text is None:
        return []
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    return lines
