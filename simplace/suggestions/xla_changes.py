"""Find the functions that XLA could compile into few kernels, and those that it should leave alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.suggestions.changes import NoXlaCompilation, XlaCompilation
from simplace.suggestions.edits import add_argument, replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

_OPTION = "jit_compile"


def find_xla_changes(evidence: Evidence) -> Iterator[XlaCompilation]:
    """Find the decorator of the program's function, and calls of Keras's `compile` that turn XLA off."""
    program = evidence.placed.placement.program
    for source in evidence.files:
        for node in ast.walk(source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == program.name:
                for decorator in node.decorator_list:
                    yield from _compile_decorated(source, decorator)
            if isinstance(node, ast.keyword) and node.arg == _OPTION and _is_false(node.value):
                edit = replace_node(source, node.value, "True")
                yield XlaCompilation(edits=(edit,), at=f"{source.name}:{node.lineno}")


def find_xla_removals(evidence: Evidence) -> Iterator[NoXlaCompilation]:
    """Find where the program that XLA compiles says so, or where Keras's `compile` leaves it to Keras, which does."""
    is_of_keras = bool(evidence.placed.placement.program.role)
    for source in evidence.files:
        for call in source.calls:
            given = next((keyword.value for keyword in call.keywords if keyword.arg == _OPTION), None)
            edit = None
            if given is not None and not _is_false(given):
                edit = replace_node(source, given, "False")
            elif given is None and is_of_keras and compiles_model(source, call):
                edit = add_argument(source, call, f"{_OPTION}=False")
            if edit is not None:
                yield NoXlaCompilation(edits=(edit,), at=f"{source.name}:{edit.line}")


def compiles_model(source: SourceFile, call: ast.Call) -> bool:
    """Return whether a call is one of a method `compile`, and not of `re.compile`."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "compile"
    return named and source.segment(call.func) != f"{source.find_module('re')}.compile"


def _compile_decorated(source: SourceFile, decorator: ast.expr) -> Iterator[XlaCompilation]:
    """Add `jit_compile=True` to `@tf.function`, with arguments or without."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(called, ast.Attribute) or called.attr != "function":
        return
    text = source.segment(decorator)
    if not isinstance(decorator, ast.Call):
        text = f"{text}({_OPTION}=True)"
    elif any(keyword.arg in (_OPTION, None) for keyword in decorator.keywords):
        return
    else:
        given = [source.segment(argument) for argument in decorator.args]
        given += [f"{keyword.arg}={source.segment(keyword.value)}" for keyword in decorator.keywords]
        text = f"{source.segment(called)}({', '.join([*given, f'{_OPTION}=True'])})"
    yield XlaCompilation(edits=(replace_node(source, decorator, text),), at=f"{source.name}:{decorator.lineno}")


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
