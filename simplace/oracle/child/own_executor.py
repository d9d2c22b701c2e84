"""Ops that simplace runs at once, where the program runs its own ones asynchronously.

An asynchronous executor returns before TensorFlow has placed anything, and tells of a refusal by the next op.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.tf_private import context, pywrap_tfe

_initialize = wrap_foreign(context.ensure_initialized)  # it refuses settings that contradict each other


def run_at_once() -> AbstractContextManager[None]:
    """Run the ops of this thread one after another, each to its end; those begun before go on beside them."""
    _initialize()
    return _with_own_executor()


@contextmanager
def _with_own_executor() -> Iterator[None]:
    handle = context.context()._handle
    theirs = pywrap_tfe.TFE_ContextGetExecutorForThread(handle)
    try:
        if not pywrap_tfe.TFE_ExecutorIsAsync(theirs):
            yield
            return
        pywrap_tfe.TFE_ContextSetExecutorForThread(handle, _make_executor())
        try:
            yield
        finally:
            pywrap_tfe.TFE_ContextSetExecutorForThread(handle, theirs)
    finally:
        pywrap_tfe.TFE_DeleteExecutor(theirs)  # this name of it


@cache
def _make_executor() -> Any:
    return pywrap_tfe.TFE_NewExecutor(False, True, 0)
