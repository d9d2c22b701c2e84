"""Lines of text within a width: wrapped, and findings one to a line."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from viz.names import visible

_FINDINGS = 6


def wrap_line(text: str, width: int | None, hanging: int = 2) -> str:
    """Return a line wrapped to a width, whatever names it contains; `hanging` indents what follows its own start."""
    text = visible(text)
    if width is None:
        return text
    indent = " " * (len(text) - len(text.lstrip()) + hanging)
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def list_findings(findings: Sequence[str], width: int | None, rest: str) -> str:
    """Return findings under their heading; `rest` tells where those are that are not shown."""
    lines = [wrap_line(f"  ! {one}", width) for one in findings[:_FINDINGS]]
    more = len(findings) - _FINDINGS
    lines += [f"  ! and {more} more; {rest}"] if more > 0 else []
    return "\n".join(["findings", *lines])
