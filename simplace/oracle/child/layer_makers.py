"""Record which call in the user's files makes each layer of Keras."""

from __future__ import annotations

import functools
import inspect
from types import FrameType, ModuleType
from typing import Any

from simplace.oracle.child.after_import import after_import
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import OWN, SourceLines


class LayerMakers:
    """The calls that make layers: each a fact "layer made" as soon as the layer has its name.

    What makes a layer within another one is a fact as well. A layer that a library makes for itself is none.
    """

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._making: dict[int, tuple[str, str]] = {}

    def watch(self) -> None:
        """Observe the program from now on."""
        after_import("keras.src.layers.layer", self._watch_layers)

    def _watch_layers(self, module: ModuleType) -> None:
        patch_method(module.Layer, "__new__", self._note_call)
        patch_method(module.Layer, "__init__", self._note_name)

    def _note_call(self, make: Any) -> Any:
        @functools.wraps(make)
        def make_noted(kind: Any, *args: Any, **kwargs: Any) -> Any:
            layer = make(kind, *args, **kwargs)
            call = self._locate(inspect.currentframe())
            if call is not None:
                self._making[id(layer)] = call
            return layer

        return make_noted

    def _locate(self, frame: FrameType | None) -> tuple[str, str] | None:
        """Return the line and the extent of the call that a frame executes, None where that is not the user's own."""
        while frame is not None and (frame.f_code.co_name == "__new__" or frame.f_code.co_filename.startswith(OWN)):
            frame = frame.f_back
        return None if frame is None else self._lines.locate_call(frame)

    def _note_name(self, begin: Any) -> Any:
        @functools.wraps(begin)  # Keras reads the signature
        def begin_noted(layer: Any, *args: Any, **kwargs: Any) -> None:
            begin(layer, *args, **kwargs)
            call = self._making.pop(id(layer), None)
            if call is not None:
                at, extent = call
                values = {"layer": layer.name, "extent": extent, "model": "yes" if _is_model(layer) else ""}
                self._recorder.event("python", fact="layer made", at=at, values=values)

        return begin_noted


def _is_model(layer: Any) -> bool:
    return any(kind.__name__ == "Model" and kind.__module__.startswith("keras.") for kind in type(layer).__mro__)
