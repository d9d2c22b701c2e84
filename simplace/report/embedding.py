"""Embed data in a page as JSON: long columns apart, so that a browser parses each when it is first read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

LISTS = ("explanations", "sentences")  # columns of lists of numbers
_LONG = 4096  # entries of a column that has an element of its own


def embed_json(name: str, data: object) -> str:
    """Return an element with data in which nothing can end it: JSON in ASCII, without "<"."""
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{content}</script>'


def embed_columns(name: str, data: Mapping[str, Any]) -> str:
    """Return the elements of a record of columns, and of records in it.

    A long list has an element of its own, called "name.key" or "name.key.key"; where it was, the record has None, and
    "aside" lists the paths of all of them (program.js puts them in their places). Of those that `LISTS` names, the
    element has the lengths of their entries and, in one list, what the entries contain: that is parsed faster.
    """
    aside: dict[str, Any] = {}
    kept = _put_aside(data, "", aside)
    parts = [embed_json(f"{name}.{path}", column) for path, column in aside.items()]
    return "\n".join([embed_json(name, {**kept, "aside": list(aside)}), *parts])


def _put_aside(data: Mapping[str, Any], prefix: str, aside: dict[str, Any]) -> dict[str, Any]:
    """Return a record without its long lists, which are added to `aside` by their paths."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            kept[key] = _put_aside(value, f"{prefix}{key}.", aside)
        elif _is_long(value):
            aside[prefix + key], kept[key] = _flatten_lists(value) if key in LISTS else value, None
        else:
            kept[key] = value
    return kept


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(value) >= _LONG


def _flatten_lists(column: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    return {"lengths": [len(entry) for entry in column], "values": list(chain.from_iterable(column))}
