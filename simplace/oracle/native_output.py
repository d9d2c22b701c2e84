"""Forward what the program's C code prints, without TensorFlow's own log.

The child's C streams `stdout` and `stderr` go to files, since TensorFlow writes its log there. The lines in between
that are not TensorFlow's belong to the user's terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from simplace.oracle.placement_log import read_line

# absl's log prefix, then that of TensorFlow up to 2.18.
_LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] |WARNING: All log messages")
# What TensorFlow tells of functions, since it was asked to: each is one line.
_WHOLE = re.compile(
    r"[IWEF].* process_function_library_runtime\.cc:\d+\] |.*: I \S*process_function_library_runtime\.cc:"
)


class NativeOutput:
    """The two files as they grow, whose lines that are the program's are forwarded."""

    def __init__(self, files: Iterable[tuple[Path, TextIO]]) -> None:
        self._followed = [(path, stream, _Filter(), [0]) for path, stream in files]

    def pass_on(self) -> None:
        """Forward the whole lines that were added since the last call."""
        for path, stream, lines, position in self._followed:
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(position[0])
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            position[0] += len(whole)
            for line in lines.own(whole.decode("utf-8", "replace").splitlines()):
                print(line, file=stream, flush=True)


class _Filter:
    """A filter that remembers, over several reads, whether the last log line may continue on the next."""

    def __init__(self) -> None:
        self._inside_message = False

    def own(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines that are not TensorFlow's.

        A line without a prefix belongs to the message before it, unless that is a placement or an execution line:
        those are whole, and what follows them is the program's.
        """
        for line in lines:
            if read_line(line) is not None or _WHOLE.match(line):
                self._inside_message = False
            elif _LOG_LINE.match(line):
                self._inside_message = True
            elif not self._inside_message:
                yield line


def program_lines(text: str) -> list[str]:
    """Return the lines of a log that are not TensorFlow's.

    >>> program_lines("I0000 00:00:1.2 3 x.cc:1] two\\nlines\\nf: (Op): /job:a/replica:0/task:0/device:CPU:0\\nmine")
    ['mine']
    """
    return list(_Filter().own(text.splitlines()))
