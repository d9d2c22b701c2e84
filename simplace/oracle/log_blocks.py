"""Cut a whole log into the graphs that TensorFlow placed, and count what it executed.

TensorFlow logs a function in one go on one thread, between a line that names it and one that ends its optimisation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from simplace.oracle.placement_log import Executed, Instantiated, Instantiating, PlacementLine, read_line
from simplace.program.observation import LoggedGraph, LoggedNode, WholeLog

_Open = dict[int | None, tuple[Instantiating, list[LoggedNode]]]  # by thread


def cut_log(lines: Iterable[str]) -> WholeLog:
    """Return the graphs of a log, each different one once, in the order of their first lines, and what was executed.

    >>> at = "/job:localhost/replica:0/task:0/device:CPU:0"
    >>> log = cut_log([f'Instantiating MultiDevice function "f" on default device "{at}"', f"a: (Const): {at}"])
    >>> [(graph.function, graph.nodes[0].name, graph.times) for graph in log.graphs]
    [('f', 'a', 1)]
    """
    graphs: Counter[tuple[str, str, tuple[LoggedNode, ...]]] = Counter()
    executed: Counter[str] = Counter()
    sessions: list[LoggedNode] = []
    functions: _Open = {}

    def close(thread: int | None) -> None:
        begun, nodes = functions.pop(thread, (None, []))
        if begun is not None and nodes:
            graphs[begun.function, begun.device, tuple(nodes)] += 1

    for text in lines:
        line = read_line(text)
        if isinstance(line, PlacementLine) and not line.verbose:
            functions.get(line.thread, (None, sessions))[1].append(line.node)
        elif isinstance(line, Executed):
            executed[line.op] += 1
            close(line.thread)
        elif isinstance(line, Instantiated):
            close(line.thread)
        elif isinstance(line, Instantiating):
            close(line.thread)
            functions[line.thread] = (line, [])
    for thread in list(functions):
        close(thread)
    of_sessions = [LoggedGraph("", "", tuple(sessions))] if sessions else []
    return WholeLog((*(LoggedGraph(*key, times) for key, times in graphs.items()), *of_sessions), executed)
