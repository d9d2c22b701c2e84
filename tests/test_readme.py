"""The README's promises: two lines to copy, and output that is real."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_quick_start_is_two_blocks_of_one_line():
    found = blocks("sh")
    assert [block.count("\n") for block in found] == [1, 1]
    assert "simplace show samples/" in found[0]
    assert "pytest" in found[1]


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.tf
@pytest.mark.parametrize("block", blocks("text"), ids=lambda block: block.split()[2])
def test_the_output_shown_is_the_output(block):
    command, _, expected = block.partition("\n")
    words = shlex.split(command.removeprefix("$ "))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip() == expected.rstrip()
