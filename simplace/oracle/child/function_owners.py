"""Which `tf.function` makes the call that runs now: its traces are told from those of others of the same name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from simplace.oracle.child.frame_locals import read_local
from simplace.oracle.child.keras_calls import name_keras_call
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import polymorphic_function, traceback_utils, tracing_compilation
from simplace.program.program import FIRST_CALL

_CALL = polymorphic_function.Function._call.__code__
_DIRECT_CALL = tracing_compilation.call_function.__code__  # of a function that is no `tf.function`
_AROUND = (_CALL.co_filename, getattr(traceback_utils, "__file__", ""))  # between a call and who makes it


@dataclass(frozen=True, slots=True)
class Owner:
    """Record of a `tf.function`: a number, 0 for none, and the name of what it was made of.

    `is_internal` tells that it is made of TensorFlow's own code and called by it, as for gradients in forward mode
    (forwardprop.py).
    """

    number: int = 0
    name: str = ""
    is_internal: bool = False


class FunctionOwners:
    """Number the functions that a program calls.

    Those of the user's that are made of the same code are one, as TensorFlow counts traces: one that is made anew in a
    loop is traced each time (Function._get_key_for_call_stats in polymorphic_function.py). A library makes one of the
    same code for each model, or for each function that it loads.
    """

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._next = 1

    def find(self) -> Owner:
        """Return the function whose call runs now, if no code of the user's runs within it."""
        frame = inspect.currentframe()
        while frame is not None and not self._lines.is_of_user(frame.f_code):
            if frame.f_code is _CALL:
                return self._describe(frame)
            if frame.f_code is _DIRECT_CALL and not self._is_in_call(frame):
                return Owner(is_internal=self._is_called_by_tensorflow(frame))
            frame = frame.f_back
        return Owner()

    def name_call(self, name: str) -> str:
        """Return what the call of the function `name` is to the user, "" where the name says it."""
        if name.partition(" ")[0] != FIRST_CALL:
            return name_keras_call(name, self._lines)
        owner = self.find().name
        return f"{owner}, first call" if owner else ""

    def _describe(self, frame: FrameType) -> Owner:
        function = read_local(frame, "self")
        code = function._get_key_for_call_stats()
        key = code if isinstance(code, CodeType) and self._lines.is_of_user(code) else function
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
        is_internal = isinstance(code, CodeType) and self._lines.is_of_tensorflow(code)
        return Owner(self._numbers[key], function.name, is_internal and self._is_called_by_tensorflow(frame))

    @staticmethod
    def _is_in_call(call: FrameType) -> bool:
        return call.f_back is not None and call.f_back.f_code.co_filename == _CALL.co_filename

    def _is_called_by_tensorflow(self, call: FrameType) -> bool:
        frame = call.f_back
        while frame is not None and frame.f_code.co_filename in _AROUND:
            frame = frame.f_back
        return frame is not None and self._lines.is_of_tensorflow(frame.f_code)
