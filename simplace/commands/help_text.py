"""Lay out the examples of a command's help: what an example does goes below it where the terminal is too narrow."""

from __future__ import annotations

import argparse
import textwrap


class ExamplesFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep the lines of examples ("  command   what it does"), none wider than the terminal; wrap other text."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in lay_out_examples(text, width - len(indent)).split("\n"))


def lay_out_examples(text: str, width: int) -> str:
    """Return lines within a width; what an example does stands after a tab, in one column or below all examples.

    >>> print(lay_out_examples("examples:\\n  show a.py\\twhat runs\\n  check model.pb\\tagrees?", 40))
    examples:
      show a.py       what runs
      check model.pb  agrees?
    >>> print(lay_out_examples("examples:\\n  show a.py\\twhat runs", 16))
    examples:
      show a.py
          what runs
    """
    lines = [line.partition("\t") for line in text.split("\n")]
    start = max((len(command) for command, tab, _ in lines if tab), default=0) + 2
    is_beside = all(start + len(meaning) <= width for _, tab, meaning in lines if tab)
    shown: list[str] = []
    for command, tab, meaning in lines:
        if tab and is_beside:
            shown.append(f"{command:{start}}{meaning}")
        else:
            shown += _wrap(command, width, "    ") + (_wrap(f"      {meaning}", width, "      ") if tab else [])
    return "\n".join(shown)


def _wrap(line: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) if len(line) > width else [line]
