"""Settings of TensorFlow's configuration that it refuses, as facts: since it has started, or since they contradict."""

from __future__ import annotations

from typing import Any

from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import context

# The methods of TensorFlow's context that set what it reads when it starts, and what they set in words.
_SETTERS = {
    "set_memory_growth": "memory growth",
    "set_logical_device_configuration": "logical devices",
    "set_visible_devices": "visible devices",
}
_PROPERTIES = {
    "intra_op_parallelism_threads": "threads of an op",
    "inter_op_parallelism_threads": "threads for ops",
}


class RefusedSettings:
    """Record each setting that TensorFlow refuses, the line that had started it, and whose memory may grow."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._started_at = ""

    def watch(self) -> None:
        """Observe the program from now on."""
        patch_method(context.Context, "ensure_initialized", self._note_start)
        for name, what in _SETTERS.items():
            patch_method(context.Context, name, self._noting(what))
        for name, what in _PROPERTIES.items():
            patch_method(context.Context, name, self._noting_property(what))

    def _note_start(self, initialize: Any) -> Any:
        def initialize_noted(ctx: Any) -> None:
            if not self._started_at and ctx._context_handle is None:
                self._started_at = self._lines.here()
            initialize(ctx)

        return initialize_noted

    def _noting(self, what: str) -> Any:
        def wrap(setter: Any) -> Any:
            def set_noted(ctx: Any, *args: Any, **kwargs: Any) -> None:
                self._set(what, lambda: setter(ctx, *args, **kwargs))
                if what == "memory growth" and all((*args[1:], *kwargs.values())):
                    self._note_growth()

            return set_noted

        return wrap

    def _noting_property(self, what: str) -> Any:
        def wrap(setting: Any) -> Any:
            set_value = wrap_foreign(setting.fset)

            def set_noted(ctx: Any, value: Any) -> None:
                self._set(what, lambda: set_value(ctx, value))

            return setting.setter(set_noted)

        return wrap

    def _set(self, what: str, act: Any) -> None:
        try:
            act()
        except (RuntimeError, ValueError) as error:
            if at := self._lines.here():
                values = {"setting": what, "error": str(error), "started": self._started_at}
                self._recorder.event("python", fact="setting refused", at=at, values=values)
            raise

    def _note_growth(self) -> None:
        if at := self._lines.here():
            self._recorder.event("python", fact="memory growth", at=at, values={})
