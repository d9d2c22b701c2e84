"""The limit on computed calls of a function: later calls return the latest values, and an epoch ends early."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Hashable
from typing import Any

import tensorflow as tf

from simplace.oracle.child.boundary import raise_as_theirs
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines

_RETRACES = 50
_MOST_NODES = 20_000  # of the placements of one function, which may be many if they are small
_STOP = signal.SIGUSR1  # how another thread stops the program, which may wait for that thread
_EPOCHS = 100  # of a function that are begun; later ones are empty
_MOST_SKIPPED = 10_000  # a program that still goes on may wait for other values


class Stopped(BaseException):
    """End the user's program: nothing new is to be expected of it."""


class CallLimit:
    """Decide which calls are computed, so that a program of many similar steps ends soon."""

    def __init__(self, most: int, recorder: Recorder, lines: SourceLines) -> None:
        self._most = most
        self._most_traces = max(_RETRACES, most)
        self._recorder = recorder
        self._lines = lines
        self._computed: Counter[tuple[str, Hashable]] = Counter()
        self._skipped: Counter[str] = Counter()
        self._traces: Counter[tuple[str, Hashable]] = Counter()
        self._nodes: Counter[tuple[str, Hashable]] = Counter()
        self._unshown: Counter[tuple[str, Hashable]] = Counter()
        self._iterators: dict[str, set[Hashable]] = {}
        self.has_ended_input = False
        self.has_stopped = False
        signal.signal(_STOP, self._stop_here)

    def explain_values(self) -> str:
        """Return a clause on calls that were not computed, of which an error may come; "" if there are none."""
        names = sorted(self._skipped)
        if not names:
            return ""
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"only some calls of {names[0]}{more} were computed, which --calls all changes"

    def shows(self, name: str, owner: Hashable, nodes: int) -> bool:
        """Count a placement of `name`, and return whether it is shown, as all are but those of what has very many.

        Others of the same name have another `owner`, and count for themselves.
        """
        is_shown = self._count(name, owner, nodes)
        self._unshown[name, owner] += not is_shown
        return is_shown

    def count_graph(self, name: str, owner: Hashable, nodes: int) -> None:
        """Count a placement of a session; stop a program whose graph grows again and again, unless all count."""
        if not self._count(name, owner, nodes):
            times = f"{self._traces[name, owner] - 1:,} times, each time with another graph"
            self._stop(f"{name} was placed {times} (--calls all goes on)")

    def _count(self, name: str, owner: Hashable, nodes: int) -> bool:
        """Return whether there are not too many placements of `name` by now, and of too many nodes."""
        function = name, owner
        self._traces[function] += 1
        self._nodes[function] += nodes
        is_much = self._traces[function] > self._most_traces and self._nodes[function] > _MOST_NODES
        return self._most < 0 or not is_much

    def allows(
        self, name: str, signature: Hashable, iterator: Hashable = None, *, uses_container: bool = False
    ) -> bool:
        """Return whether a call of `name` is to be computed; otherwise it returns its latest values.

        Calls count by `signature`. `iterator` identifies the iterator that it takes an element from, None if none:
        after the last call that is computed, each iterator yields one element more, so that no epoch is empty, and then
        comes to its end: `tf.errors.OutOfRangeError` is raised. A call that takes no element is always computed if it
        `uses_container`, such as a queue: others may wait for what it does.
        """
        self._computed[name, signature] += 1
        if self._most < 0 or self._computed[name, signature] <= self._most:
            return True
        if uses_container and iterator is None:
            return True
        self._skip(name)
        if iterator is None:
            return self._skipped[name] > _MOST_SKIPPED
        begun = self._iterators.setdefault(name, set())
        if iterator in begun or len(begun) >= _EPOCHS:
            self._end_input(name)
        begun.add(iterator)
        return True

    def report(self) -> None:
        """Write remarks on how many calls were not computed, and how many placements are not shown."""
        for name, times in self._skipped.items():
            if name not in self._iterators:
                computed = sum(count for (each, _), count in self._computed.items() if each == name) - times
                often, later = "once" if computed == 1 else f"{computed} times", "call" if times == 1 else "calls"
                self._recorder.remark(
                    f"{name} was computed {often}; {times} later {later} returned the latest values "
                    "(--calls all computes every one)."
                )

        for (name, owner), times in self._unshown.items():
            if times:
                again = f"{self._traces[name, owner]:,} times, each time with another signature or other devices"
                which = "the last is" if times == 1 else f"the last {times:,} are"
                self._recorder.remark(f"{name} was placed {again}; {which} not shown (--calls all shows every one).")

    def tell_end(self, line: str) -> None:
        """Write a remark that the program ended because its input had been ended; `line` is "" where none is known."""
        self._recorder.remark(
            f"The program ended{_at(line)}, since its input had been ended (--calls all reads it to its end)."
        )

    def _skip(self, name: str) -> None:
        """Count a call that is not computed; write down at once what follows from it: the run may be killed."""
        self._skipped[name] += 1
        if self._skipped[name] == 1:
            self._recorder.event("not computed", text=self.explain_values())

    def _end_input(self, name: str) -> None:
        self.has_ended_input = True
        self._recorder.remark(
            f"The input of {name} was ended early{_at(self._lines.here())}: it was called {self._most} times "
            "(--calls all reads it to its end)."
        )
        warnings.filterwarnings("ignore", message=r"\s*Your input ran out of data")  # Keras blames the dataset
        raise_as_theirs(tf.errors.OutOfRangeError(None, None, "End of sequence"))

    def _stop(self, why: str) -> None:
        self.has_stopped = True
        at = self._lines.here()
        self._recorder.remark(f"The program was stopped at {at or 'an unknown line'}: {why}.")
        if threading.current_thread() is threading.main_thread():
            raise Stopped(why)
        signal.pthread_kill(threading.main_thread().ident or 0, _STOP)
        raise SystemExit  # ends this thread silently

    def _stop_here(self, number: int, frame: Any) -> None:
        """Stop the program on its main thread; a signal from elsewhere keeps its default action."""
        if self.has_stopped:
            raise Stopped
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _at(line: str) -> str:
    """Return where something happened as part of a sentence, "" where no line is known.

    >>> _at("model.py:7"), _at("")
    (' at model.py:7', '')
    """
    return f" at {line}" if line else ""
