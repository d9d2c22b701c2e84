"""Put what a command found between its marks in a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path


def fill_page(page: Path, command: str, text: str) -> None:
    """Replace what stands in a page between the comments "begin: COMMAND" and "end: COMMAND"; it must have them."""
    begin, end = f"<!-- begin: {command} -->\n", f"<!-- end: {command} -->\n"
    before = page.read_text(encoding="utf-8")
    filled, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}{text.rstrip()}\n{end}", before, flags=re.DOTALL
    )
    assert count == 1, f"{page} has no place for what `{command}` finds"
    page.write_text(filled, encoding="utf-8")
