"""The one way to replace a method of TensorFlow or Keras: each once, by the modules and in the order declared here."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simplace.oracle.child.boundary import drop_own_frames, is_own, wrap_foreign

# The modules that hook into a method of which there are several, the innermost first.
ORDER = {
    "BaseSession.__init__": ("sessions", "python_facts"),
    "Context.ensure_initialized": ("clusters", "refused_settings"),
    "Context.log_device_placement": ("devices", "python_facts"),
    "Function.__init__": ("xla_functions", "reached_functions"),
    "StructuredFunctionWrapper.__init__": ("dataset_makers", "python_facts"),
}


_NOT_CONVERTED = "autograph_info__"  # AutoGraph calls what has it as it is, and converts and shows other code


class PatchError(Exception):
    """Report a method that would be patched twice, or by a module that is not declared for it."""


@dataclass(slots=True)
class _Patched:
    """Record of a method as it was, and of the modules that have hooked into it."""

    owner: Any
    original: Any
    hooks: list[str] = field(default_factory=list)


_reports: list[Callable[[Exception], None]] = []
_patched: dict[tuple[int, str], _Patched] = {}  # the records keep the owners, so that no other object gets their id


def patch_method(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace a method of a class, or a function of a module, by what `wrap` returns for the present one.

    Raise `PatchError` where it is patched already, unless `ORDER` has the module of `wrap` after those that did so.
    """
    known = _patched.get((id(owner), name)) or _Patched(owner, getattr(owner, name))
    hook, shown = wrap.__module__.rpartition(".")[2], f"{owner.__name__.rpartition('.')[2]}.{name}"
    order = ORDER.get(shown, (hook,))
    if hook not in order or not set(known.hooks) <= set(order[: order.index(hook)]):
        raise PatchError(f"{shown} is patched by {', '.join(known.hooks) or order[0]}, so {hook} cannot patch it now")
    made = wrap(getattr(owner, name) if known.hooks else _as_foreign(known.original))
    is_plain = inspect.isfunction(made) or inspect.ismethod(made)
    setattr(owner, name, _with_signature(_report_errors(made), known.original) if is_plain else made)
    known.hooks.append(hook)
    _patched[id(owner), name] = known


def report_own_errors(report: Callable[[Exception], None]) -> None:
    """Call `report` with each error of simplace's own that leaves a patched method: the program may handle it."""
    _reports.append(report)


def _report_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def reporting(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            _report_error(error)
            raise

    setattr(reporting, _NOT_CONVERTED, {})
    return reporting


def _report_error(error: Exception) -> None:
    if not is_own(error):
        drop_own_frames(error)
        return
    for report in _reports:
        report(error)


def _with_signature(patched: Any, original: Any) -> Any:
    """Return `patched` with the parameters of the method that it replaces.

    Keras asks for them by `getfullargspec`, which does not look at what a function wraps.
    """
    with contextlib.suppress(ValueError, TypeError):  # a builtin has none
        patched.__signature__ = inspect.signature(original)
    return patched


def restore_method(owner: Any, name: str) -> None:
    """Undo all patches of a method."""
    setattr(owner, name, _patched.pop((id(owner), name)).original)


def find_original(owner: Any, name: str) -> Any:
    """Return a method as it was before any patch; what it raises counts as TensorFlow's."""
    known = _patched.get((id(owner), name))
    return _as_foreign(getattr(owner, name) if known is None else known.original)


def _as_foreign(method: Any) -> Any:
    return wrap_foreign(method) if callable(method) and not inspect.isclass(method) else method
