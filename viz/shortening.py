"""Shorten texts to a width in terminal cells, so that different ones stay different."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size

from viz.names import ELLIPSIS

_MORE = re.compile(r"[\d,]+ more")
_LEAST_THING = 8  # cells: where a thing has fewer, the number of others is not told


def fit(text: str, cells: int) -> str:
    """Shorten `text` in its middle to `cells` terminal cells; wide characters count two.

    >>> fit("sequential/dense/MatMul", 12), fit("行列積行列積", 7)
    ('seque…MatMul', '行…列積')
    """
    if cell_len(text) <= cells:
        return text
    head = tail = ""
    left, right = 0, len(text)
    while left < right:
        take_tail = cell_len(tail) <= cell_len(head)
        character = text[right - 1] if take_tail else text[left]
        if cell_len(head) + cell_len(tail) + cell_len(character) + 1 > cells:
            break
        head, tail = (head, character + tail) if take_tail else (head + character, tail)
        left, right = (left, right - 1) if take_tail else (left + 1, right)
    return set_cell_size(head + ELLIPSIS + tail, min(cells, cell_len(head + ELLIPSIS + tail)))


def fit_all(texts: Sequence[str], cells: int) -> list[str]:
    """Shorten texts that stand below each other to `cells` terminal cells each, in their order.

    Scopes that all the long ones share, or that of a single one, give way first, then the middle. Different texts stay
    different, but where that takes more than `cells` allow (some 8): of those that would be alike, what differs is
    shown, or else a number.

    >>> fit_all(["model/block/conv/Conv2D", "model/block/conv/BiasAdd", "x"], 14)
    ['model/…/Conv2D', 'model…/BiasAdd', 'x']
    >>> fit_all(["gradients/layer_with_a_name_1/kernel", "gradients/layer_with_a_name_2/kernel"], 12)
    ['…_name_1/ke…', '…_name_2/ke…']
    """
    long = [text for text in dict.fromkeys(texts) if cell_len(text) > cells]
    if not long:
        return list(texts)
    shared = _count_shared(long) if len(long) > 1 else len(long[0])
    scope = max(long[0].rfind("/", 0, shared), 0)
    shown = {text: _drop_scope(text, scope, cells) for text in long}
    for alike in _list_alike(shown, texts):
        start = _count_shared(alike)
        shown |= {text: _show_part(text, start, cells) for text in alike}
    taken = {*texts, *shown.values()}
    for text in (text for alike in _list_alike(shown, texts) for text in alike):
        numbered = (_number(text, number, cells) for number in range(1, len(texts) + len(taken)))
        shown[text] = next((words for words in numbered if words not in taken), shown[text])
        taken.add(shown[text])
    return [shown.get(text, text) for text in texts]


def fit_lists(texts: Sequence[str], cells: int) -> list[str]:
    """Shorten lists, of things with ", " between them, to `cells` terminal cells each: the last things are counted.

    Where the first one is too wide by itself, it is shortened as by `fit_all`.

    >>> fit_lists(["Fill, VarHandleOp, Assign, 2 more", "Fill, VarHandleOp"], 15)
    ['Fill, 4 more', 'Fill, 1 more']
    >>> fit_lists(["a/long_scope/MatMul, Add", "b/long_scope/MatMul, Add"], 16)
    ['a/l…tMul, 1 more', 'b/l…tMul, 1 more']
    """
    found = [_drop_things(text, cells) for text in texts]
    wide = [(first, end) for first, end in found if cell_len(first + end) > cells]
    room = cells - max((cell_len(end) for _, end in wide), default=0)
    if wide and room < _LEAST_THING:
        return fit_all(texts, cells)
    fitted = dict(zip(wide, fit_all([first for first, _ in wide], room), strict=True))
    return [fitted.get(pair, pair[0]) + pair[1] for pair in found]


def count_rest(text: str, cells: int) -> str:
    """Shorten a list to `cells` terminal cells by counting its last things; its first one stays whole, however wide.

    >>> count_rest("StatelessRandomUniform, Fill, 2 more", 16)
    'StatelessRandomUniform, 3 more'
    """
    return "".join(_drop_things(text, cells))


def _drop_things(text: str, cells: int) -> tuple[str, str]:
    """Return the first things of a list, as many as there is room for but one at least, and what counts the others."""
    if cell_len(text) <= cells:
        return text, ""
    things = text.split(", ")
    is_counted = len(things) > 1 and _MORE.fullmatch(things[-1]) is not None
    more = int(things.pop()[: -len(" more")].replace(",", "")) if is_counted else 0
    for kept in range(len(things), 0, -1):
        left = len(things) - kept + more
        shown, end = ", ".join(things[:kept]), f", {left:,} more" if left else ""
        if cell_len(shown + end) <= cells:
            break
    return shown, end


def _count_shared(texts: Sequence[str]) -> int:
    """Return how many characters all the texts begin with."""
    first, last = min(texts), max(texts)
    return next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _drop_scope(text: str, scope: int, cells: int) -> str:
    """Shorten the first `scope` characters as far as need be, or all in the middle where that is not enough."""
    rest = text[scope:]
    room = cells - cell_len(ELLIPSIS + rest)
    if not scope or room < 0:
        return fit(ELLIPSIS + rest if scope else text, cells)
    return set_cell_size(text[:scope], room).rstrip() + ELLIPSIS + rest


def _show_part(text: str, start: int, cells: int) -> str:
    """Return the part of a text that begins a little before a character of it."""
    first = max(0, min(start - cells // 2, len(text) - cells + 1))
    part = text[first:]
    head = ELLIPSIS if first else ""
    if cell_len(head + part) <= cells:
        return head + part
    return fit(head + set_cell_size(part, max(cells - len(head) - 1, 0)).rstrip() + ELLIPSIS, cells)


def _number(text: str, number: int, cells: int) -> str:
    end = f"{ELLIPSIS}{number}"
    return fit(fit(text, cells - len(end)).rstrip(ELLIPSIS) + end, cells)


def _list_alike(shown: dict[str, str], texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield those shortened texts that are shown by the same words, or by the words of one that is shown whole."""
    groups: dict[str, list[str]] = {}
    whole = {text for text in texts if text not in shown}
    for text, words in shown.items():
        groups.setdefault(words, []).append(text)
    yield from [texts for words, texts in groups.items() if len(texts) > 1 or words in whole]
