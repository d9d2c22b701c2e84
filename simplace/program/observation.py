"""What TensorFlow did with a program: its graphs, its placement log, its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from simplace.errors import ProgramError
from simplace.graph.node_def import GraphDef
from simplace.program.allocation_log import AllocationLog
from simplace.program.eager_op import EagerOp
from simplace.program.program import Program, SessionRun

Ending = Literal["", "raised", "exited", "crashed", "timed out", "refused", "internal", "stopped"]
WhyUnreached = Literal["not called", "call failed", "only traced", "eager"]
_INTERNAL = "simplace itself failed, not the program"
_REPORT = "please report this, with the lines above"


@dataclass(frozen=True, slots=True)
class LoggedNode:
    """Copy one line of TensorFlow's placement log; `device` is a full device name."""

    name: str
    op: str
    device: str


@dataclass(frozen=True, slots=True)
class LoggedGraph:
    """Record of the lines that TensorFlow logged of one function, or of all sessions ("") in the order of the log.

    `device` is that of the call, `times` how often the function was placed so.
    """

    function: str
    device: str
    nodes: tuple[LoggedNode, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class WholeLog:
    """Record of all that a run logged: the graphs that were placed, and how often each op was executed by name."""

    graphs: tuple[LoggedGraph, ...] = ()
    executed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedRefusal:
    """Copy the error of a placement that TensorFlow refused: `code` is the status name, e.g. INVALID_ARGUMENT."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ObservedDevice:
    """Describe a device of the run: full name, type, and what TensorFlow says of the hardware behind it.

    `limit` is the bytes that a logical GPU was given, 0 for a device with all of its hardware's memory. `members` are
    the devices that a composite device stands for. `gpu` is the number of the physical GPU behind a logical one, -1
    where it is that in the name.
    """

    name: str
    type: str
    description: str = ""
    limit: int = 0
    members: tuple[str, ...] = ()
    gpu: int = -1


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Record of the subgraphs that TensorFlow partitioned a placed graph into, one per device, as it wrote them.

    A session prunes its graph to a run first, unless it placed no more than the run needs; `run` is None for what was
    partitioned as it was placed, such as a function.
    """

    subgraphs: tuple[GraphDef, ...]
    run: SessionRun | None = None


@dataclass(frozen=True, slots=True)
class ObservedProgram:
    """Pair a program with TensorFlow's own placement of it: log lines in the order they were printed.

    `devices` are those of this program alone, () where they are those of the observation: a session has its own, and a
    program may change those of its functions.
    `cuts` are in the order they were made, () where they were not asked for. `is_asked` is False where
    TensorFlow was not asked to place it. `is_rewritten` tells that later passes may have added and removed nodes, so
    that `log` has those that are left.
    """

    program: Program
    log: tuple[LoggedNode, ...]
    refused: ObservedRefusal | None = None
    devices: tuple[ObservedDevice, ...] = ()
    partitionings: tuple[Partitioning, ...] = ()
    is_asked: bool = True
    is_rewritten: bool = False


@dataclass(frozen=True, slots=True)
class MadeBy:
    """Count how often an eager op read, as the input of that number, what another one of the observation made."""

    input: int
    maker: int
    times: int


@dataclass(frozen=True, slots=True)
class ObservedEagerOp:
    """Pair an eager op with what TensorFlow did when it first ran, and with how often it ran.

    `log` holds TensorFlow's lines about the graph of this one op, () where it knew the kernel already; `device` is
    where it ran, "" where it was refused. `copied` counts by input the tensors that came to an op there for the first
    time, `sizes` their bytes, and `made_by` tells what made them; all are () for a program that was cut off. `devices`
    are those that TensorFlow had then, () where they are those of the observation.
    """

    op: EagerOp
    log: tuple[LoggedNode, ...] = ()
    device: str = ""
    refused: ObservedRefusal | None = None
    times: int = 1
    copied: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    made_by: tuple[MadeBy, ...] = ()
    devices: tuple[ObservedDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonFact:
    """Record of what only the running Python program shows; `at` is the user's line, `values` say what by name.

    The kinds are "log flag", "log level", "scope without device", "scope lost", "dataset scope" and "layer scope"
    (`simplace.oracle.child.python_facts` says when each is noted), "setting refused" and "memory growth" (from
    `refused_settings` there, or the first session's options), "memory fraction" (from these alone), and "raised", for
    the exception that ended the program. A "layer made" is a layer of Keras with the extent of the call that makes it
    (`layer_makers`).
    """

    kind: str
    at: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unreached:
    """Record of a function or session of the program's own files that TensorFlow was not seen to place.

    `source` is the "file:line" of its definition. It was not called; or its call failed first; or it was traced, for
    a dataset or a file for example; or it was to run eagerly, op by op.
    """

    name: str
    source: str
    why: WhyUnreached


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """Record of how a program terminated early; `text` is for its author, a traceback of their own lines at best.

    `line` is what of it goes into one line, "" where that is the first of `text`. "internal" is what simplace itself
    did wrong, `text` the whole traceback. `status` is the exit status that the program has under plain Python, as a
    shell tells it, 0 where nobody knows and for a file that is no program.
    """

    how: Literal["raised", "exited", "crashed", "timed out", "refused", "internal"]
    text: str
    line: str = ""
    status: int = 0

    def make_error(self, target: str) -> ProgramError:
        """Return what a command raises for it, whose exit status is the program's."""
        status = self.status % 256 or ProgramError.status  # a system keeps one byte
        first, _, rest = self.text.partition("\n")
        if self.how == "timed out":
            first += "; --timeout gives it more"
        if self.how == "internal":
            return ProgramError(f"{target}: {_INTERNAL}: {self.line}; {_REPORT}", details=self.text)
        if self.how != "raised":
            return ProgramError(f"{target}: {first}", rest, status)
        return ProgramError(f"{target}: the program stopped with {self.line}", self.text, status)


@dataclass(frozen=True, slots=True)
class Observation:
    """Record of all that one run under TensorFlow showed.

    `programs` are in the order of their first call. `remarks` are plain sentences about the run (what was not
    called, what was stopped, what ran with placeholder values). `registry` is the path of the captured kernel table.
    `failure` is None for a program that ran to its end or was stopped because nothing new was to come. `eager_ops`
    counts the ops that ran outside of functions, `eager` has each kind of them once, in the order in which the first
    ran. `python` is in the order of its events. `logged` is the whole log. `unreached` is in the order of the
    definitions, `is_stopped` tells that simplace stopped the program. `allocations` is None where nobody asked.
    `placed_again` are the functions, with what was logged, that TensorFlow placed anew because simplace had it compute
    them with other options than those of the placement that was recorded.
    """

    tensorflow: str
    devices: tuple[ObservedDevice, ...]
    programs: tuple[ObservedProgram, ...]
    remarks: tuple[str, ...]
    registry: str
    failure: EarlyEnd | None = None
    eager_ops: int = 0
    python: tuple[PythonFact, ...] = ()
    eager: tuple[ObservedEagerOp, ...] = ()
    logged: WholeLog = field(default_factory=WholeLog)
    unreached: tuple[Unreached, ...] = ()
    is_stopped: bool = False
    allocations: AllocationLog | None = None
    placed_again: tuple[tuple[str, tuple[LoggedNode, ...]], ...] = ()

    @property
    def ending(self) -> Ending:
        """Return how the program ended before its end, "" where it did not."""
        return self.failure.how if self.failure is not None else "stopped" if self.is_stopped else ""
