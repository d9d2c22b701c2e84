"""The entry points from Python into TensorFlow, each with a look at what passes while somebody watches.

What TensorFlow is asked, returns and raises is handed on as it is. An error of simplace's own ends the watching and
nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

from simplace.oracle.child.tf_private import core, ops, pywrap_tfe, session

_Call = Callable[..., Any]


class Watcher(Protocol):
    """Something that looks at what passes; see `simplace.oracle.live.watched_run.WatchedRun`."""

    def wants_slow_path(self, op: str) -> bool:
        """Return whether an op is to take TensorFlow's slow path, where its inputs and attributes are known."""

    def begin_call(self, op: str, device: str, inputs: Any, attrs: Any, outputs: int) -> Any:
        """Observe an op or a function before it runs; what this returns, if not None, is passed to `end_call`."""

    def end_call(self, token: Any, results: Any, error: BaseException | None) -> None:
        """Observe what an op or a function has returned or raised."""

    def begin_session(self, session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        """Count a run of a session; what this returns, if not None, is passed to `end_session`."""

    def end_session(self, token: Any, metadata: Any) -> None:
        """Observe the graphs of a run of a session that has succeeded."""

    def note_scope(self, graph: Any) -> None:
        """Observe a graph whose innermost device scope has just been entered."""

    def fail(self, error: Exception) -> None:
        """Record an error of simplace's own, after which nothing is shown any more."""


_TURN = threading.RLock()
_slow = threading.local()  # of each thread, whether the op that it runs on the slow path was given no name
_UNNAMED = " name: "
_watchers: tuple[Watcher, ...] = ()
_resting: set[Watcher] = set()
_FAST = (pywrap_tfe, "TFE_Py_FastPathExecute")
_originals: dict[tuple[Any, str], _Call] = {}


def add_watcher(watcher: Watcher) -> None:
    """Begin to show a watcher what passes; the first one makes the entry points ours."""
    global _watchers
    with _TURN:
        if not _watchers:
            for (owner, name), ours in _OURS.items():
                _originals[owner, name] = getattr(owner, name)
                setattr(owner, name, ours)
        _watchers = (*_watchers, watcher)
        _choose_fast_path()


def remove_watcher(watcher: Watcher) -> None:
    """Show a watcher nothing more; with the last one the entry points are TensorFlow's own again."""
    global _watchers
    with _TURN:
        is_last = _watchers == (watcher,)
        _watchers = tuple(each for each in _watchers if each is not watcher)
        _resting.discard(watcher)
        if not is_last:
            _choose_fast_path()
            return
        for (owner, name), ours in _OURS.items():
            if vars(owner)[name] is ours:  # nobody else has replaced it meanwhile
                setattr(owner, name, _originals[owner, name])


def rest_watcher(watcher: Watcher) -> None:
    """Show a watcher no ops of the fast path for a while: if nobody looks, that is TensorFlow's own."""
    with _TURN:
        if watcher in _watchers:
            _resting.add(watcher)
            _choose_fast_path()


def wake_watcher(watcher: Watcher) -> None:
    """End what `rest_watcher` began."""
    with _TURN:
        _resting.discard(watcher)
        _choose_fast_path()


def _choose_fast_path() -> None:
    if not _watchers:
        return
    ours, theirs = _OURS[_FAST], _originals[_FAST]
    wanted = theirs if _resting.issuperset(_watchers) else ours
    if vars(pywrap_tfe)[_FAST[1]] in (ours, theirs):  # nobody else has replaced it meanwhile
        setattr(*_FAST, wanted)


def execute(handle: Any, device: str, op: str, inputs: Any, attrs: Any, outputs: int, cancellation: Any = None) -> Any:
    """Run an op or a function without showing it to anybody."""
    if cancellation is None:
        return _original(pywrap_tfe, "TFE_Py_Execute")(handle, device, op, inputs, attrs, outputs)
    call = _original(pywrap_tfe, "TFE_Py_ExecuteCancelable")
    return call(handle, device, op, inputs, attrs, cancellation, outputs)


def _original(owner: Any, name: str) -> _Call:
    found: _Call = getattr(owner, name)
    return _originals[owner, name] if found is _OURS[owner, name] else found


def _run_fast(ctx: Any, op: str, name: Any, *args: Any) -> Any:
    for watcher in _watchers:
        try:
            is_wanted = watcher.wants_slow_path(op)
        except Exception as error:
            is_wanted = False
            _end_watching(watcher, error)
        if is_wanted:
            _slow.is_unnamed = name is None
            raise core._FallbackException("simplace looks at this op on the slow path")
    return _originals[pywrap_tfe, "TFE_Py_FastPathExecute"](ctx, op, name, *args)


def _run(handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, outputs: Any) -> Any:
    call = _originals[pywrap_tfe, "TFE_Py_Execute"]
    tokens = _begin(device, op, inputs, attrs, outputs)
    if not tokens:
        return call(handle, device, op, inputs, attrs, outputs)
    return _run_shown(tokens, call, handle, device, op, inputs, attrs, outputs)


def _run_cancelable(
    handle: Any, device: str | None, op: str | bytes, inputs: Any, attrs: Any, cancellation: Any, outputs: Any
) -> Any:
    call = _originals[pywrap_tfe, "TFE_Py_ExecuteCancelable"]
    tokens = _begin(device, op, inputs, attrs, outputs)
    if not tokens:
        return call(handle, device, op, inputs, attrs, cancellation, outputs)
    return _run_shown(tokens, call, handle, device, op, inputs, attrs, cancellation, outputs)


def _begin(device: str | None, op: str | bytes, inputs: Any, attrs: Any, outputs: Any) -> list[tuple[Watcher, Any]]:
    """Show a call to those who watch; return who wants to see what becomes of it, and their tokens."""
    name = op.decode() if isinstance(op, bytes) else op
    tokens = []
    for watcher in _watchers:
        token = _show(watcher, watcher.begin_call, name, device or "", inputs, attrs, outputs)
        if token is not None:
            tokens.append((watcher, token))
    return tokens


def _run_shown(tokens: list[tuple[Watcher, Any]], call: _Call, *args: Any) -> Any:
    try:
        results = call(*args)
    except BaseException as error:
        if getattr(_slow, "is_unnamed", False):
            _word_as_fast_path(error)
        for watcher, token in reversed(tokens):
            _show(watcher, watcher.end_call, token, None, error)
        raise
    finally:
        _slow.is_unnamed = False
    for watcher, token in reversed(tokens):
        _show(watcher, watcher.end_call, token, results, None)
    return results


def _word_as_fast_path(error: BaseException) -> None:
    """Add to the error of an op without a name what TensorFlow adds on the fast path, and not on the slow one."""
    if isinstance(error, tf.errors.OpError):
        error._message += _UNNAMED
    elif isinstance(error, core._NotOkStatusException):  # what older versions raise
        error.message += _UNNAMED


def _run_session(own: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
    from simplace.oracle.live.watched_sessions import run_and_tell

    call = _originals[session.BaseSession, "_call_tf_sessionrun"]
    begun = [
        (watcher, _show(watcher, watcher.begin_session, own, options, feeds, fetches, targets, metadata))
        for watcher in _watchers
    ]
    tokens = [(watcher, token) for watcher, token in begun if token is not None]
    if not tokens:
        return call(own, options, feeds, fetches, targets, metadata)
    results, told = run_and_tell(call, own, feeds, fetches, targets)
    for watcher, token in tokens:
        _show(watcher, watcher.end_session, token, told)
    return results


def _enter_scope(graph: Any, *args: Any, **kwargs: Any) -> Any:
    entered = _originals[ops.Graph, "_add_device_to_stack"](graph, *args, **kwargs)
    for watcher in _watchers:
        _show(watcher, watcher.note_scope, graph)
    return entered


def _show(watcher: Watcher, look: _Call, *args: Any) -> Any:
    """Call a watcher; what goes wrong in it is kept from the program."""
    try:
        return look(*args)
    except Exception as error:
        _end_watching(watcher, error)
        return None


def _end_watching(watcher: Watcher, error: Exception) -> None:
    remove_watcher(watcher)
    watcher.fail(error)


_OURS: dict[tuple[Any, str], _Call] = {
    _FAST: _run_fast,
    (pywrap_tfe, "TFE_Py_Execute"): _run,
    (pywrap_tfe, "TFE_Py_ExecuteCancelable"): _run_cancelable,
    (session.BaseSession, "_call_tf_sessionrun"): _run_session,
    (ops.Graph, "_add_device_to_stack"): _enter_scope,
}
