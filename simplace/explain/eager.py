"""Explain eager ops: the rule that chose the device of each, its kernels, and what is copied for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.errors import NodeNotFoundError, join_alternatives
from simplace.explain.explanation import Explanation, list_reason_pages
from simplace.explain.finding import name_page
from simplace.explain.sentence import Sentence, join_sentence
from simplace.explain.sentences import short_request
from simplace.graph import dtypes
from simplace.kernels.kernel_lookup import nearest_dtype, supported_device_types
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.placement.eager.execute import EagerChoice, EagerRule
from simplace.program.eager_op import SMALL

RULES = {
    EagerRule.RESOURCE: "eager_resource",
    EagerRule.SMALL_INPUTS: "eager_small_inputs",
    EagerRule.REQUESTED: "requested",
    EagerRule.SOFT_FALLBACK: "soft_fallback",
    EagerRule.BEST_KERNEL: "eager_best_kernel",
}


def find_eager(eager: PlacedEager, name: str) -> list[PlacedOp]:
    """List the eager ops of a line ("model.py:14"), of an op ("MatMul") or of one name; none where there are none."""
    return [each for each in eager.ops if name in (each.name, each.op.op) or _is_line(each.op.at, name)]


def explain_eager(eager: PlacedEager, name: str) -> Explanation:
    """Explain the devices of the eager ops of a line, op or name; raise `NodeNotFoundError` where there are none."""
    found = find_eager(eager, name)
    if not found:
        known = sorted({text for each in eager.ops for text in (each.op.at, each.op.op, each.name)})
        close = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
        hint = f"did you mean {join_alternatives(close)}?" if close else "simplace show --table lists every op"
        raise NodeNotFoundError(f"no eager op is called {name!r}; {hint}")
    if len(found) == 1:
        return Explanation(found[0].name, headline(found[0], eager), tuple(_facts(found[0], eager)), _list_pages(found))
    lines: list[Sentence] = []
    for each in found:
        lines += [headline(each, eager), *_facts(each, eager)]
    times = sum(each.times for each in found)
    return Explanation(
        name,
        join_sentence(f"{name}: {len(found):,} ops outside of functions, run {times:,} times."),
        tuple(lines),
        _list_pages(found),
    )


def headline(placed: PlacedOp, eager: PlacedEager) -> Sentence:
    """Return where an op runs, and how often."""
    at, device = f" at {placed.op.at}" if placed.op.at else "", placed.placement.device
    if not device:
        return join_sentence(f"{placed.op.op}{at} has no device: TensorFlow refuses to place it.")
    times = f" {placed.times:,} times" if placed.times > 1 else ""
    return join_sentence(f"{placed.op.op}{at} runs{times} on {_short(eager, device)}.")


def tell_choice(placed: PlacedOp, eager: PlacedEager) -> Sentence:
    """Return the reason for an op's device in a sentence."""
    placement, op = placed.placement, placed.op
    if placement.refusal is not None or placement.choice is None:
        refusal = placement.refusal
        assert refusal is not None, "an op without a device was refused"
        return join_sentence(f"TensorFlow refuses it ({refusal.code}): {refusal.message.splitlines()[0]}")
    choice = placement.choice
    device, asked = _short(eager, choice.device), short_request(op.scope)
    match choice.rule:
        case EagerRule.RESOURCE:
            own = (
                ""
                if not _asks(op.scope) or choice.device.endswith(asked)
                else f", whatever the scope requests ({asked})"
            )
            return join_sentence(
                f"Its input {choice.resource} is a resource on {device}, and an op goes where that is{own}."
            )
        case EagerRule.SMALL_INPUTS:
            return join_sentence(
                f"All its inputs are integers of at most {SMALL} elements on the CPU, and the environment is set to "
                f"keep such ops there: {device}."
            )
        case EagerRule.REQUESTED:
            return join_sentence(f"The scope around it requests {asked}, and it has a kernel there: {device}.")
        case EagerRule.SOFT_FALLBACK:
            spec = DeviceName.parse(op.scope)
            exists = spec is not None and bool(eager.devices_of(placed).matching(spec))
            cause = f"{op.op} has no kernel there for its data types" if exists else "no such device exists here"
            return join_sentence(
                f"The scope around it requests {asked}, but {cause}; soft placement chose {device} instead."
            )
    return _tell_best(choice, eager.devices_of(placed), device)


def tell_copy(copy: EagerCopies, eager: PlacedEager) -> Sentence:
    """Return what is copied for one input."""
    start = f"Its input {copy.input} is on {_short(eager, copy.source)} and is copied to {_short(eager, copy.target)}"
    if copy.tensors is None or copy.bytes is None:
        return join_sentence(f"{start}.")
    tensors = "1 tensor" if copy.tensors == 1 else f"{copy.tensors:,} tensors"
    return join_sentence(f"{start}: {tensors}, {copy.bytes:,} bytes in all.")


def _list_pages(found: Iterable[PlacedOp]) -> tuple[str, ...]:
    chosen = [each.placement.choice for each in found]
    pages = list_reason_pages(RULES[choice.rule] for choice in chosen if choice is not None)
    return pages if None not in chosen else (*pages, name_page("refused-op"))


def _facts(placed: PlacedOp, eager: PlacedEager) -> Iterator[Sentence]:
    yield from _tell_kernels(placed, eager)
    yield tell_choice(placed, eager)
    for copy in placed.copies:
        yield tell_copy(copy, eager)
    yield from _tell_host_results(placed, eager)


def _tell_best(choice: EagerChoice, devices: DeviceSet, device: str) -> Sentence:
    best = devices.types[0]
    if best in dict(choice.types):
        return join_sentence(
            f"No device was requested; the first one of the best type with a kernel is used: {device}."
        )
    return join_sentence(f"No device was requested; {best} has priority but no kernel for it, so it runs on {device}.")


def _tell_kernels(placed: PlacedOp, eager: PlacedEager) -> Iterator[Sentence]:
    op, table = placed.op, eager.table
    definition = table.op(op.op)
    assert definition is not None, "an op that the table does not know is not placed"
    kinds = [
        (name, op.attrs[name]) for name, kind in definition.attr_types.items() if kind == "type" and name in op.attrs
    ]
    types = ", ".join(f"{name}={dtypes.format_dtype(dtype)}" for name, dtype in kinds)
    kinds_here = eager.devices_of(placed).types
    near = {kind: nearest_dtype(table, op.op, kind, op.attrs) for kind in kinds_here}
    has = _kernel_types(placed, eager)
    yield join_sentence(
        f"{op.op}{types and ' with '}{types} has a kernel for {' and '.join(has) or 'no device type here'}."
    )
    for kind in kinds_here:
        nearest = near[kind]
        if kind not in has and nearest is not None:
            given, instead = dtypes.format_dtype(nearest.dtype), dtypes.format_dtype(nearest.instead)
            lacks = f"It has none for {kind} with {nearest.attr}={given}"
            yield join_sentence(f"{lacks}; the nearest data type that has one is {instead}.")
        elif kind not in has:
            yield join_sentence(f"It has none for {kind}, whatever the data type.")


def _kernel_types(placed: PlacedOp, eager: PlacedEager) -> list[str]:
    types = eager.devices_of(placed).types
    return [kind for kind, _ in supported_device_types(eager.table, placed.op.op, placed.op.attrs, types)]


def _tell_host_results(placed: PlacedOp, eager: PlacedEager) -> Iterator[Sentence]:
    body = placed.placement.body
    device = eager.all_devices.find(placed.placement.device)
    if body is None or device is None or device.type == "CPU":
        return
    graph = body.graph
    kept = [
        graph.names[i]
        for i in graph.op_ids
        if graph.ops[i] == "_Retval" and graph.in_types[i][0] == dtypes.DataType.DT_INT32
    ]
    if kept:
        count = "result is" if len(kept) == 1 else "results are"
        yield join_sentence(f"It runs on {device.short}, but its int32 {count} kept in host memory.")


def _asks(scope: str) -> bool:
    spec = DeviceName.parse(scope) if scope else None
    return spec is not None and spec.type is not None


def _is_line(at: str, name: str) -> bool:
    return bool(at) and (at == name or at.endswith("/" + name))


def _short(eager: PlacedEager, device: str) -> str:
    found = eager.all_devices.find(device)
    return found.short if found is not None else device
