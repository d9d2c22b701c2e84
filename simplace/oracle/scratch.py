"""Folders for the files of one run, which the next run removes where this one is killed, drawings' among them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from simplace.errors import ProgramError
from viz import scratch

_KIND, _OF_DRAWINGS = "simplace", "viz"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[str]:
    """Yield a new folder that only the user can read, in `parent` or where temporary files go; sweep there before."""
    with ExitStack() as held:
        try:
            base = parent or Path(tempfile.gettempdir())
            scratch.sweep_folders(base, _OF_DRAWINGS)
            folder = held.enter_context(scratch.scratch_folder(_KIND, base))
        except OSError as error:
            raise ProgramError(
                f"no temporary folder can be made ({error.strerror}); set TMPDIR to another one"
            ) from error
        yield folder
