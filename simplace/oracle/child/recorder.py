"""The child's answer: events appended to a file as they happen, and TensorFlow's log read back."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simplace.oracle import protocol
from simplace.oracle.placement_log import LogLine, PlacementLine, read_line

_ADDED_BY_GRPC = re.compile(r"\nAdditional GRPC error information.*", re.DOTALL)
_ADDED_BY_PYTHON = re.compile(r" \[Op:[^\]]*\]$")


@contextmanager
def leaving_without_room() -> Iterator[None]:
    """Exit at once where the answer cannot be written: an exception would look like the program's own."""
    try:
        yield
    except OSError:
        os._exit(protocol.NO_ROOM)


class Recorder:
    """The answer's file, to which events are appended; every line is complete once written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._programs = 0
        self._turn = threading.Lock()
        self._remarked: set[str] = set()
        self._noted: set[str] = set()
        self._refusals: list[str] = []
        self._file = os.open(directory / protocol.EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._process = os.getpid()

    def event(self, kind: str, **fields: Any) -> None:
        """Append one event; processes that the program forks append none."""
        if os.getpid() == self._process:
            with leaving_without_room():
                os.write(self._file, (json.dumps({"kind": kind, **fields}) + "\n").encode())

    def remark(self, sentence: str) -> None:
        """Append a remark, only once however often it is made."""
        if sentence not in self._remarked:
            self._remarked.add(sentence)
            self.event("remark", text=sentence)

    def refusal(self, code: str, message: str) -> dict[str, str]:
        """Return the record of a refused placement, and remember its message."""
        status = _ADDED_BY_GRPC.sub("", _ADDED_BY_PYTHON.sub("", message))
        self._refusals.append(status)
        return {"code": code, "message": status}

    def is_refusal(self, error: BaseException) -> bool:
        """Return whether an exception is TensorFlow's refusal of a recorded program."""
        return isinstance(error, Exception) and any(status in text_of(error) for status in self._refusals)

    def uncaught(self, error: BaseException) -> None:
        """Append the text of an error that the program did not catch, and of those that it was handling meanwhile."""
        texts: dict[int, str] = {}
        handled: BaseException | None = error
        while handled is not None and id(handled) not in texts:
            texts[id(handled)] = text_of(handled)
            handled = handled.__context__
        self.event("uncaught", text="\n".join(texts.values()))

    def program(self, graph: bytes, **fields: Any) -> int:
        """Append a program and write its serialized GraphDef beside the events; return its number."""
        with self._turn:  # the events of programs stand in the order of their numbers, whichever thread runs them
            number = self._programs
            self._programs += 1
            name = f"graph_{number}.pb"
            with leaving_without_room():
                (self.directory / name).write_bytes(graph)
            self.event("program", graph=name, **fields)
            return number

    def wants_notes(self, function: str) -> bool:
        """Return whether notes of `function` are still to be written."""
        return function not in self._noted

    def notes(self, function: str, nodes: dict[str, Any], layers: dict[str, str]) -> None:
        """Append the notes of a library function's nodes; `layers` maps name scopes to the layers that they are of."""
        self._noted.add(function)
        self.event("notes", function=function, nodes=nodes, layers=layers)


def list_placed(lines: Iterable[PlacementLine]) -> list[list[str]]:
    """Return what TensorFlow logged of nodes as an event has it: name, op, device."""
    return [[line.node.name, line.node.op, line.node.device] for line in lines]


def text_of(value: Any) -> str:
    """Return `str(value)`, "" where that raises."""
    try:
        return str(value)
    except Exception:  # whatever a program's own __str__ raises, Python too goes on without the text
        return ""


def logged_threads() -> frozenset[int | None]:
    """Return the ids that TensorFlow may log for this thread: since 2.19 or so, a forked process has its parent's.

    None is that of a log which names no threads.
    """
    thread = threading.get_native_id()
    in_parent = int(os.environ.get(protocol.FORKED_FROM, thread)) if thread == os.getpid() else thread
    return frozenset({thread, in_parent, None})


class LogFile:
    """What TensorFlow has printed to file descriptor 2, which is redirected to this file."""

    def __init__(self, path: Path) -> None:
        self._reader = os.open(path, os.O_RDONLY)

    def end(self) -> int:
        """Return the position after the last byte written so far."""
        return os.fstat(self._reader).st_size

    def since(self, start: int, *, every_thread: bool = False) -> Iterator[LogLine]:
        """Yield the log lines of the calling thread, or of all, after position `start`."""
        mine = logged_threads()
        for line in self.lines_since(start):
            found = read_line(line)
            if found is not None and (every_thread or found.thread in mine):
                yield found

    def lines_since(self, start: int) -> list[str]:
        """Return the lines of all threads after position `start`."""
        return os.pread(self._reader, self.end() - start, start).decode(errors="replace").splitlines()
