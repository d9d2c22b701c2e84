"""The README's promise: two lines to copy."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_quick_start_is_two_blocks_of_one_line():
    found = blocks("sh")
    assert [block.count("\n") for block in found] == [1, 1]
    assert "simplace show samples/" in found[0]
    assert "pytest" in found[1]
