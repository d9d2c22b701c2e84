"""The rendezvous that eager ops on GPUs share: they run one at a time, and again where another's failure ended one.

Eager ops run as functions with one rendezvous for all threads (reuse_rendezvous_for_functions of eager/execute.cc).
What is in host memory, such as an int32, goes through it under the name of an edge: ops that are alike, run by two
threads at once, would get each other's tensors. One that fails aborts what the others send (RunMultiDeviceSync of
process_function_library_runtime.cc); the next op gets a new rendezvous (DoEagerExecute of eager/execute.cc).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.own_work import is_in_py_function

_TRIES = 50
_TRIES_BESIDE_OTHERS = 3  # after which an error is the op's own
_turn = threading.RLock()  # of one thread, which may release a variable meanwhile, by an op again


def run_alone(run: Callable[..., Any], tries: int = _TRIES) -> Callable[..., Any]:
    """Return a call of an op that cannot wait for another one, made while no other thread makes such a call.

    It is made again where it was refused what kernels ask for, up to `tries` times, and where it failed in another
    way, which may be that of an op on a CPU.
    """

    def run_to_its_end(*args: Any, **kwargs: Any) -> Any:
        with _take_turn():
            return _repeat(lambda: run(*args, **kwargs), tries, _TRIES_BESIDE_OTHERS)

    return run_to_its_end


def rerun_aborted(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of an op that may wait for another one, made again where it was refused what kernels ask for."""
    return lambda *args, **kwargs: _repeat(lambda: run(*args, **kwargs), _TRIES, 1)


def _repeat(run: Callable[[], Any], refusals: int, failures: int) -> Any:
    """Run an op until it succeeds, is refused or fails for the last time."""
    while True:
        try:
            return run()
        except FAILURES as error:
            is_refusal = computes_nothing(error)
            refusals, failures = refusals - is_refusal, failures - (not is_refusal)
            if not (refusals and failures):
                raise


def _take_turn() -> AbstractContextManager[Any]:
    """Wait for the turn, but for a Python function in TensorFlow's pool, whose threads the op of another may need."""
    return nullcontext() if is_in_py_function() else _turn
