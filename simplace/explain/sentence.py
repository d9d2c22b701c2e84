"""A sentence as a tuple of parts, text or a node link, so that a terminal and a page render the same one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Form = Literal["full", "name", "variable"]  # "name (op)", "name", "the variable 'name'"


class NodeLink(NamedTuple):
    """Record of a node that a sentence names, and of the words that stand for it there."""

    node: int
    form: Form
    text: str


Part = str | NodeLink


class Sentence(tuple[Part, ...]):
    """A tuple of texts and node links; no two texts stand side by side. Its `str` is the plain text.

    >>> str(join_sentence("It stays with ", NodeLink(2, "name", "a"), "."))
    'It stays with a.'
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "".join([part if isinstance(part, str) else part.text for part in self])


def join_sentence(*parts: Part | Sentence) -> Sentence:
    """Return a sentence joined of parts and sentences.

    >>> join_sentence("a", "b", join_sentence("c", NodeLink(2, "name", "d")), "")
    ('abc', NodeLink(node=2, form='name', text='d'))
    """
    found: list[Part] = []
    text = ""
    for part in parts:
        for piece in part if isinstance(part, Sentence) else (part,):
            if isinstance(piece, str):
                text += piece
                continue
            if text:
                found.append(text)
            text = ""
            found.append(piece)
    if text:
        found.append(text)
    return Sentence(found)


def join_with_commas(parts: Sequence[Part]) -> Sentence:
    """Return parts joined with commas."""
    return join_sentence(*(piece for i, part in enumerate(parts) for piece in (", " if i else "", part)))
