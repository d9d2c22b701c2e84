"""Make any text safe to show: visible characters only, shortened in the middle."""

from __future__ import annotations

import re

ELLIPSIS = "…"
_UNSHOWABLE = "\ufffd"
_LEAST_NAME = 8  # characters of a title's name
_PICTURES = {"\n": "↵", "\r": "↵", "\t": "⇥"}
_LINE_BREAKS = "\u2028\u2029"
_DIRECTION_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_NOT_XML = "\ufffe\uffff"


def visible(text: str) -> str:
    r"""Replace each character that a drawing, XML or a terminal would not show as itself.

    Line breaks and tabs become arrows; other control characters, lone surrogates and marks that reorder the text
    around them become U+FFFD. The length in characters stays.

    >>> visible("a\nb\x1b[31m")
    'a↵b�[31m'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible_character, text))


def visible_lines(text: str) -> str:
    r"""Return a text of several lines that a terminal shows as it is: `visible`, but for line breaks and tabs.

    >>> visible_lines("a\tb\n\x1b[31mred\r")
    'a\tb\n�[31mred↵'
    """
    return "".join(part if part in "\n\t" else visible(part) for part in re.split(r"([\n\t])", text))


def elide(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters with an ellipsis in its middle, keeping one more at the end than before it.

    The end of a name tells more than its start: `.../dense/MatMul`. A limit below 1 counts as 1.

    >>> elide("sequential/dense/MatMul", 12)
    'seque…MatMul'
    >>> elide("short", 12)
    'short'
    """
    if len(text) <= limit:
        return text
    kept = max(limit - 1, 0)
    tail = (kept + 1) // 2
    return text[: kept - tail] + ELLIPSIS + text[len(text) - tail :]


def elide_title(text: str, limit: int) -> str:
    """Shorten a title to `limit` characters: what stands before its first ": ", the name, gives way to what is said.

    Where eight characters of the name would not be left, it is shortened as any text.

    >>> elide_title("train_step (model.py:24): 1.82 ms", 20)
    'train…y:24): 1.82 ms'
    """
    name, colon, said = text.partition(": ")
    room = limit - len(colon + said)
    return elide(name, room) + colon + said if colon and room >= _LEAST_NAME else elide(text, limit)


def _visible_character(character: str) -> str:
    if character in _PICTURES:
        return _PICTURES[character]
    code = ord(character)
    hidden = code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000
    return _UNSHOWABLE if hidden or character in _LINE_BREAKS + _DIRECTION_CONTROLS + _NOT_XML else character
