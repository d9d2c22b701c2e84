"""Copies of GPU variables in host memory, lent to computations on the CPU, then written back.

Computations that run at the same time, in several threads or one inside of the other's `py_function`, share one copy of
a variable, so that each sees what the others have assigned, as on a GPU. Of a variable that has not changed since, the
copy is still right: both then have the same memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.oracle.child.failures import FAILURES, find_code
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.shared_memory import find_address
from simplace.oracle.child.shared_rendezvous import run_alone
from simplace.oracle.child.tensors import (
    describe_variable,
    find_host,
    is_gpu_variable,
    is_initialized,
    make_empty_variable,
    name_resource,
    to_device,
)
from simplace.oracle.child.tf_private import context, pywrap_tfe, record

_COPY = "_simplace_host_copy"  # an attribute of handles, which goes when they go
_WITHOUT_VALUE = (tf.errors.FAILED_PRECONDITION, tf.errors.NOT_FOUND)


@dataclass(slots=True)
class _Copy:
    """Record of a copy, and how many computations have it.

    `value` is what the copy and its variable last had both, whose memory is at `address`, 0 if that is not known. As
    long as the value is kept, TensorFlow writes nothing else to its memory.
    """

    handle: Any
    dtype: int
    value: Any = None
    address: int = 0
    borrowers: int = 0

    def note(self, value: Any, address: int) -> None:
        """Keep what the copy and its variable have both."""
        self.value, self.address = value, address


_turn = threading.Lock()
_execute = run_alone(find_original(pywrap_tfe, "TFE_Py_Execute"))


@contextmanager
def lend_to_host(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the inputs with a copy in host memory for each GPU variable.

    Afterwards the variables have its value, also after an error: what was assigned before that stays.
    """
    variables = {id(tensor): tensor for tensor in inputs if is_gpu_variable(tensor)}
    copies = {key: _borrow(tensor) for key, tensor in variables.items()}
    try:
        yield [copies[id(tensor)].handle if id(tensor) in copies else tensor for tensor in inputs]
    finally:
        with _turn:
            for copy in copies.values():
                copy.borrowers -= 1
            for key, copy in copies.items():
                _write_back(variables[key], copy)


def return_lent(results: Sequence[Any], lent: Sequence[Any], own: Sequence[Any]) -> list[Any]:
    """Return results with the program's own handle in the place of that of a copy that was lent for it."""
    pairs = [(copy, handle) for copy, handle in zip(lent, own, strict=True) if copy is not handle]
    if not pairs or all(result.dtype != tf.resource for result in results):
        return list(results)
    names = {name_resource(copy): handle for copy, handle in pairs}
    return [names.get(name_resource(each), each) if each.dtype == tf.resource else each for each in results]


def _borrow(handle: Any) -> _Copy:
    with _turn:
        copy: _Copy | None = vars(handle).get(_COPY)
        if copy is None or not copy.borrowers:
            copy = vars(handle)[_COPY] = _refresh(handle, copy)
        copy.borrowers += 1
        return copy


def _refresh(handle: Any, copy: _Copy | None) -> _Copy:
    """Return a copy of a variable with its present value, an earlier one where there is one."""
    dtype = describe_variable(handle).dtype.as_datatype_enum if copy is None else copy.dtype
    value = _read(handle, dtype)
    if copy is None or value is None:  # an earlier copy may have a value
        copy = _Copy(_make_copy(handle), dtype)
    address = 0 if value is None else find_address(value)
    if value is not None and (not address or address != copy.address):
        moved = to_device(value, find_host())
        _assign(copy.handle, moved, dtype)
        copy.note(moved, find_address(moved))
    return copy


def _make_copy(handle: Any) -> Any:
    with record.stop_recording(), tf.device("/device:CPU:0"):
        copy = make_empty_variable(handle)
        copy._handle_data = handle._handle_data
    return copy


def _write_back(handle: Any, copy: _Copy) -> None:
    """Assign the value of a copy to its variable, unless that has it."""
    value = _read(copy.handle, copy.dtype)
    if value is None:
        return
    address = find_address(value)
    if not address or address != copy.address:
        _assign(handle, to_device(value, str(handle.device)), copy.dtype)
        copy.note(value, address)


def _read(handle: Any, dtype: int) -> Any:
    """Return the value of a variable, which shares its memory; None if it has none."""
    try:
        value = _execute(context.context()._handle, None, "ReadVariableOp", [handle], ("dtype", dtype), 1)[0]
    except FAILURES as error:
        if find_code(error) not in _WITHOUT_VALUE:
            raise
        return None
    # One that was looked up before its first assignment is there without a value, and read as an empty tensor.
    return value if value._num_elements() or is_initialized(handle) else None


def _assign(handle: Any, value: Any, dtype: int) -> None:
    _execute(context.context()._handle, None, "AssignVariableOp", [handle, value], ("dtype", dtype), 0)
