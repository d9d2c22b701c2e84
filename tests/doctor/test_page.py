"""The doctor's page has a heading for every finding."""

import re
from pathlib import Path

from simplace.doctor.silent_failures import ALL_FINDINGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"


def test_every_finding_is_a_heading_under_its_level():
    level, headings = "", set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            level = line[3:-1].lower()
        if found := re.fullmatch(r"### `([\w-]+)`", line):
            headings.add((found[1], level))
    assert headings == {(kind.rule, kind.level) for kind in ALL_FINDINGS}
