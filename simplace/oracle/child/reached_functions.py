"""The functions and sessions that a program defines in its own files, and which of them a call has reached."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any
from weakref import WeakSet

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import polymorphic_function

_Definition = tuple[str, str]  # the name, and the "file:line" of the definition


class ReachedFunctions:
    """Write down each definition, and once for each what became of it; all of it at once, for a run may be killed.

    Two functions made of one definition, such as a method of two objects, count as one.
    """

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._defined: dict[_Definition, WeakSet[Any]] = {}
        self._traced: dict[_Definition, set[str]] = {}  # what the program holds without the function it is traced from
        self._told: set[tuple[_Definition, str]] = set()
        self._seen: set[str] = set()

    def watch(self) -> None:
        """Observe all functions that are made from now on."""
        base = polymorphic_function.Function
        base._simplace_definition = None
        patch_method(base, "__init__", self._note_definition)
        patch_method(base, "_call", self._note_call)
        patch_method(base, "_run_functions_eagerly", self._note_eager_call)
        patch_method(base, "get_concrete_function", self._note_trace)

    def _note_definition(self, create: Any) -> Any:
        def create_noted(function: Any, python_function: Any, *args: Any, **kwargs: Any) -> None:
            create(function, python_function, *args, **kwargs)
            definition = function._simplace_definition = self._find_definition(python_function)
            if definition is not None:
                self.define(definition).add(function)

        return create_noted

    def _note_call(self, call: Any) -> Any:
        def call_noted(function: Any, *args: Any, **kwargs: Any) -> Any:
            definition = function._simplace_definition
            if definition is None:
                return call(function, *args, **kwargs)
            self._tell(definition, "called")
            try:
                results = call(function, *args, **kwargs)
            except BaseException:
                self._tell(definition, "failed")
                raise
            if not tf.executing_eagerly():  # in a function that is traced, which may be all that knows this one
                self._traced.setdefault(definition, set()).update(_list_names(function))
            return results

        return call_noted

    def _note_eager_call(self, is_eager: Any) -> Any:
        """Return the property that each call of a function reads first."""

        def is_eager_noted(function: Any) -> bool:
            found, definition = is_eager.fget(function), function._simplace_definition
            if found and definition is not None:
                self._tell(definition, "eager")
            return bool(found)

        return property(is_eager_noted)

    def _note_trace(self, trace: Any) -> Any:
        def trace_noted(function: Any, *args: Any, **kwargs: Any) -> Any:
            concrete, definition = trace(function, *args, **kwargs), function._simplace_definition
            if definition is not None:
                self._traced.setdefault(definition, set()).add(concrete.name.decode())
            return concrete

        return trace_noted

    def define(self, definition: _Definition) -> WeakSet[Any]:
        """Note what a program defines; return the objects that are made of the definition."""
        if definition not in self._defined:
            self._defined[definition] = WeakSet()
            self._tell(definition, "defined")
        return self._defined[definition]

    def reach(self, definition: _Definition) -> None:
        """Note that TensorFlow has placed what a definition makes."""
        self._tell(definition, "reached")

    def reach_functions(self, names: Iterable[str]) -> None:
        """Note that TensorFlow has placed library functions, whichever definition each was traced from."""
        new = {name for name in names if name not in self._seen}
        if not new:
            return
        self._seen |= new
        differentiated = {shown_name(name).partition(" ")[0] for name in new if name.startswith("__forward_")}
        for definition in self._defined:
            traced = self._list_traced(definition)
            if not traced.isdisjoint(new) or not differentiated.isdisjoint(map(shown_name, traced)):
                self.reach(definition)

    def is_called(self, function: Any) -> bool:
        """Return whether the program has called a function, even if the call failed or ran it eagerly."""
        definition = getattr(function, "_simplace_definition", None)
        return not self._told.isdisjoint({(definition, "called"), (definition, "eager")})

    def report_end(self) -> None:
        """Note at the end what was traced, whether or not a call was placed."""
        for definition in self._defined:
            if self._list_traced(definition):
                self._tell(definition, "traced")

    def _list_traced(self, definition: _Definition) -> set[str]:
        """Return the names of the functions that were traced from a definition, as far as anything holds them."""
        held = (name for function in list(self._defined[definition]) for name in _list_names(function))
        return {*held} | self._traced.get(definition, set())

    def _find_definition(self, python_function: Any) -> _Definition | None:
        """Return the name and line of a function, None for what is not in the user's own files."""
        inner = inspect.unwrap(python_function)
        while isinstance(inner, partial):
            inner = inspect.unwrap(inner.func)
        code = getattr(inner, "__code__", None)
        at = self._lines.of_code(code) if code is not None else ""
        return (code.co_name, at) if code is not None and at else None

    def _tell(self, definition: _Definition, what: str) -> None:
        if (definition, what) not in self._told:
            self._told.add((definition, what))
            name, at = definition
            self._recorder.event("definition", name=name, at=at, what=what)


def _list_names(function: Any) -> Iterator[str]:
    """Yield the names of the library functions that were traced from one."""
    return (concrete.name.decode() for concrete in function._function_cache.values())
