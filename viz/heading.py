"""Write the heading of a figure: its title and caption in lines that are about as wide as the drawing."""

from __future__ import annotations

from textwrap import wrap

from viz.figure import Figure
from viz.labels import bold, small, text
from viz.names import elide, visible
from viz.shape import estimate_size
from viz.style import Style

_TITLE_LIMIT, _CAPTION_LIMIT = 120, 120
_TITLE_LETTER, _TITLE_LEAST = 9.6, 30  # points a letter of a title takes, and letters in a line of it at least
_CAPTION_LETTER, _CAPTION_LEAST = 5.6, 50


def write_heading(figure: Figure, style: Style, room: float | None = None) -> list[str]:
    """Return the lines of title and caption, about as wide as the figure; none in a style without a heading.

    `room` is that width in points; without one it is estimated.
    """
    if not style.has_heading:
        return []
    lines = []
    least = _CAPTION_LEAST if room is None else 0
    room = estimate_size(figure, style)[0] if room is None else room
    limit = min(_CAPTION_LIMIT, max(int(room / _CAPTION_LETTER), least))
    title = elide(visible(figure.title), _TITLE_LIMIT)
    letters = max(int(room / _TITLE_LETTER), _TITLE_LEAST)
    for line in wrap(title, letters) if least else _wrap_evenly(title, letters):
        lines.append(f'<font point-size="15">{bold(text(line, len(line)))}</font>')
    if figure.caption:
        wrapped = wrap_lines(visible(figure.caption), limit, style.lines)
        lines += [small(text(line, limit), style.faint_ink, 10) for line in wrapped]
    return lines


def _wrap_evenly(title: str, letters: int) -> list[str]:
    """Break a title into as few lines as have room, none much shorter than the others.

    >>> _wrap_evenly("All on GPU:0 but 1 op", 20)
    ['All on GPU:0', 'but 1 op']
    """
    count = len(wrap(title, letters))
    tried = (wrap(title, limit, break_long_words=False) for limit in range(1, letters))
    short = (lines for lines in tried if len(lines) <= count and max(map(len, lines), default=0) <= letters)
    return next(short, wrap(title, letters))


def wrap_lines(caption: str, limit: int, most: int = 0) -> list[str]:
    """Break a caption as `_wrapped` does; where that takes more than `most` lines, what is in its middle is left out.

    So it still says what the figure is of, and at its end what is not drawn, and who agrees.

    >>> wrap_lines("one · two · three · four", 15, 1), wrap_lines("one · two · three · four", 15)
    (['one · four'], ['one · two', 'three · four'])
    >>> wrap_lines("one · a last part that is long", 15, 1)
    ['one']
    """
    found, parts = _wrapped(caption, limit), caption.split(" · ")
    for end in range(2, len(parts) + 1):
        if not most or len(found) <= most:
            break
        found = _wrapped(" · ".join([parts[0], *parts[end:]]), limit)
    return found


def _wrapped(caption: str, limit: int) -> list[str]:
    """Break a caption at " · " into lines of at most `limit` characters, and what is longer between words.

    >>> _wrapped("one · two · three of them", 9)
    ['one · two', 'three of', 'them']
    """
    lines: list[str] = []
    for part in caption.split(" · "):
        if lines and len(lines[-1]) + len(part) + 3 <= limit:
            lines[-1] += f" · {part}"
        else:
            lines += wrap(part, limit, break_long_words=False) or [part]
    return lines
