"""Write the pages of docs/rules from the data that `simplace explain --rule` prints.

A page keeps the output that it shows; `test_pages.py` compares that with what the command prints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from simplace.doctor.rule_pages import RulePage

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "rules"
_NAMED = re.compile(r"`(?:(?:doctor|reason)/)?([a-z][a-z_-]*)`(?!\])")


def find_page_file(page: RulePage) -> Path:
    """Return the file of a rule's page."""
    return RULES / f"{page.full_name}.md"


def write_page(page: RulePage, pages: Sequence[RulePage]) -> str:
    """Return a rule's page in Markdown, with the output that the present one shows."""
    file = find_page_file(page)
    language = "python" if page.file.endswith(".py") else "text"
    level = {"error": "An error", "warning": "A warning", "note": "A note"}.get(page.level or "", "A reason")
    whose = "`simplace doctor`" if page.family == "doctor" else "`simplace explain`"
    sources = ", ".join(f"`{source}`" for source in page.sources)
    return "\n\n".join([
        f"# {page.title}",
        f"`{page.full_name}` · {level} of {whose}.",
        _link_rules(page.meaning, page, pages),
        f"In TensorFlow: {sources}.",
        f"## What to do\n\n{_link_rules(page.remedy, page, pages)}",
        f"## A program that shows it\n\n`{page.file}`:\n\n```{language}\n{page.program}```",
        f"```text\n$ simplace {page.command}\n{_read_output(file, page.command)}```",
        *_show_figure(page),
    ]) + "\n"  # fmt: skip


def write_index(pages: Sequence[RulePage]) -> str:
    """Return the page that lists all rules."""
    parts = [
        "# What findings and reasons mean",
        "Each rule has a page: what it means, the file of TensorFlow that it comes from, a small program that shows "
        "it, and what\nto do. `simplace explain --rule RULE` prints the same in the terminal.",
    ]
    told = {"Errors": "error", "Warnings": "warning", "Notes": "note"}
    for heading, level in told.items():
        rows = [page for page in pages if page.level == level]
        parts.append(f"## {heading} of the doctor\n\n{_write_table(rows)}")
    parts.append(f"## Reasons for a device\n\n{_write_table([page for page in pages if page.level is None])}")
    return "\n\n".join(parts) + "\n"


def _write_table(pages: Sequence[RulePage]) -> str:
    rows = [f"| [`{page.full_name}`]({page.full_name}.md) | {page.title} |" for page in pages]
    return "\n".join(["| rule | what it is |", "| --- | --- |", *rows])


def _link_rules(text: str, page: RulePage, pages: Sequence[RulePage]) -> str:
    """Make links of the rules that a text names in code."""
    by_name = {each.name: each for each in pages if each is not page}

    def link(found: re.Match[str]) -> str:
        other = by_name.get(found[1])
        if other is None:
            return found[0]
        folder = "" if other.family == page.family else f"../{other.family}/"
        return f"[{found[0]}]({folder}{other.name}.md)"

    return _NAMED.sub(link, text)


def _read_output(file: Path, command: str) -> str:
    if not file.exists():
        return ""
    head = re.escape(f"```text\n$ simplace {command}\n")
    found = re.search(rf"{head}(.*?)^```$", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _show_figure(page: RulePage) -> list[str]:
    """Return the figure of a reason's program, where docs/figures has one."""
    name = f"figures/rule_{page.name}.svg"
    if not (ROOT / "docs" / name).exists():
        return []
    stem = Path(page.file).stem
    command = f"simplace show docs/rules/{stem}.py --devices cpu:1,gpu:2 -o docs/{name}"
    return [f"![{page.title}](../../{name})", f"The figure: `{command}`"]
