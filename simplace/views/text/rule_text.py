"""The page of a rule, and the list of all rules, as text for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from simplace.doctor.rule_pages import RulePage
from simplace.views.text.lines import wrap_line
from viz import Column, Table, to_text

_PROGRAM = "    "


def write_rule(page: RulePage, width: int | None = None) -> str:
    """Return a rule's page, at most `width` cells wide but for the lines of its program."""
    head = f"{page.full_name}{f' ({page.level})' if page.level else ''}: {page.title}"
    return "\n\n".join([
        wrap_line(head, width),
        *_wrap_paragraphs(page.meaning, width),
        wrap_line(f"TensorFlow: {', '.join(page.sources)}", width),
        *_wrap_paragraphs(f"What to do: {page.remedy}", width),
        wrap_line(f"A program that shows it, {page.file} in the repository:", width),
        textwrap.indent(page.program.rstrip("\n"), _PROGRAM),
        f"Try it: simplace {page.command}",
    ])  # fmt: skip


def list_rules(pages: Sequence[RulePage], width: int | None = None) -> str:
    """Return one line per rule, at most `width` cells wide."""
    columns = (Column("rule", flexible=False), Column("level", flexible=False), Column("what it is", wrapped=True))
    table = to_text(Table(columns, tuple((page.full_name, page.level or "-", page.title) for page in pages)), width)
    return f"{table}\n\nsimplace explain --rule RULE prints one of them"


def _wrap_paragraphs(text: str, width: int | None) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        joined = paragraph if paragraph.startswith("- ") else " ".join(paragraph.split())
        yield "\n".join(wrap_line(line, width, 0) for line in joined.splitlines())
