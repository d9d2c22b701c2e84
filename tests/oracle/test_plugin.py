"""The GPU plugin is built once, by whatever compiler there is, and its absence is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.errors import ProgramError
from simplace.oracle import plugin


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "simplace"


def fake_compiler(folder: Path, body: str) -> str:
    script = folder / "fakecc"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_compiles_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = tmp_path / "calls"
    body = f'echo called >> {count}; while [ "$1" != "-o" ]; do shift; done; echo built > "$2"'
    monkeypatch.setenv("CC", fake_compiler(tmp_path, body))
    first, second = plugin.build("2.21.0"), plugin.build("2.21.0")
    assert first == second
    assert first.read_text() == "built\n"
    assert count.read_text() == "called\n"
    assert [file.name for file in cache.iterdir()] == [first.name]


def test_failed_compiler_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", fake_compiler(tmp_path, "echo 'x.c:1: error: no such header' >&2; exit 1"))
    with pytest.raises(ProgramError, match=r"fakecc failed on simplace's GPU plugin: x\.c:1: error: no such header"):
        plugin.build("2.21.0")
    assert list(cache.iterdir()) == []


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProgramError, match="pip install ziglang"):
        plugin.compiler()


def test_ziglang_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: object())
    assert plugin.compiler()[1:] == ["-m", "ziglang", "cc"]
