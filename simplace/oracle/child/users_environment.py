"""The environment variables as the user has set them, for the program and what it starts; TensorFlow reads others."""

from __future__ import annotations

import _posixsubprocess
import json
import os
import subprocess
from typing import Any

from simplace.oracle import protocol
from simplace.oracle.child.patches import patch_method

_SHELL = "/bin/sh"  # of os.system
_ENVIRONMENT = 5  # the argument of fork_exec that has the variables, None for those of the process

_given: dict[str, str | None] = {}


def show_users_environment() -> None:
    """Set `os.environ` to what the user has set: a run needs other values, which stay in the process's environment.

    The values are put behind the methods of `os.environ`, since these would set those of the process, too.
    """
    _given.update(json.loads(os.environ.pop(protocol.GIVEN_VARIABLES, "{}")))
    shown = os.environ._data  # type: ignore[attr-defined]
    for name, value in _given.items():
        if value is None:
            shown.pop(os.environ.encodekey(name), None)
        else:
            shown[os.environ.encodekey(name)] = os.environ.encodevalue(value)


def pass_on_users_environment() -> None:
    """Start each process that the program starts with `os.environ`, where it would get the variables of the process.

    Otherwise TensorFlow in a process of the program's would log for simplace, and write its graphs beside this one's.
    """
    patch_method(_posixsubprocess, "fork_exec", _give_variables)  # for multiprocessing
    patch_method(subprocess, "_fork_exec", _give_variables)
    patch_method(os, "execv", lambda _: lambda path, words: os.execve(path, words, os.environ))
    patch_method(os, "system", lambda _: _run_in_shell)


def _give_variables(fork_exec: Any) -> Any:
    def fork_exec_with_variables(*given: Any) -> Any:
        before, variables, after = given[:_ENVIRONMENT], given[_ENVIRONMENT], given[_ENVIRONMENT + 1 :]
        if variables is None:
            variables = [name + b"=" + value for name, value in os.environb.items()]
        return fork_exec(*before, variables, *after)

    return fork_exec_with_variables


def _run_in_shell(command: str) -> int:
    """Run a command as `os.system` does; return its status as `os.wait` gives it."""
    process = os.posix_spawn(_SHELL, ["sh", "-c", command], os.environ)
    return os.waitpid(process, 0)[1]


def is_as_given(name: str) -> bool:
    """Return whether the program has left a variable as its user has set it."""
    return os.environ.get(name) == _given.get(name)
