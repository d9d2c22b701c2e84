"""The documentation names what the code names."""

import re
from pathlib import Path

from simplace.explain.reasons import ALL_REASONS
from simplace.exports.json_report import SCHEMA

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_reason_is_a_heading():
    text = (DOCS / "how-tensorflow-decides.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)`$", text, flags=re.MULTILINE)) == {reason.rule for reason in ALL_REASONS}


def test_the_schema_is_documented():
    assert f"`{SCHEMA}`" in (DOCS / "json.md").read_text(encoding="utf-8")
