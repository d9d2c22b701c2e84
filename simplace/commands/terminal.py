"""What a terminal gets and a file does not: lines within its width, and colour where NO_COLOR does not forbid it."""

from __future__ import annotations

import os
import re
from typing import TextIO

_GPU_STYLES = ("green", "magenta", "yellow", "blue")
_DEVICE = r"\b(?:CPU|GPU|XLA_CPU|TPU):\d+\b"
_BAD = r"(?m)^(?:DISAGREES|copies DIFFER|simplace:|error:)"
_GOOD = r"(?m)^agrees with\b"
_FINDING = r"(?m)^ *! |^warning:"
_ASIDE = r"(?m)^note:"
_NUMBER = re.compile(r" *(\d+\. )")  # of a step: what follows is below its first word


def find_width(stream: TextIO) -> int | None:
    """Return the columns of the terminal that `stream` is; None for a file or a pipe."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrap_lines(text: str, width: int) -> str:
    """Wrap the lines that are wider than a terminal, indented below their start; a name that is wider is broken.

    Tables are within the width already.
    """
    lines = (part for line in text.split("\n") for part in _wrap_wide(line, width))
    return "\n".join(part[at : at + width] for part in lines for at in range(0, len(part) or 1, width))


def _wrap_wide(line: str, width: int) -> list[str]:
    from simplace.views.text.lines import wrap_line

    if len(line) <= width:
        return [line]
    number = _NUMBER.match(line)
    return wrap_line(line, width, len(number[1]) if number else 2).split("\n")


def takes_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colour, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def print_coloured(text: str, stream: TextIO) -> None:
    """Print text with devices, verdicts and findings in colour; raise `OSError` like `print`."""
    from rich.console import Console
    from rich.text import Text

    shown = Text(text)
    shown.highlight_regex(_DEVICE, _device_style)
    for pattern, style in ((_GOOD, "bold green"), (_BAD, "bold red"), (_FINDING, "bold yellow"), (_ASIDE, "dim")):
        shown.highlight_regex(pattern, style)
    Console(file=stream, highlight=False, force_jupyter=False).print(shown, soft_wrap=True)


def _device_style(name: str) -> str:
    """Return the style of a device: one for CPUs, and GPUs beside each other differ."""
    kind, number = name.rsplit(":", 1)
    return _GPU_STYLES[int(number) % len(_GPU_STYLES)] if kind == "GPU" else "cyan"
