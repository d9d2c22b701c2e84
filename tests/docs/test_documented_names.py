"""The documentation names what the code names."""

import re
from pathlib import Path

from simplace.doctor.rule_pages import read_rule_pages
from simplace.explain.reasons import ALL_REASONS
from simplace.exports.json_report import SCHEMA

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_reason_is_a_heading_with_the_words_of_its_page():
    text = (DOCS / "how-tensorflow-decides.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^### `(\w+)`\n\n(.*?)\n\n\[A program", text, flags=re.MULTILINE | re.DOTALL))
    meanings = {page.name: page.meaning for page in read_rule_pages()}
    assert shown == {reason.rule: meanings[reason.rule] for reason in ALL_REASONS}


def test_the_schema_is_documented():
    assert f"`{SCHEMA}`" in (DOCS / "json.md").read_text(encoding="utf-8")
