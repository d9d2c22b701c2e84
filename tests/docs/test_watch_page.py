"""docs/watch.md shows what its program is and prints: the line of standard error first, as it is written first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.warm_processes import RUN_SCRIPT

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/watch.md"
PROGRAM = ROOT / "docs/programs/train_watched.py"
PRINTED = re.compile(r"(?<=^\$ python docs/programs/train_watched\.py\n).*?(?=^```$)", flags=re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"(?<=^# docs/programs/train_watched\.py\n).*?(?=^```$)", flags=re.MULTILINE | re.DOTALL)


def test_the_program_shown_is_the_program(kept, request):
    text = PAGE.read_text(encoding="utf-8")
    shown = LISTED.search(text)
    assert shown is not None
    if request.config.getoption("--rewrite-golden"):
        kept(PAGE, text.replace(shown[0], PROGRAM.read_text(encoding="utf-8")))
        return
    assert shown[0] == PROGRAM.read_text(encoding="utf-8")


@pytest.mark.tf
@pytest.mark.usefixtures("shown_version")
def test_what_it_prints_is_what_the_page_shows(kept, warm):
    program = "docs/programs/train_watched.py"
    ran = warm.run_tensorflow(RUN_SCRIPT, program, COLUMNS="120", TF_CPP_MIN_LOG_LEVEL="3")
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stderr.splitlines() if line.startswith("simplace:")]
    text = PAGE.read_text(encoding="utf-8")
    shown = PRINTED.search(text)
    assert shown is not None
    kept(PAGE, text.replace(shown[0], "\n".join([*told, ran.stdout])))
