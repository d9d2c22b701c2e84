"""Functions that a program has XLA compile: told where Keras does so unasked, and left to TensorFlow on demand."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.saved_model import loader_impl

from simplace.graph.op_kinds import MUST_COMPILE
from simplace.oracle.child.after_import import after_import
from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines


def ignore_jit() -> None:
    """Make `jit_compile` count for nothing, in each function that is made or loaded from now on."""
    make, parse = wrap_foreign(polymorphic_function.Function.__init__), wrap_foreign(loader_impl.parse_saved_model)

    def make_uncompiled(function: Any, *args: Any, **kwargs: Any) -> None:
        make(function, *args, **kwargs)
        function._jit_compile = None

    def parse_uncompiled(directory: str) -> Any:
        model = parse(directory)
        for meta in model.meta_graphs:
            drop_attributes(meta.graph_def)
        return model

    polymorphic_function.Function.__init__ = make_uncompiled
    loader_impl.parse_saved_model = parse_uncompiled


def remark_automatic_jit(recorder: Recorder, lines: SourceLines) -> None:
    """Tell where Keras decides by itself that XLA compiles the steps of a model."""

    def watch(trainer: ModuleType) -> None:
        resolve = wrap_foreign(trainer.Trainer._resolve_auto_jit_compile)

        def resolve_and_remark(model: Any) -> Any:
            is_compiled = resolve(model)
            if is_compiled:
                at = f" at {here}" if (here := lines.here()) else ""
                recorder.remark(
                    f"Keras compiles the steps of {model.name}{at} with XLA since it sees a GPU (jit_compile='auto'); "
                    "compile(jit_compile=False) or --no-jit shows where TensorFlow places their ops."
                )
            return is_compiled

        trainer.Trainer._resolve_auto_jit_compile = resolve_and_remark

    after_import("keras.src.trainers.trainer", watch)


def drop_attributes(graph: Any) -> None:
    """Take from a GraphDef the attributes that hand functions to XLA."""
    for function in graph.library.function:
        function.attr.pop(MUST_COMPILE, None)
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            node.attr.pop(MUST_COMPILE, None)
