"""Copies of GPU variables in host memory, lent to computations on the CPU, then written back.

Computations that run at the same time, in several threads or one inside of the other's `py_function`, share one copy of
a variable, so that each sees what the others have assigned, as on a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tensors import is_gpu_variable, is_initialized, make_empty_variable, read_variable
from simplace.oracle.child.tf_private import record


@dataclass(slots=True)
class _Loan:
    """Record of a copy and how many computations have it."""

    copy: Any
    borrowers: int = 0


_loans: dict[int, _Loan] = {}  # by the handle's address: each borrower keeps its handles
_turn = threading.Lock()


@contextmanager
def lend_to_host(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the inputs with a copy in host memory for each GPU variable; afterwards the variables have its value."""
    variables = {id(tensor): tensor for tensor in inputs if is_gpu_variable(tensor)}
    copies = {key: _borrow(tensor) for key, tensor in variables.items()}
    try:
        yield [copies.get(id(tensor), tensor) for tensor in inputs]
        with _turn, record.stop_recording():
            for key, copy in copies.items():
                if is_initialized(copy):
                    tf.raw_ops.AssignVariableOp(resource=variables[key], value=read_variable(copy))
    finally:
        for key in copies:
            _give_back(key)


def _borrow(handle: Any) -> Any:
    with _turn:
        loan = _loans.get(id(handle)) or _loans.setdefault(id(handle), _Loan(_copy_variable(handle)))
        loan.borrowers += 1
        return loan.copy


def _give_back(key: int) -> None:
    with _turn:
        loan = _loans[key]
        loan.borrowers -= 1
        if not loan.borrowers:
            tf.raw_ops.DestroyResourceOp(resource=_loans.pop(key).copy, ignore_lookup_error=True)


def _copy_variable(handle: Any) -> Any:
    with record.stop_recording(), tf.device("/device:CPU:0"):
        copy = make_empty_variable(handle)
        copy._handle_data = handle._handle_data
        if is_initialized(handle):
            tf.raw_ops.AssignVariableOp(resource=copy, value=read_variable(handle))
    return copy
