"""The GPU plugin is built once, by whatever compiler there is, and loaded only if nobody else can have written it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from simplace.cli import main
from simplace.errors import ProgramError
from simplace.oracle import plugin
from simplace.oracle.cache import cache_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "simplace"


@pytest.fixture
def builds(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a compiler produce something that counts as a library; the file has a line for each time it was called."""
    count = tmp_path / "calls"
    body = f'echo called >> {count}; while [ "$1" != "-o" ]; do shift; done; echo built > "$2"'
    monkeypatch.setenv("CC", fake_compiler(tmp_path, body))
    monkeypatch.setattr(plugin, "_require_loadable", lambda library, compiler: None)
    return count


def fake_compiler(folder: Path, body: str) -> str:
    script = folder / "fakecc"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_compiles_once(cache: Path, builds: Path) -> None:
    first, second = plugin.build_plugin("2.21.0"), plugin.build_plugin("2.21.0")
    assert first == second
    assert first.read_text() == "built\n"
    assert builds.read_text() == "called\n"
    assert [file.name for file in cache.iterdir()] == [first.name]
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(first.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["truncated", "replaced", "writable", "a link", "a folder", "a fifo"])
def test_what_is_not_whole_and_ours_is_built_anew(damage: str, cache: Path, builds: Path, tmp_path: Path) -> None:
    built = plugin.build_plugin("2.21.0")
    if damage in ("a link", "a folder", "a fifo"):
        built.unlink()
    (tmp_path / "planted").write_text("built\n")
    {
        "truncated": lambda: built.write_bytes(b"bu"),
        "replaced": lambda: built.write_bytes(b"theirs"),
        "writable": lambda: built.chmod(0o777),
        "a link": lambda: built.symlink_to(tmp_path / "planted"),
        "a folder": lambda: built.mkdir(),
        "a fifo": lambda: os.mkfifo(built),
    }[damage]()
    assert plugin.build_plugin("2.21.0") == built
    assert (built.read_text(), stat.S_IMODE(built.lstat().st_mode)) == ("built\n", 0o700)
    assert builds.read_text() == "called\ncalled\n"


def test_a_folder_that_others_could_write_is_emptied_and_closed(cache: Path, builds: Path) -> None:
    built = plugin.build_plugin("2.21.0")
    cache.chmod(0o777)
    (cache / "planted.so").write_text("theirs")
    assert plugin.build_plugin("2.21.0") == built
    assert [file.name for file in cache.iterdir()] == [built.name]
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert builds.read_text() == "called\ncalled\n"


def test_a_folder_of_somebody_else_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(ProgramError, match=r"belongs to another user, .* set XDG_CACHE_HOME to a folder of your own"):
        plugin.build_plugin("2.21.0")


def test_a_folder_that_anybody_could_swap_is_refused(cache: Path) -> None:
    cache.parent.chmod(0o777)
    with pytest.raises(ProgramError, match=f"anybody may write {cache.parent}, .* set XDG_CACHE_HOME"):
        plugin.build_plugin("2.21.0")


def test_a_relative_cache_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache/simplace"


def test_what_cannot_be_loaded_is_not_kept(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", fake_compiler(tmp_path, 'while [ "$1" != "-o" ]; do shift; done; echo no > "$2"'))
    with pytest.raises(ProgramError, match=r"fakecc made can't be loaded: OSError: .*; set CC to another compiler"):
        plugin.build_plugin("2.21.0")
    assert list(cache.iterdir()) == []


def test_failed_compiler_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", fake_compiler(tmp_path, "echo 'x.c:1: error: no such header' >&2; exit 1"))
    with pytest.raises(ProgramError, match=r"fakecc failed on simplace's GPU plugin: x\.c:1: error: no such header"):
        plugin.build_plugin("2.21.0")
    assert list(cache.iterdir()) == []


def test_a_compiler_that_is_not_there_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc -O2")
    with pytest.raises(ProgramError, match="the C compiler '/nowhere/cc' cannot be started; set CC"):
        plugin.build_plugin("2.21.0")


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProgramError, match="pip install ziglang"):
        plugin.find_compiler()


def test_ziglang_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: object())
    assert plugin.find_compiler()[1:] == ["-m", "ziglang", "cc"]


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_damaged_cache_is_rebuilt(cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("import tensorflow as tf\nprint(tf.function(lambda x: x + 1)(tf.ones(2)))\n")
    assert main(["check", str(script), "--devices", "cpu:1,gpu:1"]) == 0
    kept = {file.name: file.read_bytes() for file in cache.iterdir()}
    assert sorted(Path(name).suffix for name in kept) == [".so", ".zip"]
    for name, data in kept.items():
        (cache / name).write_bytes(data[: len(data) // 2])
    assert main(["check", str(script), "--devices", "cpu:1,gpu:1"]) == 0
    rebuilt = {file.name: file.read_bytes() for file in cache.iterdir()}
    assert sorted(Path(name).suffix for name in rebuilt) == [".so", ".zip"]
    assert all(hashlib.sha256(data).hexdigest()[:16] in name for name, data in rebuilt.items())
