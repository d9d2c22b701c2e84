"""Do something to a module once the program has imported it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from simplace.oracle.child.boundary import wrap_foreign


def after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act` with the module called `name`: at once if it is there, else when it is first imported."""
    if name in sys.modules:
        act(sys.modules[name])
        return
    sys.meta_path.insert(0, _AfterImportFinder(name, act))


class _AfterImportFinder:
    """A finder that leaves the search to the other finders, and acts after the module's execution."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._act = act

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = wrap_foreign(importlib.util.find_spec)(name)
        if spec is None or spec.loader is None:
            return None
        execute = wrap_foreign(spec.loader.exec_module)

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            self._act(module)

        spec.loader.exec_module = execute_and_act
        return spec
