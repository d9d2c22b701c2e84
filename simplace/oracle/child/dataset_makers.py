"""What makes the functions of datasets: the call of the user's line, and the function of Python that is traced."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from simplace.graph.function_names import shown_name
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import gen_dataset_ops, structured_function

_LAMBDA = "<lambda>"
_GENERATES = ("init_func", "next_func", "finalize_func")  # arguments of the op of a dataset that calls them in turn


class DatasetMakers:
    """Write down what each function of a dataset is made of, when it is traced."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._known: set[str] = set()

    def watch(self) -> None:
        """Observe all functions that are traced for datasets from now on, and those that TensorFlow gives to one."""
        patch_method(structured_function.StructuredFunctionWrapper, "__init__", self._note_maker)
        patch_method(gen_dataset_ops, "generator_dataset", self._note_given)

    def _note_maker(self, create: Any) -> Any:
        def create_noted(wrapper: Any, func: Any, *args: Any, **kwargs: Any) -> None:
            create(wrapper, func, *args, **kwargs)
            own = next(self._list_users(func, set()), None)
            name = _name_function(func if own is None else own)
            self._write(read_function_name(wrapper._function), name, own is not None)

        return create_noted

    def _note_given(self, make: Any) -> Any:
        """Note the functions that take elements over to another device: they are no functions of the user's."""

        def make_noted(*args: Any, **kwargs: Any) -> Any:
            for function in (read_function_name(kwargs[name]) for name in _GENERATES if name in kwargs):
                if function not in self._known:
                    self._write(function, shown_name(function), False)
            return make(*args, **kwargs)

        return make_noted

    def _write(self, function: str, name: str, is_users: bool) -> None:
        self._known.add(function)
        called = self._lines.name_call()
        self._recorder.event("dataset function", function=function, called=called, name=name, is_users=is_users)

    def _list_users(self, func: Any, seen: set[int]) -> Iterator[Any]:
        """Yield the function if it is the user's, or else those of the user's that it wraps."""
        func = _unwrap(func)
        code = getattr(func, "__code__", None) or getattr(type(func).__call__, "__code__", None)
        if id(func) in seen or code is None:
            return
        seen.add(id(func))
        if self._lines.of_code(code):
            yield func
            return
        for cell in getattr(func, "__closure__", None) or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # of a name that has no value yet
                continue
            if callable(inner) and not isinstance(inner, type):
                yield from self._list_users(inner, seen)


def _unwrap(func: Any) -> Any:
    """Return the function behind partial calls and bound methods."""
    while isinstance(func, functools.partial):
        func = func.func
    return getattr(func, "__func__", func)


def _name_function(func: Any) -> str:
    """Return the name that a function has for its author, that of its class for an object that is called."""
    func = _unwrap(func)
    name = getattr(func, "__name__", None)
    return type(func).__name__ if not isinstance(name, str) else "lambda" if name == _LAMBDA else name
