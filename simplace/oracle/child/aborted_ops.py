"""Eager ops that the refusal of another thread's op ended, run again.

Eager ops run as functions with one rendezvous for all threads. One that fails aborts what the others send through it
(RunMultiDeviceSync of process_function_library_runtime.cc); the next op gets a new one (DoEagerExecute of
eager/execute.cc).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.failures import FAILURES

_TRIES = 50


def rerun_aborted(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of an op that computes nothing, made again where it was refused what only kernels ask for."""

    def run_to_its_end(*args: Any, **kwargs: Any) -> Any:
        for _ in range(_TRIES):
            try:
                return run(*args, **kwargs)
            except FAILURES as error:
                if not computes_nothing(error):
                    raise
        return run(*args, **kwargs)

    return run_to_its_end
