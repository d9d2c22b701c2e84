"""Write a suggestion into the user's files, and keep what they were beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from simplace.errors import SimplaceError
from simplace.suggestions.find_suggestions import Suggestions
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.trial import Trial


def apply_suggestion(found: Suggestions, trial: Trial) -> Iterator[tuple[str, str]]:
    """Change the files of a suggestion; yield each with the name of the copy that holds what it was.

    Raises `SimplaceError` for a file that has changed since it was read, or that cannot be written; it is then as it
    was.
    """
    files = found.changed_files(trial)
    for file in files:
        now = SourceFile.read(file.name)
        if now is None or now.text != file.text:
            raise SimplaceError(f"{file.name}: has changed since it was read, so nothing is written; run suggest again")
    for file in files:
        try:
            yield file.name, _replace(file, trial.texts[file.name])
        except OSError as error:
            raise SimplaceError(f"{file.name}: cannot change it: {error.strerror}") from None


def _replace(file: SourceFile, text: str) -> str:
    """Keep a file's bytes under a new name, then put the new text in its place in one step; return that name."""
    data = file.path.read_bytes()
    kept = _keep(file, data)
    handle, made = tempfile.mkstemp(dir=file.path.parent, prefix=f".{file.path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(text.encode(file.encoding))
        os.chmod(made, file.path.stat().st_mode)
        os.replace(made, file.path)
    except OSError:
        Path(made).unlink(missing_ok=True)
        raise
    return kept


def _keep(file: SourceFile, data: bytes) -> str:
    """Write the copy; a copy that is there already is never replaced."""
    number = 0
    while True:
        name = f"{file.name}.orig{number or ''}"
        try:
            with open(name, "xb") as copy:
                copy.write(data)
        except FileExistsError:
            number += 1
        else:
            return name
