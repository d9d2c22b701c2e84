"""Parse a target as the user names it: "model.py", "model.py:function", "directory", "graph.pb"."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from simplace.errors import TargetError, UnreadableError, join_alternatives, join_choices
from simplace.input_file import check_name

Kind = Literal["script", "graph", "saved_model", "keras"]
GRAPH_SUFFIXES = (".pb", ".pbtxt", ".graphdef", ".meta")


@dataclass(frozen=True, slots=True)
class Target:
    """Record of a target taken apart; `function` narrows a script to a function, or a SavedModel to a signature."""

    path: Path
    kind: Kind
    function: str = ""


def parse_target(text: str, *, has_signatures: bool = False) -> Target:
    """Return what the user named: a script, a model file, or a function of one; raise `TargetError` for no such file.

    With `has_signatures` a SavedModel may have one of its signatures named, too.
    """
    path, function = Path(text), ""
    if not os.path.exists(text) and ":" in text:
        file, _, name = text.rpartition(":")
        if os.path.exists(file) or file.endswith(".py"):
            path, function = Path(file), name
    if not text or not os.path.exists(path):
        raise TargetError(f"{path if text else repr(text)}: {_not_there(path)}")
    if path.suffix == ".py" and path.is_file():
        return Target(path, "script", function)
    if path.is_dir() and has_signatures:
        return Target(path, "saved_model", function)
    if function:
        raise TargetError(f"{text}: only a script takes ':function'; try: simplace show {path} --program {function}")
    if path.is_dir():
        return Target(path, "saved_model")
    if path.suffix == ".keras":
        return Target(path, "keras")
    if path.suffix in GRAPH_SUFFIXES:
        return Target(path, "graph")
    if path.suffix == ".ipynb":
        raise TargetError(
            f"{path}: a notebook is not a script; make one of it (jupyter nbconvert --to script {path}), or in the "
            "notebook itself observe a cell with: with simplace.watch():"
        )
    known = join_choices([".py", ".keras", *GRAPH_SUFFIXES])
    raise TargetError(f"{path}: unknown file type; simplace reads {known} and SavedModel directories")


def _not_there(path: Path) -> str:
    """Return why a file does not exist, and what to give instead."""
    try:
        check_name(str(path))
    except UnreadableError as error:
        return str(error)
    if path.is_symlink():
        return "a symbolic link to a file that does not exist, or to itself; give the file"
    return f"no such file or directory; {_suggest_file(path)}"


def _suggest_file(path: Path) -> str:
    """Name the most similar file beside one that is not there."""
    from difflib import get_close_matches

    beside = os.listdir(path.parent) if os.access(path.parent, os.R_OK) and path.parent.is_dir() else []
    known = [name for name in beside if Path(name).suffix in (".py", ".keras", *GRAPH_SUFFIXES)]
    close = [name for name in known if Path(name).stem == path.name]
    close = close or get_close_matches(path.name, known, n=3, cutoff=0.8)
    if close:
        return f"did you mean {join_alternatives([str(path.parent / name) for name in sorted(close)])}?"
    return "give a script, a SavedModel directory or a graph file"
