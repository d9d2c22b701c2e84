"""TensorFlow's placement log, in every dialect it had since 2015, as `LoggedNode` records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from simplace.errors import SimplaceError, UnreadableError
from simplace.input_file import LARGEST_LOG, read_bytes
from simplace.program.observation import LoggedNode

# "I0000 00:00:1795191363.877728    5112 placer.cc:162] " since 2.19 or so; a time and a thread id, no source path
_NEW_PREFIX = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d+(?:\.\d+)? +(?P<thread>\d+) (?P<file>[\w./-]+):\d+\] ?")
# "2024-11-20 16:05:01.123456: I   5112 tensorflow/core/common_runtime/placer.cc:125] " with a date; with a thread where
# TF_CPP_LOG_THREAD_ID asks for it
_DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: "
_OLD_PREFIX = re.compile(rf"^(?:{_DATE})?[IWEF](?: +(?P<thread>\d+))? (?P<file>[\w./-]+):\d+\] ?")

_SLOT = r"(?:/(?:job:[A-Za-z]\w*|replica:\d+|task:\d+))+/(?:device:\w+|[cC][pP][uU]|[gG][pP][uU]):\d+"
_NAME = r"(?P<name>[^\s:(]\S*?)"
_WITH_OP = re.compile(rf"^{_NAME}: \((?P<op>[\w>.-]+)\):? ?(?P<device>{_SLOT})\s*$")
_WITHOUT_OP = re.compile(rf"^{_NAME}: (?P<device>{_SLOT})\s*$")
_PLACED_ON = re.compile(rf"^{_NAME}\((?P<op>[\w>.-]+)\) placed on: (?P<device>{_SLOT})\s*$")
_EXECUTING = re.compile(rf"^Executing op (?P<name>\S+) in device (?P<device>{_SLOT})\s*$")
_INSTANTIATING = re.compile(
    r'^Instantiating MultiDevice function "(?P<name>[^"]*)" on default device "(?P<device>[^"]*)"$'
)
_INSTANTIATED = re.compile(r'^Finished graph optimizations for MultiDevice function "(?P<name>[^"]*)"')
_OLD_DEVICE = re.compile(r"/([cC][pP][uU]|[gG][pP][uU]):(\d+)$")


@dataclass(frozen=True, slots=True)
class PlacementLine:
    """Record of a placement line; `op` of the node is "" in logs of 2015, `thread` is None where the log names none.

    `verbose` marks the "placed on:" form of VLOG, which repeats a line of the plain form.
    """

    node: LoggedNode
    thread: int | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Executed:
    """Record of an "Executing op" line: a call that starts, after its placement."""

    op: str
    device: str
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Instantiating:
    """Record of a line that says which function is placed next on its thread, and for which device.

    It comes of VLOG(1) in process_function_library_runtime.cc.
    """

    function: str
    device: str
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Instantiated:
    """Record of a line that says that the function of its thread has been placed and optimised (VLOG(1) as well)."""

    function: str
    thread: int | None = None


LogLine = PlacementLine | Executed | Instantiating | Instantiated


def read_log(path: str) -> tuple[LoggedNode, ...]:
    """Return the placement lines of a log file; raise `SimplaceError` for one that has none."""
    try:
        text = read_bytes(path, LARGEST_LOG).decode(errors="replace")
    except UnreadableError as error:
        raise SimplaceError(f"{path}: cannot read the log: {error}") from None
    entries = parse_log(text)
    if not entries:
        raise SimplaceError(
            f"{path}: no placement line in this log; one looks like `mul: (Mul): /job:localhost/replica:0/task:0/"
            "device:GPU:0`, and tf.debugging.set_log_device_placement(True) at the start of the program prints them"
        )
    return entries


def parse_log(text: str) -> tuple[LoggedNode, ...]:
    """Return all placement lines of a saved log, in order, once each where a node was also printed by VLOG.

    TensorFlow prints to both stdout and stderr; of a log with both, the lines with a prefix are taken.

    >>> parse_log("a: (Const): /job:localhost/replica:0/task:0/device:CPU:0")
    (LoggedNode(name='a', op='Const', device='/job:localhost/replica:0/task:0/device:CPU:0'),)
    >>> parse_log("b: (MatMul)/job:localhost/replica:0/task:0/gpu:1")
    (LoggedNode(name='b', op='MatMul', device='/job:localhost/replica:0/task:0/device:GPU:1'),)
    """
    placed = [(line, bare == whole) for whole, bare, line in _placed_lines(text)]
    plain = [entry for entry in placed if not entry[0].verbose] or placed
    prefixed = [entry for entry in plain if not entry[1]]
    return tuple(line.node for line, _ in prefixed or plain)


def read_line(line: str) -> LogLine | None:
    """Return one parsed line of any dialect, None for another line.

    >>> read_line("Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0").op
    'MatMul'
    >>> read_line("I0000 00:00:1795191363.8  42 placer.cc:162] x: (_Arg): /job:a/replica:0/task:0/device:CPU:0").thread
    42
    >>> read_line("loss: 0.25 - accuracy: 0.9") is None
    True
    """
    if "/job:" not in line:
        return None
    thread, body = _strip_prefix(line)
    if found := _EXECUTING.match(body):
        return Executed(found["name"], canonicalize_device(found["device"]), thread)
    if found := _INSTANTIATING.match(body):
        return Instantiating(found["name"], found["device"], thread)
    if found := _INSTANTIATED.match(body):
        return Instantiated(found["name"], thread)
    if found := _PLACED_ON.match(body):
        return PlacementLine(
            LoggedNode(found["name"], found["op"], canonicalize_device(found["device"])), thread, verbose=True
        )
    if found := _WITH_OP.match(body):
        return PlacementLine(LoggedNode(found["name"], found["op"], canonicalize_device(found["device"])), thread)
    if found := _WITHOUT_OP.match(body):
        return PlacementLine(LoggedNode(found["name"], "", canonicalize_device(found["device"])), thread)
    return None


def read_thread(line: str) -> int | None:
    """Return the thread that a line of the log names, None where it names none.

    >>> read_thread("2024-11-20 16:05:01.123456: I    5112 tensorflow/core/graph/graph_partition.cc:125] Added send")
    5112
    """
    return _strip_prefix(line)[0]


def canonicalize_device(device: str) -> str:
    """Return a device name as TensorFlow writes it today.

    >>> canonicalize_device("/job:localhost/replica:0/task:0/gpu:0")
    '/job:localhost/replica:0/task:0/device:GPU:0'
    """
    return _OLD_DEVICE.sub(lambda found: f"/device:{found[1].upper()}:{found[2]}", device)


def _strip_prefix(line: str) -> tuple[int | None, str]:
    found = _NEW_PREFIX.match(line) or _OLD_PREFIX.match(line)
    if not found:
        return None, line
    thread = found["thread"]
    return None if thread is None else int(thread), line[found.end() :]


def _placed_lines(text: str) -> Iterator[tuple[str, str, PlacementLine]]:
    for whole in text.splitlines():
        line = read_line(whole)
        if isinstance(line, PlacementLine):
            yield whole, _strip_prefix(whole)[1], line
