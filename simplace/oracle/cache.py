"""The folder that keeps what simplace has built for the user: nobody else can write it, damaged files are removed.

A file is named by what it was made for and by a hash of its content, so that a truncated or changed file is not used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from simplace.errors import ProgramError
from simplace.oracle.scratch import scratch_folder

_ELSEWHERE = "set XDG_CACHE_HOME to a folder of your own"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Return the folder, created if necessary, for the user alone.

    What others could have put there is removed; raise `ProgramError` where they still could write it.
    """
    folder = _find_base() / "simplace"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _claim_folder(folder)
    except OSError as error:
        raise ProgramError(f"{folder} can't be used ({error.strerror}); {_ELSEWHERE}") from error
    return folder


def find_file(made_for: str, suffix: str) -> Path | None:
    """Return the file that was kept under this name, None where there is none; remove it where it is damaged."""
    for path in sorted(cache_folder().glob(f"{made_for}-*{suffix}")):
        data = _read_own_file(path)
        if data is not None and path.name == _name_file(made_for, data, suffix):
            return path
        _discard_path(path)
    return None


def keep_file(file: Path, made_for: str, suffix: str) -> Path:
    """Copy a finished file into the folder under a name of its own; other processes see all of it or nothing."""
    data, folder = file.read_bytes(), cache_folder()
    kept = folder / _name_file(made_for, data, suffix)
    with scratch_folder(folder) as scratch:
        copied = Path(scratch, kept.name)
        try:
            copied.write_bytes(data)
            copied.chmod(0o700)
            copied.replace(kept)
        except OSError as error:
            raise ProgramError(f"{kept} can't be written ({error.strerror}); {_ELSEWHERE}") from error
    return kept


def _name_file(made_for: str, data: bytes, suffix: str) -> str:
    return f"{made_for}-{hashlib.sha256(data).hexdigest()[:16]}{suffix}"


def _read_own_file(path: Path) -> bytes | None:
    """Return the content of a regular file that only the user can have written; None for another file."""
    try:
        with open(path, "rb", opener=_open_itself) as file:
            found = os.fstat(file.fileno())
            is_own = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
            return file.read() if is_own and stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _find_base() -> Path:
    """Return where caches go; a relative XDG_CACHE_HOME does not count, as its specification says."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise ProgramError(f"this user has no home directory; {_ELSEWHERE}") from None


def _claim_folder(folder: Path) -> None:
    """Raise `ProgramError` where others can write the folder, or replace it; empty it where they could have."""
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise ProgramError(f"{folder} belongs to another user, who could plant a library there; {_ELSEWHERE}")
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ProgramError(f"anybody may write {above}, and so put a library into {folder}; {_ELSEWHERE}")
    if found.st_mode & _OTHERS_WRITE:
        folder.chmod(0o700)
        for path in folder.iterdir():
            _discard_path(path)


def _discard_path(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
