"""Find the functions that XLA could compile into few kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.suggestions.changes import CompiledByXla
from simplace.suggestions.edits import replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

_OPTION = "jit_compile"


def find_xla_changes(evidence: Evidence) -> Iterator[CompiledByXla]:
    """Find the decorator of the program's function, and calls of Keras's `compile` that turn XLA off."""
    program = evidence.placed.placement.program
    for source in evidence.files:
        for node in ast.walk(source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == program.name:
                for decorator in node.decorator_list:
                    yield from _compile_decorated(source, decorator)
            if isinstance(node, ast.keyword) and node.arg == _OPTION and _is_false(node.value):
                edit = replace_node(source, node.value, "True")
                yield CompiledByXla(edits=(edit,), at=f"{source.name}:{node.lineno}")


def _compile_decorated(source: SourceFile, decorator: ast.expr) -> Iterator[CompiledByXla]:
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
    yield CompiledByXla(edits=(replace_node(source, decorator, text),), at=f"{source.name}:{decorator.lineno}")


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
