"""Restrict writes of this process to a few folders, whatever runs in it, by Linux's Landlock where available."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on all machines
_NO_NEW_PRIVILEGES = 38
_ASK_VERSION = 1
_BENEATH = 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # remove and make entries of any kind
_RENAMES = 1 << 13  # between folders


def confine_writing(folders: Iterable[Path]) -> bool:
    """Restrict writes of this thread, and of those it starts, to these folders and to devices.

    Return whether the system enforces it.
    """
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(_CREATE, None, 0, _ASK_VERSION)
    if version < 1:
        return False
    rights = _CHANGES | (_RENAMES if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = system.syscall(_CREATE, struct.pack("Q", rights), 8, 0)
    try:
        for folder in folders:
            _allow_folder(system, rules, folder, rights)
        _allow_folder(system, rules, Path("/dev"), rights & (_WRITE_FILE | _TRUNCATE))
        refused = system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or system.syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    return not refused


def _allow_folder(system: ctypes.CDLL, rules: int, folder: Path, rights: int) -> None:
    number = os.open(folder, os.O_PATH)
    try:
        system.syscall(_ADD, rules, _BENEATH, struct.pack("=Qi", rights, number), 0)
    finally:
        os.close(number)
