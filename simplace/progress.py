"""Show the progress on stderr where it is a terminal; write nothing to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Stage(Protocol):
    """Callback that receives the stage that begins."""

    def __call__(self, text: str, *, is_alone: bool = False) -> None:
        """Show the text; `is_alone` is for a stage that has the terminal, and the processor, to itself."""
        ...


def show_nothing(text: str, *, is_alone: bool = False) -> None:
    """Show nothing."""


def count_stage(text: str, number: int, total: int) -> str:
    """Return the text of a stage with the number of its object, from 1, where there are several.

    >>> count_stage("placing step", 3, 12), count_stage("placing step", 1, 1)
    ('placing step (3 of 12)', 'placing step')
    """
    return f"{text} ({number} of {total})" if total > 1 else text


@contextmanager
def show_progress() -> Iterator[Stage]:
    """Yield a function that shows which stage is running and for how long, until the next one or the end.

    While a user's program runs, the terminal is its own: that stage is one plain line.
    """
    if not sys.stderr.isatty():
        yield show_nothing
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from viz.names import visible

    console = Console(stderr=True)
    said = TextColumn("{task.description}", markup=False)
    bar = Progress(SpinnerColumn(), said, TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task("", start=True)

    def stage(text: str, *, is_alone: bool = False) -> None:
        text = visible(text)
        bar.reset(task, description=text)
        if is_alone:
            bar.stop()
            console.print(text, style="dim", highlight=False, markup=False)
        elif not bar.live.is_started:
            bar.start()

    try:
        yield stage
    finally:
        bar.stop()
