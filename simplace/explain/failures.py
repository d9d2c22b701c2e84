"""Findings about what TensorFlow places, and what then fails when it runs: with TensorFlow's own words.

`find_failures` lists those of one placement. What the running Python program showed becomes such findings in
`simplace.doctor.failures`, which has all of a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from simplace.errors import NoStepError
from simplace.explain.copy_tensor import UncopiedVariant, find_uncopied_variants, read_copy_error
from simplace.explain.copy_tensor import describe_error as describe_copy_error
from simplace.explain.finding import Failure, name_page, state_caught
from simplace.graph.op_kinds import is_arg
from simplace.placement.collective_groups import find_incomplete_groups
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import describe_lack, find_clusters
from simplace.placement.xla_launch_util import ForeignResource, describe_error, find_foreign_resources
from simplace.program.program import Program


@dataclass(frozen=True, slots=True)
class XlaOtherDevice(Failure):
    """A call that XLA compiles is given variables or tables of another device; `nodes` are their names.

    `call` is the call's node, which is on `home`; `device` is where they are, and `made_at` the line that made the
    first of them.
    """

    rule: ClassVar[str] = "xla-other-device"
    title: ClassVar[str] = "XLA reads another device"
    codes: ClassVar[tuple[str, ...]] = ("INVALID_ARGUMENT",)
    is_foretold: ClassVar[bool] = True
    call: str
    home: str
    device: str
    made_at: str
    are_variables: bool


@dataclass(frozen=True, slots=True)
class NotCompilable(Failure):
    """XLA has no kernel for ops of a call that it is to compile: TensorFlow refuses to run the call."""

    rule: ClassVar[str] = "not-compilable"
    title: ClassVar[str] = "XLA cannot compile"
    codes: ClassVar[tuple[str, ...]] = ("INVALID_ARGUMENT",)
    is_foretold: ClassVar[bool] = True
    op: str
    call: str


@dataclass(frozen=True, slots=True)
class NotCopied(Failure):
    """A tensor is to go to the memory of `device`, and TensorFlow cannot copy what it holds: `content`."""

    rule: ClassVar[str] = "not-copied"
    title: ClassVar[str] = "cannot be copied"
    content: str
    device: str

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the code that the error has, which is TensorFlow's of each of its sentences."""
        return ("INVALID_ARGUMENT" if "Can't copy Tensor" in self.error else "INTERNAL",)


@dataclass(frozen=True, slots=True)
class RefusedOp(Failure):
    """TensorFlow finds no device for an op outside of functions; `op` is "" for a constant.

    `home` is the device of the resource that it has to go to, "" where the scope around it decides; `elsewhere` is that
    of another resource which it needs too, "" where a missing kernel is the cause.
    """

    rule: ClassVar[str] = "refused-op"
    title: ClassVar[str] = "op refused"
    op: str
    home: str = ""
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class NoPartner(Failure):
    """Members of a collective wait for others, which are not in the same program: it does not end.

    There are `count` of the `size` members that the group is to have; where these are enough, one waits for another.
    """

    rule: ClassVar[str] = "no-partner"
    title: ClassVar[str] = "waits forever"
    op: str
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class XlaRefuses(Failure):
    """XLA refuses to compile a function, for a reason other than a missing kernel."""

    rule: ClassVar[str] = "xla-refuses"
    title: ClassVar[str] = "XLA refuses"
    codes: ClassVar[tuple[str, ...]] = ("INVALID_ARGUMENT", "UNIMPLEMENTED")
    is_foretold: ClassVar[bool] = True
    call: str


@dataclass(frozen=True, slots=True)
class RefusedSetting(Failure):
    """TensorFlow refuses a setting, and the program ends; `started` is the line that had started TensorFlow, or ""."""

    rule: ClassVar[str] = "refused-setting"
    title: ClassVar[str] = "setting refused"
    setting: str
    started: str


@dataclass(frozen=True, slots=True)
class UnequalGrowth(Failure):
    """Memory growth is set for some GPUs and not for all: TensorFlow does not start; `set_at` is the setting's line."""

    rule: ClassVar[str] = "memory-growth"
    title: ClassVar[str] = "memory growth"
    set_at: str


@dataclass(frozen=True, slots=True)
class OutOfMemory(Failure):
    """A step needs more memory than a device has: `needed` bytes of `limit`, with `batch` examples (0: no batch).

    The one node is the first whose output finds no room; `largest_batch` is the largest that fits, None if not known.
    """

    rule: ClassVar[str] = "out-of-memory"
    title: ClassVar[str] = "out of memory"
    codes: ClassVar[tuple[str, ...]] = ("RESOURCE_EXHAUSTED",)
    is_foretold: ClassVar[bool] = True
    device: str
    needed: int
    limit: int
    batch: int
    largest_batch: int | None


def find_failures(placement: Placement) -> list[Failure]:
    """List what fails of a placement when it runs, in the order in which TensorFlow comes to it."""
    found = (
        *uncopied_arguments(placement), *read_elsewhere(placement), *uncompilable_ops(placement),
        *uncopied_variants(placement), *missing_partners(placement), *refusal_of_xla(placement),
    )  # fmt: skip
    return [_note_handling(failure, placement.program) for failure in found]


def uncopied_arguments(placement: Placement) -> Iterator[NotCopied]:
    """Yield the argument that TensorFlow could not copy to the device of a function that XLA compiles."""
    program = placement.program
    if found := read_copy_error(program.copy_error):
        nodes = tuple(placement.graph.names[node] for node in placement.decisions)
        yield NotCopied(program.at, program.title, nodes, found.error, found.content, found.device)


def read_elsewhere(placement: Placement) -> Iterator[XlaOtherDevice]:
    """Yield the calls that XLA compiles and that are given resources of other devices, once for each such device."""
    for cluster in find_clusters(placement):
        found: dict[tuple[str, bool], list[ForeignResource]] = {}
        for resource in find_foreign_resources(placement, cluster):
            found.setdefault((resource.device, resource.is_variable), []).append(resource)
        for (device, are_variables), resources in found.items():
            first = resources[0]
            yield XlaOtherDevice(
                first.at, placement.program.title, tuple(each.name for each in resources), describe_error(first),
                placement.graph.names[cluster.node], _shorten(placement, cluster.device), _shorten(placement, device),
                first.made_at, are_variables,
            )  # fmt: skip


def uncompilable_ops(placement: Placement) -> list[NotCompilable]:
    """List the ops that XLA lacks a kernel for in what it is to compile, those of one type and line together.

    Where TensorFlow cannot copy an argument, XLA does not come to it.
    """
    found: dict[tuple[int, str, str], list[str]] = {}
    clusters = {cluster.node: cluster for cluster in find_clusters(placement)}
    for cluster in clusters.values():
        for op in cluster.unsupported:
            if is_arg(op.op) and placement.program.copy_error:
                continue
            found.setdefault((cluster.node, op.op, op.at), []).append(op.name)
    graph, program = placement.graph, placement.program.title
    return [
        NotCompilable(at, program, tuple(names), describe_lack(clusters[node], op), op, graph.names[node])
        for (node, op, at), names in found.items()
    ]


def uncopied_variants(placement: Placement) -> Iterator[NotCopied]:
    """Yield the variants that cannot come to a GPU, those of one line, kind and device together."""
    found: dict[tuple[str, str, str], list[UncopiedVariant]] = {}
    for each in find_uncopied_variants(placement):
        at = next(filter(None, (placement.notes(node).at for node in (each.consumer, each.producer, each.maker))), "")
        found.setdefault((at, each.content, placement.device(each.consumer)), []).append(each)
    names = placement.graph.names
    for (at, _, device), edges in found.items():
        first = edges[0]
        nodes = tuple(dict.fromkeys(names[each.consumer] for each in edges))
        content, error = f"a {first.content}", describe_copy_error(first.content)
        yield NotCopied(at, placement.program.title, nodes, error, content, _shorten(placement, device))


def missing_partners(placement: Placement) -> Iterator[NoPartner]:
    """Yield the collectives of which members are missing."""
    names = placement.graph.names
    for group in find_incomplete_groups(placement):
        first = group.members[0]
        at, program = placement.notes(first).at, placement.program.title
        nodes = tuple(names[node] for node in group.members)
        op = placement.graph.ops[first]
        yield NoPartner(at, program, nodes, "", op, len(group.members), group.size)


def refusal_of_xla(placement: Placement) -> Iterator[XlaRefuses]:
    """Yield what XLA said against a function when the run asked it."""
    program = placement.program
    if program.xla_error:
        yield XlaRefuses(program.at, program.title, (), program.xla_error, program.name)


def check_step(placement: Placement) -> None:
    """Raise `NoStepError` where TensorFlow would fail to run a step of a placement."""
    for failure in find_failures(placement):
        at = f" at {failure.source}" if failure.source else ""
        raise NoStepError(
            f"no step of {placement.program.title} is timed: TensorFlow fails to run it ({failure.title}{at}, "
            f"see {name_page(failure.rule)})"
        )


def format_failure(failure: Failure) -> str:
    """Return a failure as one line of text, with the user's line and TensorFlow's words."""
    where = ", ".join(filter(None, (failure.source, state_caught(failure.caught_at))))
    at = f" ({where})" if where else ""
    match failure:
        case XlaOtherDevice():
            return (
                f"XLA compiles {failure.call} for {failure.home}, and cannot use {count_resources(failure)} on "
                f"{failure.device}{at}: {failure.error}"
            )
        case NotCompilable():
            ops = f"{len(failure.nodes)} × {failure.op}" if len(failure.nodes) > 1 else failure.op
            return f"XLA has no kernel for {ops}{at}: TensorFlow refuses to run {failure.call}, which XLA compiles"
        case NotCopied():
            return f"{failure.content} cannot be copied to {failure.device}{at}: {failure.error}"
        case RefusedOp():
            return f"{failure.op or 'a constant'} has no device{at}: {failure.error}"
        case NoPartner():
            lack = f"the program has {failure.count}" if failure.count < failure.size else "one waits for another's end"
            return f"{failure.op}{at} waits forever: its group has {failure.size} members, and {lack}"
        case XlaRefuses():
            return f"XLA refuses to compile {failure.call}{at}: {failure.error}"
        case RefusedSetting():
            return f"TensorFlow refuses to set {failure.setting}{at}: {failure.error}"
        case UnequalGrowth():
            return f"memory growth is set for some of the GPUs, not for all{at}: {failure.error}"
        case OutOfMemory():
            return f"{failure.device} has no room for {failure.nodes[0]}{at}: {failure.error}"
    raise AssertionError(f"{type(failure).__name__} is not about a placement")


def count_resources(failure: XlaOtherDevice) -> str:
    """Return how many variables, or tables and other objects, a call is given from elsewhere."""
    kind, count = "variable" if failure.are_variables else "table", len(failure.nodes)
    return f"a {kind}" if count == 1 else f"{count} {kind}s"


def _note_handling(failure: Failure, program: Program) -> Failure:
    """Return a failure with what the program does about its error, which may be of one of the codes that it raised."""
    raised = tuple(code for code in failure.codes if code in program.raised)
    return replace(failure, caught_at=program.catches(*(raised or failure.codes)), was_raised=bool(raised))


def _shorten(placement: Placement, device: str) -> str:
    found = placement.devices.find(device)
    return found.short if found is not None else device
