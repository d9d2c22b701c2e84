"""Ask TensorFlow's C library, in a child process, whether it imports a graph."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simplace.errors import ImportRefusedError
from simplace.graph.node_def import GraphDef
from simplace.graph.protos import message_class
from simplace.kernels.installed import installed_libraries

MOST_NODES = 4000  # with those of functions: up to here an answer comes within half a second
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from simplace.oracle.child.c_library import main; "
_CHILD += "main(*map(int, sys.argv[2:5]), sys.argv[5:])"
_SEARCHED = str(Path(__file__).resolve().parents[2])  # the folder that the child imports simplace from
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
_REACHES_OUT = b"debug_urls"  # an attribute of ops that write to a file or a server, constants in an import, too
_PATIENCE = 8  # seconds; where there is no memory, TensorFlow waits ten for some, and then goes on without a shape
_ACCEPTED, _REFUSED = b"+", b"-"  # how an answer begins
_UNREGISTERED = _REFUSED + b"Op type not registered"


class ImportQuestion:
    """A question to which there will be no answer."""

    def refuse(self) -> bool:
        """Wait for the answer; raise `ImportRefusedError` for a graph that TensorFlow does not import.

        Return whether TensorFlow imports it, False where it gave no answer.
        """
        return False


NOT_ASKED = ImportQuestion()


@contextmanager
def ask_import(graph: GraphDef) -> Iterator[ImportQuestion]:
    """Begin to ask about a graph, whose ops must be ops of that TensorFlow; at the end of the block the child ends.

    Not asked about are graphs of more than `MOST_NODES` nodes, those of which the message was not kept, and those that
    would reach out of the process; nor is any where the library is not found, as on macOS.
    """
    nodes = len(graph.nodes) + sum(len(function.nodes) for function in graph.library.values())
    message = graph.serialized
    if nodes > MOST_NODES or not message or _REACHES_OUT in message or sys.platform != "linux":
        yield NOT_ASKED
        return
    libraries = installed_libraries()
    if not libraries:
        yield NOT_ASKED
        return
    question = _AskedOfChild(_drop_unset_attrs(graph), libraries)
    try:
        yield question
    finally:
        question.close()


def _drop_unset_attrs(graph: GraphDef) -> bytes:
    """Return the message without attributes that have no value: Python gives them their default before it asks C++.

    One without a default is refused before anything is asked. Mirrors `_SetDefaultAttrValues` of importer.py, which
    leaves alone calls of functions, and what is in functions.
    """
    unset = [i for i, node in enumerate(graph.nodes) if None in node.attrs.values() and node.op not in graph.library]
    if not unset:
        return graph.serialized
    message = message_class("GraphDef").FromString(graph.serialized)
    for i in unset:
        for name in [name for name, value in graph.nodes[i].attrs.items() if value is None]:
            del message.node[i].attr[name]
    kept: bytes = message.SerializeToString()
    return kept


class _AskedOfChild(ImportQuestion):
    """A process that reads the graph from a file in memory and writes its answer into a pipe."""

    def __init__(self, graph: bytes, libraries: list[str]) -> None:
        file = os.memfd_create("graph")
        with open(file, "wb", closefd=False) as opened:
            opened.write(graph)
        self._answer, answer = os.pipe()
        for number in (file, answer):
            os.set_inheritable(number, True)
        numbers = map(str, (os.getpid(), file, answer))
        command = [sys.executable, "-I", "-S", "-c", _CHILD, _SEARCHED, *numbers, *libraries]
        silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        self._child = os.posix_spawn(command[0], command, {**os.environ, **_QUIET}, file_actions=silent, setpgroup=0)
        os.close(file)
        os.close(answer)

    def refuse(self) -> bool:
        said = b"".join(iter(self._read_piece, b""))
        if said.startswith(_UNREGISTERED):
            return False  # an op that TensorFlow's Python brings along: the C library alone cannot judge the graph
        if said.startswith(_REFUSED):
            reason = " ".join(said[1:].decode(errors="replace").split())
            raise ImportRefusedError(f"TensorFlow would not import this graph: {reason}")
        return said == _ACCEPTED

    def _read_piece(self) -> bytes:
        is_there = select.select([self._answer], [], [], _PATIENCE)[0]
        return os.read(self._answer, 1 << 16) if is_there else b""

    def close(self) -> None:
        """End the child, whether or not it has answered."""
        os.close(self._answer)
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
