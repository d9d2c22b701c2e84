"""Write the heading of a figure: its title and caption in lines that are about as wide as the drawing."""

from __future__ import annotations

from textwrap import wrap

from viz.figure import Figure
from viz.labels import bold, small, text
from viz.names import elide, visible
from viz.shape import estimate_size
from viz.style import Style

_TITLE_LIMIT, _CAPTION_LIMIT, _BELOW_LIMIT = 120, 120, 72
_TITLE_LETTER, _TITLE_LEAST = 9.6, 30  # points a letter of a title takes, and letters in a line of it at least
_CAPTION_LETTER, _CAPTION_LEAST = 5.6, 50


def write_heading(figure: Figure, style: Style) -> list[str]:
    """Return the lines of title, description (where the style has it) and caption, about as wide as the figure."""
    lines = []
    room = estimate_size(figure, style)[0]
    limit = min(_BELOW_LIMIT if style.below else _CAPTION_LIMIT, max(int(room / _CAPTION_LETTER), _CAPTION_LEAST))
    for line in wrap(elide(visible(figure.title), _TITLE_LIMIT), max(int(room / _TITLE_LETTER), _TITLE_LEAST)):
        lines.append(f'<font point-size="15">{bold(text(line, len(line)))}</font>')
    if style.below and figure.description:
        lines += [small(text(line, _CAPTION_LIMIT), style.ink, 11) for line in wrap(figure.description, _BELOW_LIMIT)]
    if figure.caption:
        lines += [small(text(line, limit), style.faint_ink, 10) for line in _wrapped(figure.caption, limit)]
    return lines


def _wrapped(caption: str, limit: int) -> list[str]:
    """Break a caption at " · " into lines of at most `limit` characters where that is possible."""
    lines: list[str] = []
    for part in caption.split(" · "):
        if lines and len(lines[-1]) + len(part) + 3 <= limit:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines
