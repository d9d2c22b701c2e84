"""Tell a person at a terminal what is going on, on stderr; say nothing to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Stage = Callable[[str], None]


def silent(stage: str) -> None:
    """Ignore a stage's name."""


@contextmanager
def progress() -> Iterator[Stage]:
    """Give a function that shows which stage is running and for how long, until the next one or the end.

    While a user's program runs ("running ..."), the terminal is its own: that stage is one plain line.
    """
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    )
    task = bar.add_task("", start=True)

    def stage(text: str) -> None:
        bar.reset(task, description=text)
        if text.startswith("running"):
            bar.stop()
            console.print(text, style="dim", highlight=False, markup=False)
        elif not bar.live.is_started:
            bar.start()

    try:
        yield stage
    finally:
        bar.stop()
