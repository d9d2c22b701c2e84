"""Watch the user's own process: `with simplace.watch():` around code, or `simplace.watch()` among Keras's callbacks."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from simplace.errors import ProgramError

if TYPE_CHECKING:
    from simplace.api import Placements
    from simplace.oracle.live.watched_run import WatchedRun
    from simplace.program.watched import Watched

_CHILD = "simplace.oracle.child.run_target"  # the module that runs a program under `simplace show`
_NOTE = "the devices of this process"
_UNTOLD = "TensorFlow did not report where it placed them"


class Watch:
    """Watch what TensorFlow places while a block runs, on the devices that are there; nothing that runs is changed.

    It is a context manager, and a Keras callback without being made of one, so that nothing is imported for it. Under
    `simplace show` it does nothing, since that shows more.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._depth = 0
        self._run: WatchedRun | None = None
        self._trouble: Exception | None = None
        self._summary: Watched | None = None
        self._result: Placements | None = None

    @property
    def line(self) -> str:
        """Return the line that was written at the end of the block."""
        from simplace.views.text.watch_line import write_watch_line

        if self._trouble is not None:
            return _tell_trouble(self._trouble)
        if self._summary is None:
            return ""
        return write_watch_line(self._summary)

    @property
    def result(self) -> Placements:
        """Return what ran as `simplace.check` does: replayed, explained, and compared with TensorFlow's own devices.

        It is made when it is first asked for, in a second or so. Raises `simplace.errors.ProgramError` if nothing was
        watched, or nothing ran but sessions.
        """
        if self._result is None:
            self._result = self._place()
        return self._result

    def start(self) -> None:
        """Begin to watch; inside of what this object watches already it has no effect."""
        self._depth += 1
        if self._depth > 1 or _CHILD in sys.modules:
            return
        self._run = self._trouble = self._summary = self._result = None
        if "tensorflow" in sys.modules:
            self._watch()
            return
        from simplace.oracle.child.after_import import after_import

        after_import("tensorflow", lambda _: self._watch() if self._depth else None)

    def stop(self) -> None:
        """End what `start` began, and write the line to standard error."""
        self._depth = max(0, self._depth - 1)
        if self._depth or _CHILD in sys.modules:
            return
        self._guard(self._finish)
        if not self._quiet:
            self._guard(self._write)

    def _watch(self) -> None:
        self._guard(self._begin)

    def _begin(self) -> None:
        from simplace.oracle.child import tf_names, tf_private

        if missing := tf_private.describe_missing(*tf_names.WATCHING):
            raise ProgramError(missing)
        from simplace.oracle.live.watched_run import WatchedRun

        self._run = WatchedRun(_main_script())
        self._run.begin()

    def _finish(self) -> None:
        from simplace.program.watched import Watched

        if self._trouble is not None:
            return
        if self._run is None:
            self._summary = Watched()
            return
        self._run.end()
        if self._run.failure is not None:
            raise self._run.failure
        self._summary = self._run.summarize()

    def _write(self) -> None:
        print(self.line, file=sys.stderr)

    def _guard(self, act: Any) -> None:
        """Do what the program must not see fail."""
        try:
            act()
        except Exception as error:
            self._trouble = error

    def _place(self) -> Placements:
        from simplace.api import Placements, settings
        from simplace.oracle.live.watched_observation import observe_watched
        from simplace.oracle.scratch import scratch_folder
        from simplace.targets import place_observation

        if self._trouble is not None:
            raise ProgramError(_tell_trouble(self._trouble)) from self._trouble
        if _CHILD in sys.modules:
            raise ProgramError("simplace.watch does nothing under `simplace show`, whose own result has it all")
        if self._run is None or self._depth:
            raise ProgramError("nothing was watched yet: ask for the result after the block in which TensorFlow runs")
        if not self._run.has_seen_ops:
            raise ProgramError(self.line.removeprefix("simplace: "))
        with scratch_folder() as directory:
            observed = observe_watched(self._run, Path(directory))
            chosen = settings("cpu:1")  # the devices are those that were observed
            placed = place_observation(_main_script() or "this process", observed, chosen, Placements, _UNTOLD)
        from dataclasses import replace

        return replace(placed, devices_note=_NOTE)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<simplace.watch: {self.line or 'nothing yet'}>"

    # What Keras calls of a callback, also where its classes are those of TensorFlow 2.15 (tf_keras).
    async_safe = True
    params: Any = None
    model: Any = None

    def set_params(self, params: Any) -> None:
        """Store the parameters of the run."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Store the model."""
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin to watch."""
        self.start()

    def on_train_end(self, logs: Any = None) -> None:
        """Write the line."""
        self.stop()

    on_test_begin = on_predict_begin = on_train_begin
    on_test_end = on_predict_end = on_train_end

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Do nothing, as for all that comes more often."""

    on_epoch_end = on_batch_begin = on_batch_end = on_epoch_begin
    on_train_batch_begin = on_train_batch_end = on_epoch_begin
    on_test_batch_begin = on_test_batch_end = on_epoch_begin
    on_predict_batch_begin = on_predict_batch_end = on_epoch_begin

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _main_script() -> str:
    """Return the path of the program as it was started, "" in a notebook or an interactive session."""
    path = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return os.path.relpath(path) if path and os.path.exists(path) else path


def _tell_trouble(error: Exception) -> str:
    """Return the line for an error of simplace's own, with its place."""
    if isinstance(error, ProgramError):
        return f"simplace: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return (
        f"simplace: watching failed, which the program did not notice: {type(error).__name__}: {error}{at}; "
        "please report this"
    )
