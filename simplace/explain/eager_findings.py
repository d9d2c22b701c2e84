"""What a user would not expect of eager ops: copies in each iteration of a loop, scopes not met, idle GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from simplace.devices.device_name import DeviceName
from simplace.devices.device_ranges import fold_names
from simplace.explain.eager import tell_choice
from simplace.explain.failures import RefusedOp
from simplace.explain.finding import Finding
from simplace.explain.finding_lines import format_finding
from simplace.explain.findings import IdleGpu, NoKernel, NoSuchDevice
from simplace.explain.sentences import short_request
from simplace.graph import dtypes
from simplace.kernels.dataset_ops import is_dataset_op
from simplace.kernels.kernel_lookup import nearest_dtype
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.placement.eager.execute import EagerRule, kernel_on
from simplace.program.program import EAGER_OPS

# Bytes that the ops of a line copy one way in a whole run. A copy takes some ten microseconds however small it is, so
# that fewer, 256 rounds of a loop with one number each, cost less than three milliseconds.
LEAST_BYTES = 1024
_NAMED = 3  # ops of a line that are named
_CONSTANT = "_EagerConst"


@dataclass(frozen=True, slots=True)
class EagerCopiesEachTime(Finding):
    """The eager ops of a line that run again and again have inputs copied again and again, from `origin` to `device`.

    The origin may be several devices that differ by their number alone. `op` lists the ops, `times` is how often the
    most frequent one runs, `inputs` are the numbers of the inputs, () for those of several ops.
    """

    rule: ClassVar[str] = "eager-copies"
    title: ClassVar[str] = "copies in a loop"
    op: str
    times: int
    inputs: tuple[int, ...]
    origin: str
    device: str
    tensors: int
    bytes: int


def find_in_eager(eager: PlacedEager, *, is_all: bool = True) -> list[Finding]:
    """List the findings of the eager ops of a program, the most telling kind first, then in the order of the ops.

    `is_all` tells that the program ran nothing else: only then are GPUs idle on which none of them ran.
    """
    idle = _idle_gpus(eager) if is_all else ()
    return [*find_refused_ops(eager), *copies_each_time(eager), *ungranted_scopes(eager), *idle]


def line_of_eager(finding: Finding) -> str:
    """Return a finding in a line, with the user's line."""
    if not isinstance(finding, EagerCopiesEachTime):
        return format_finding(finding)
    return state_copies(finding, f"{finding.op} ({finding.source})")


def state_copies(finding: EagerCopiesEachTime, what: str) -> str:
    """Return in a clause what a line's ops have copied, and how often; `what` names the ops."""
    is_one = len(finding.nodes) == 1
    read = ", and inputs come"
    if is_one:
        numbers = " and ".join(map(str, finding.inputs))
        read = f", and its input {numbers} comes" if len(finding.inputs) == 1 else f", and its inputs {numbers} come"
    return (
        f"{what} run{'s' * is_one} {finding.times:,} times on {finding.device}{read} from {finding.origin}: "
        f"{finding.tensors:,} copies, {finding.bytes:,} bytes in all"
    )


def copies_each_time(eager: PlacedEager) -> Iterator[EagerCopiesEachTime]:
    """Yield the lines whose ops had more than one tensor copied for an input, the most bytes first.

    Constants have to come over. What a library copies for itself, such as a strategy the sums of its replicas, is left
    out, since its author alone could change it, and so are copies of less than `LEAST_BYTES` in the whole run.
    """
    found: dict[tuple[str, str, str], list[tuple[PlacedOp, EagerCopies]]] = {}
    for each in eager.ops:
        if each.op.op == _CONSTANT or not each.op.at:
            continue
        for copy in each.copies:
            if copy.tensors is not None and copy.tensors > 1 and _is_of_program(each, copy.input, eager):
                kind = _short(eager, copy.source).rpartition(":")[0]  # a GPU, of which task
                found.setdefault((each.op.at, kind, copy.target), []).append((each, copy))
    told = [_copies_of_line(eager, members) for members in found.values()]
    yield from sorted((one for one in told if one.bytes >= LEAST_BYTES), key=lambda finding: -finding.bytes)


def _copies_of_line(eager: PlacedEager, members: list[tuple[PlacedOp, EagerCopies]]) -> EagerCopiesEachTime:
    """Return the finding on the copies to one device, from those of one type, for the ops of one line."""
    first, copy = members[0]
    names = tuple(dict.fromkeys(each.name for each, _ in members))
    origins = sorted({_short(eager, copy.source) for _, copy in members}, key=lambda name: (len(name), name))
    return EagerCopiesEachTime(
        first.op.at,
        EAGER_OPS,
        names,
        _list_ops(each for each, _ in members),
        max(each.times for each, _ in members),
        tuple(dict.fromkeys(copy.input for _, copy in members)) if len(names) == 1 else (),
        ", ".join(fold_names(origins)),
        _short(eager, copy.target),
        sum(copy.tensors or 0 for _, copy in members),
        sum(copy.bytes or 0 for _, copy in members),
    )


def find_refused_ops(eager: PlacedEager) -> Iterator[RefusedOp]:
    """Yield the ops for which TensorFlow finds no device."""
    for each in eager.ops:
        refusal, choice = each.placement.refusal, each.placement.choice
        if refusal is not None:
            bound = choice.device if choice is not None and choice.rule is EagerRule.RESOURCE else ""
            other = _resource_elsewhere(each, bound, eager) if bound else ""
            home, elsewhere = (_short(eager, device) if device else "" for device in (bound, other))
            error = refusal.message.splitlines()[0]
            yield RefusedOp(
                each.op.at, EAGER_OPS, (each.name,), error, each.op.op, home, elsewhere,
                caught_at=each.op.handlers.get(refusal.code),
            )  # fmt: skip


def _resource_elsewhere(each: PlacedOp, device: str, eager: PlacedEager) -> str:
    """Return the device of a resource that is not on `device`; "" for none, and where the op has no kernel there."""
    if kernel_on(each.op, device, eager.devices_of(each), eager.table) is None:
        return ""
    resources = (given.device for given in each.op.inputs if given.dtype == dtypes.DataType.DT_RESOURCE)
    return next((other for other in resources if other != device), "")


def ungranted_scopes(eager: PlacedEager) -> Iterator[NoKernel | NoSuchDevice]:
    """Yield the scopes that eager ops did not get, those of one line together; datasets belong on the CPU.

    `because` and `op` of a finding are those of its first op.
    """
    found: dict[tuple[str, str, str], list[PlacedOp]] = {}
    for each in eager.ops:
        choice = each.placement.choice
        if choice is None or choice.rule is not EagerRule.SOFT_FALLBACK or _is_dataset(each, eager):
            continue
        if not each.op.library or not _exists(each, eager):  # a library works with what it gets
            found.setdefault((each.op.at, each.op.scope, choice.device), []).append(each)
    for (at, scope, device), members in found.items():
        first, request, got = members[0], short_request(scope), _short(eager, device)
        names, ops = tuple(each.name for each in members), _list_ops(members)
        because = str(tell_choice(first, eager))
        if not _exists(first, eager):
            yield NoSuchDevice(at, EAGER_OPS, names, request, got, ops, because, str(eager.devices_of(first)))
            continue
        spec = DeviceName.parse(scope)
        nearest = nearest_dtype(eager.table, first.op.op, (spec and spec.type) or "", first.op.attrs)
        instead = f"{nearest.attr}={dtypes.format_dtype(nearest.instead)}" if nearest is not None else ""
        yield NoKernel(at, EAGER_OPS, names, request, got, ops, because, first.op.op, instead)


def _exists(each: PlacedOp, eager: PlacedEager) -> bool:
    """Return whether there is a device such as the scope around an op requests."""
    spec = DeviceName.parse(each.op.scope)
    return spec is not None and bool(eager.devices_of(each).matching(spec))


def _list_ops(members: Iterable[PlacedOp]) -> str:
    """Return the names of the ops of a line, each once, the first ones where there are many."""
    ops = list(dict.fromkeys(each.op.op for each in members))
    return ", ".join(ops[:_NAMED]) + (f" and {len(ops) - _NAMED} more" if len(ops) > _NAMED else "")


def _is_of_program(each: PlacedOp, number: int, eager: PlacedEager) -> bool:
    """Return whether the program itself runs an op, or makes its input of that number by an op of its own."""
    makers = (eager.ops[one.maker] for one in each.made_by if one.input == number)
    return not each.op.library or any(not maker.op.library for maker in makers)


def _is_dataset(each: PlacedOp, eager: PlacedEager) -> bool:
    definition = eager.table.op(each.op.op)
    assert definition is not None, "an op that the table does not know is not placed"
    return is_dataset_op(each.op.op, definition, ())


def _idle_gpus(eager: PlacedEager) -> Iterator[IdleGpu]:
    gpus = (device for device in eager.all_devices if device.type == "GPU")
    idle = [device.short for device in gpus if device.name not in eager.used_devices]
    if idle:
        yield IdleGpu("", "", (), tuple(idle), 0)


def _short(eager: PlacedEager, name: str) -> str:
    found = eager.all_devices.find(name)
    return found.short if found is not None else name
