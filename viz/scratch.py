"""Folders for the files of one process: removed at its end, or by the next one where the owner was killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OWNER = re.compile(r"-(\d+)-(\d+)-")  # its process, and when that started


@contextmanager
def scratch_folder(kind: str, parent: Path | None = None) -> Iterator[str]:
    """Yield a new folder that only the user can read, in `parent` or where temporary files go; sweep its kind before.

    A lock shows that the owner is alive, also to processes in another container that see the same folder.
    Raises `OSError` where it cannot be made.
    """
    base = parent or Path(tempfile.gettempdir())
    sweep_folders(base, kind)
    owner = os.getpid()
    prefix = f"{kind}-{owner}-{read_start_time(owner)}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True) as folder:
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(lock)


def sweep_folders(base: Path, kind: str) -> None:
    """Remove the folders of a kind in `base` whose owners were killed."""
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(f"{kind}-") and _is_left(entry, entry.name.removeprefix(kind)):
                shutil.rmtree(entry.path, ignore_errors=True)


def read_start_time(process: int) -> int:
    """Return when a process started, in ticks since the computer did; 0 where the system does not say.

    Raise `ProcessLookupError` where there is no such process.
    """
    if not Path("/proc/self/stat").exists():
        return 0
    try:
        said = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise ProcessLookupError(process) from None
    return int(said.rpartition(")")[2].split()[19])


def _is_left(entry: os.DirEntry[str], owner: str) -> bool:
    found = _OWNER.match(owner)
    if found is None or not entry.is_dir(follow_symlinks=False):
        return False
    is_own = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return is_own and not _is_alive(int(found[1]), int(found[2])) and not _is_locked(entry.path)


def _is_alive(process: int, start: int) -> bool:
    try:
        return read_start_time(process) == start
    except ProcessLookupError:
        return False


def _is_locked(folder: str) -> bool:
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:  # another run sweeps it
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
