"""What tests share: files to compare text with, and children that are forked where TensorFlow is imported already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simplace.oracle.starting import Forks, starting_by


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Give `golden(name, text)`: `text` must equal the file golden/<name> in the folder of the test."""
    folder = Path(request.path).parent / "golden"
    rewrite = request.config.getoption("--rewrite-golden")

    def check(name: str, text: str) -> None:
        file = folder / name
        if rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            return
        if not file.exists():
            pytest.fail(f"no golden file {file}; write it with: pytest --rewrite-golden, then read it")
        expected = file.read_text(encoding="utf-8")
        assert text == expected, f"{file} differs; if the new text is right: pytest --rewrite-golden"

    return check


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    with Forks() as start:
        yield start


@pytest.fixture
def forked(forks: Forks) -> Iterator[None]:
    """Run what a test runs under TensorFlow in forks, without an import each; test_starting.py says they are alike."""
    with starting_by(forks):
        yield
