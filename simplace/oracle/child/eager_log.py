"""The eager ops that a program ran: one record for what is alike (line, op, types, devices), how often, how many bytes.

The first op of a kind is run as the program asks, so that TensorFlow logs where it puts it; what came of that is told
at once, the counts at the end.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tensorflow as tf

from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.context_devices import ContextDevices
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.error_handlers import find_handlers
from simplace.oracle.child.failures import code_name, find_code, is_rejection
from simplace.oracle.child.recorder import LogFile, Recorder, list_placed
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import MADE_AT, find_host, resource_device
from simplace.oracle.placement_log import Executed, LogLine, PlacementLine

_ONEDNN = "_Mkl"
# What node_def_util.cc, attr_value_util.cc, attr_builder.cc and pywrap_tfe_src.cc say of an op that is wrong wherever
# it runs; it is looked at after its device was chosen.
_INVALID = re.compile(
    r"Value for attr|Length for attr|NodeDef |AttrValue |Attr |Type attr not found|Function \S+ is not defined"
    r"|Can't find a function|Expecting |Attribute "
)
_RESOURCE = tf.resource.as_datatype_enum
_NO_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"  # of a tensor in host memory, also in a cluster
_MAKER = "_simplace_made_by"
_counting = threading.RLock()  # of one thread, which may release a variable meanwhile, by an op again
_MIRRORS = "_simplace_copied_to"  # an attribute of tensors, which goes when they go
Attr = tuple[str, str, Any]  # name, kind, value
Inputs = tuple[tuple[int, str, bool], ...]  # type, device, whether it is a small integer


@dataclass(slots=True)
class EagerKind:
    """Record of eager ops that are alike.

    `device` is where TensorFlow runs them; `is_for_host` tells that nothing computes there, so that later ones are
    computed on the host without being tried. `copied` and `sizes` count, by input, the tensors that came to an op there
    for the first time, and their bytes: TensorFlow keeps a copy beside its tensor, and copies none twice to one device
    (LocalEagerCopyToDevice of eager/execute.cc). `made_by` counts, by input and the number of the kind that made the
    tensor, how often it was read. `changes` is how often the program had changed its devices before; `number` is -1 as
    long as nothing was told; `is_claimed` tells that a thread runs the first one, or has run it.
    """

    at: str
    library: str
    op: str
    scope: str
    soft_placement: bool
    attrs: tuple[Attr, ...]
    inputs: Inputs
    changes: int
    number: int = -1
    is_claimed: bool = False
    device: str = ""
    is_for_host: bool = False
    times: int = 0
    copied: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    made_by: Counter[tuple[int, int]] = field(default_factory=Counter)

    def count(self, inputs: Sequence[Any]) -> None:
        """Count an execution, and the tensors that come to its device for the first time."""
        with _counting:
            self._count(inputs)

    def _count(self, inputs: Sequence[Any]) -> None:
        self.times += 1
        for i, (dtype, _, _) in enumerate(self.inputs):
            maker = getattr(inputs[i], _MAKER, None)
            if maker is not None:
                self.made_by[i, maker] += 1
            if dtype != _RESOURCE and not _was_copied(inputs[i], self.device):
                self.copied[i] += 1
                self.sizes[i] += _bytes_of(inputs[i])

    def counts(self) -> list[Any]:
        """Return what was counted, as it is written down."""
        return [self.times, self.copied, self.sizes, [[*key, times] for key, times in self.made_by.items()]]

    def sign(self, results: Any) -> Any:
        """Return the results of an op, which remember what made them."""
        if self.number >= 0 and isinstance(results, list):
            for tensor in results:
                tensor.__dict__[_MAKER] = self.number
                if tensor._datatype_enum() == _RESOURCE:
                    tensor.__dict__[MADE_AT] = self.at
        return results


@dataclass(frozen=True, slots=True)
class Attempt:
    """Record of what TensorFlow logged for an op: its little graph, unless that is known, and the device it ran on."""

    placed: tuple[PlacementLine, ...]
    device: str


class EagerLog:
    """Record each kind of eager op once."""

    def __init__(self, recorder: Recorder, log: LogFile, lines: SourceLines, devices: ContextDevices) -> None:
        self._devices = devices
        self._recorder = recorder
        self._log = log
        self._lines = lines
        self._kinds: dict[tuple[Any, ...], EagerKind] = {}
        self._told: list[EagerKind] = []
        self._handles: dict[int, str] = {}  # the device of a resource, by the handle
        self._turn = threading.RLock()

    def describe(self, inputs: Sequence[Any]) -> Inputs:
        """Return what the device of an op depends on in its inputs."""
        return tuple([self._describe(tensor) for tensor in inputs])

    def describe_constant(self, tensor: Any) -> Inputs:
        """Return the same of a constant, which begins as a tensor on the CPU."""
        dtype = tensor._datatype_enum()
        return ((dtype, find_host(), eager_device.is_small(tensor, dtype)),)

    def describe_op(self, scope: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return all but its name and attributes that the kind of an op about to run depends on."""
        return (*self._lines.trace_op(), scope, eager_device.soft_placement(), self.describe(inputs))

    def kind_of(self, op: str, scope: str, inputs: Inputs, attrs: Sequence[Any]) -> EagerKind:
        """Return the kind that an op about to run is of."""
        (at, library), soft = self._lines.trace_op(), eager_device.soft_placement()
        chosen = choose_attrs(op, (*attrs, *_list_inferred(op, inputs)))
        key = (at, library, op, scope, soft, chosen, inputs, self._devices.tell())
        kind = self._kinds.get(key)
        if kind is None:
            with self._turn:
                kind = self._kinds.setdefault(key, EagerKind(*key))
                kind.copied, kind.sizes = kind.copied or [0] * len(inputs), kind.sizes or [0] * len(inputs)
        return kind

    def claims(self, kind: EagerKind) -> bool:
        """Return whether an op about to run is the first of its kind; it is to be told, and no other one."""
        with self._turn:
            is_first, kind.is_claimed = not kind.is_claimed, True
            return is_first

    def position(self) -> int:
        """Return where TensorFlow's log ends now."""
        return self._log.end()

    def attempt(self, op: str, start: int) -> Attempt:
        """Return what TensorFlow has logged of an op since `start`."""
        return _until_executed(op, self._log.since(start))

    def is_refused(self, attempt: Attempt, error: Any) -> bool:
        """Return whether an error says that TensorFlow finds no device, and not that the op itself is wrong.

        That of an op which another task's emulated GPU does not compute leaves no device here.
        """
        is_found = attempt.device or computes_nothing(error)
        return not (is_found or is_rejection(error) or _INVALID.match(str(error.message)))

    def tell(self, kind: EagerKind, attempt: Attempt, refusal: Any = None) -> None:
        """Write down a kind of ops with what TensorFlow did with the first one; `refusal` is the error if it did not.

        An op that it sends to another task leaves no trace here, and is not told.
        """
        if not (attempt.placed or attempt.device or refusal):
            return
        kind.device = attempt.device
        with self._turn:
            kind.number = len(self._told)
            self._told.append(kind)
            self._recorder.event(
                "eager",
                op=kind.op,
                at=kind.at,
                library=kind.library,
                scope=kind.scope,
                soft_placement=kind.soft_placement,
                attrs=kind.attrs,
                inputs=kind.inputs,
                log=list_placed(attempt.placed),
                device=attempt.device,
                refused=refusal and self._recorder.refusal(code_name(find_code(refusal)), refusal.message),
                handlers=find_handlers(self._lines) if refusal else {},
            )

    def report(self) -> None:
        """Write down how often each kind ran, and how many tensors and bytes were copied for it."""
        if self._told:
            self._recorder.event("eager counts", counts=[kind.counts() for kind in self._told])

    def _describe(self, tensor: Any) -> tuple[int, str, bool]:
        dtype = tensor._datatype_enum()  # a number compares quicker than a dtype
        if dtype == _RESOURCE:
            where = self._handles.get(tensor._id)
            if where is None:
                where = self._handles[tensor._id] = resource_device(tensor)
            return dtype, where, False
        where = tensor.backing_device
        return dtype, find_host() if where == _NO_DEVICE else where, eager_device.is_small(tensor, dtype)


def choose_attrs(op: str, attrs: Sequence[Any]) -> tuple[Attr, ...]:
    """Return those attributes of an op that decide where it goes."""
    given = dict(zip(attrs[::2], attrs[1::2], strict=True))
    return tuple((name, kind, _plain(given[name])) for name, kind in kernel_types.placing_attrs(op) if name in given)


def _list_inferred(op: str, inputs: Inputs) -> Iterator[Any]:
    """Yield the name and the value of each type attribute that TensorFlow takes from an input."""
    for name, i in kernel_types.inferred_attrs(op):
        if i < len(inputs):
            yield from (name, inputs[i][0])


def _until_executed(op: str, lines: Iterable[LogLine]) -> Attempt:
    """Return the lines about an op, up to the one that says where it runs.

    oneDNN may have a form of its own of an op on a CPU, which is placed where the op was, after it
    (eager/mkl_eager_op_rewrite.cc): the lines are then those of the op.
    """
    placed: dict[str, PlacementLine] = {}
    names = (op, _ONEDNN + op, f"{_ONEDNN}Native{op}")
    for line in lines:
        if isinstance(line, Executed):
            if line.op in names:
                return Attempt(tuple(placed.values()), line.device)
            placed.clear()  # another op came first, such as the Cast of a constant
        elif isinstance(line, PlacementLine) and not line.verbose and not line.node.op.startswith(_ONEDNN):
            placed.setdefault(line.node.name, line)
    return Attempt(tuple(placed.values()), "")


def _plain(value: Any) -> Any:
    """Return the value of an attribute so that it can be a key and be written as JSON."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if hasattr(value, "as_list"):
        return None if value.rank is None else tuple(value.as_list())
    return getattr(value, "as_datatype_enum", value)


def _was_copied(tensor: Any, device: str) -> bool:
    """Return whether a tensor came to a device before; from now on it did."""
    known = vars(tensor).setdefault(_MIRRORS, set())
    if device in known:
        return True
    known.add(device)
    return False


def _bytes_of(tensor: Any) -> int:
    return int(tensor._num_elements()) * _size_of(tensor._datatype_enum())


@cache
def _size_of(dtype: int) -> int:
    return int(tf.as_dtype(dtype).size)
