"""Functions that a program has XLA compile: a remark where Keras does so unasked, and none compiled on demand."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from simplace.graph.op_kinds import MUST_COMPILE, NO_INLINE
from simplace.oracle.child.after_import import after_import
from simplace.oracle.child.frame_locals import read_local
from simplace.oracle.child.loaded_graphs import change_loaded_graphs, list_node_defs
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import OWN, SourceLines
from simplace.oracle.child.tf_private import polymorphic_function

_NEAR = 6  # frames between `compile` and the attribute that it sets
_MAKING = ("make_train_function", "make_test_function", "make_predict_function")


def ignore_jit() -> None:
    """Make `jit_compile` count for nothing, in each function that is made or loaded from now on."""
    patch_method(polymorphic_function.Function, "__init__", _make_uncompiled)
    change_loaded_graphs(drop_attributes)


def _make_uncompiled(make: Any) -> Any:
    def make_uncompiled(function: Any, *args: Any, **kwargs: Any) -> None:
        make(function, *args, **kwargs)
        function._jit_compile = None

    return make_uncompiled


class AutomaticJit:
    """Follow where Keras decides by itself that XLA compiles the steps of a model, since it sees a GPU."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._decided: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # by model: saving one also makes Keras decide

    def watch(self) -> None:
        """Remark such a decision, once Keras makes one of the steps."""
        after_import("keras.src.trainers.trainer", self._watch_decision)
        after_import("keras.src.backend.tensorflow.trainer", self._watch_steps)

    def is_behind_call(self) -> bool:
        """Return whether a model that Keras decided on makes the call that runs now."""
        frame = inspect.currentframe()
        while frame is not None:
            caller = read_local(frame, "self")
            if caller is not None and any(caller is model for model in self._decided):
                return True
            frame = frame.f_back
        return False

    def _watch_decision(self, trainer: ModuleType) -> None:
        patch_method(trainer.Trainer, "_resolve_auto_jit_compile", self._note_decision)

    def _watch_steps(self, trainer: ModuleType) -> None:
        for name in _MAKING:
            patch_method(trainer.TensorFlowTrainer, name, self._remark_step)

    def _note_decision(self, resolve: Any) -> Any:
        def resolve_noted(model: Any) -> Any:
            is_compiled = resolve(model)
            if is_compiled and not _is_set_later():
                at = f" at {here}" if (here := self._lines.here()) else ""
                self._decided[model] = (
                    f"Keras compiles the steps of {model.name}{at} with XLA since it sees a GPU (jit_compile='auto'); "
                    "compile(jit_compile=False) or --no-jit shows where TensorFlow places their ops."
                )
            return is_compiled

        return resolve_noted

    def _remark_step(self, make: Any) -> Any:
        def make_with_remark(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = make(model, *args, **kwargs)
            if model in self._decided and model.jit_compile and not model.run_eagerly:
                self._recorder.remark(self._decided[model])
            return made

        return make_with_remark


def _is_set_later() -> bool:
    """Return whether `compile` only looks at the value before it sets what the user gave."""
    caller = inspect.currentframe()
    while caller is not None and caller.f_code.co_filename.startswith(OWN):
        caller = caller.f_back
    if caller is None or caller.f_code.co_name == "compile":
        return False
    for _ in range(_NEAR):
        caller = caller.f_back if caller is not None else None
        if caller is not None and caller.f_code.co_name == "compile":
            return True
    return False


def drop_attributes(graph: Any) -> None:
    """Remove from a GraphDef the attributes that make XLA compile functions."""
    for function in graph.library.function:
        if MUST_COMPILE in function.attr and function.attr.pop(MUST_COMPILE).b:
            function.attr.pop(NO_INLINE, None)
    for node in list_node_defs(graph):
        node.attr.pop(MUST_COMPILE, None)
