"""Findings about a placement, each in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.devices.device_ranges import fold_names
from simplace.explain.copy_findings import HostRoundTrip, VariablesFar
from simplace.explain.failures import format_failure
from simplace.explain.finding import Failure, Finding
from simplace.explain.findings import DetourOverCpu, HostMemory, IdleGpu, RequestNotGranted
from simplace.explain.gradient_findings import GradientsElsewhere, UpdatesElsewhere
from simplace.explain.slot_findings import SlotsElsewhere
from simplace.explain.sparse_findings import SparseGather
from simplace.explain.waiting_findings import Awaited, GpuWaits, LaunchBoundLoop, OneGpuStep, SerialReplicas, UnusedWork

_NAMED = 3  # variables
_AWAITED: dict[Awaited, str] = {
    "launches": "the host to launch {kernels}", "copies": "copies", "collectives": "collectives",
    "input": "the input pipeline", "devices": "other devices",
}  # fmt: skip


def format_finding(finding: Finding) -> str:
    """Return a finding as one line of text, with the user's line."""
    at = f" ({finding.source})" if finding.source else ""
    match finding:
        case RequestNotGranted():
            return f"{finding.ops}{at}: {finding.because}"
        case Failure():
            return format_failure(finding)
        case GradientsElsewhere() | UpdatesElsewhere():
            return f"{state_elsewhere(finding)}{at}"
        case VariablesFar():
            return f"{state_far(finding)}{at}"
        case SlotsElsewhere():
            return f"{state_slots(finding)}{at}"
        case SparseGather():
            return f"{state_gather(finding)}{at}"
        case HostRoundTrip():
            return f"{finding.ops} on {finding.device} between GPU ops, as requested{at}"
        case DetourOverCpu():
            return f"{finding.ops} on {finding.device} between GPU ops{at}: {finding.because}"
        case HostMemory():
            return f"{finding.ops} on a GPU keep{'s' if len(finding.nodes) == 1 else ''} results in host memory{at}"
        case GpuWaits() | SerialReplicas() | LaunchBoundLoop():
            return f"{state_waiting(finding)}{at}"
        case UnusedWork():
            return f"{state_unused(finding)}{at}"
        case IdleGpu():
            return f"{state_idle(finding)}{at}"
    raise AssertionError(f"{type(finding).__name__} is not about a placement")


def state_idle(finding: IdleGpu) -> str:
    """Return in a clause why GPUs are idle.

    >>> state_idle(IdleGpu("", "", (), ("GPU:1", "GPU:2", "GPU:3", "GPU:5"), 0))
    'GPU:1 … GPU:3 and GPU:5 are idle: no op requests them, and TensorFlow does not distribute ops by itself'
    """
    one = len(finding.devices) == 1
    idle = f"{join_names(fold_names(finding.devices))} {'is' if one else 'are'} idle"
    if finding.requests:
        return f"{idle}, though {finding.requests} ops requested it"
    if finding.ops:
        return f"{idle}: {finding.ops}, for which it has kernels, request{'s' * (len(finding.nodes) == 1)} the CPU"
    return f"{idle}: no op requests {'it' if one else 'them'}, and TensorFlow does not distribute ops by itself"


def state_elsewhere(finding: GradientsElsewhere | UpdatesElsewhere) -> str:
    """Return in a clause which ops run elsewhere than what they belong to."""
    count, homes = len(finding.nodes), join_names(finding.homes)
    if isinstance(finding, UpdatesElsewhere):
        ops = f"{count:,} ops between" if count > 1 else "1 op between"
        return f"{ops} gradients and variables of {homes} run{'s' * (count == 1)} on {finding.device}"
    updates = f" and {finding.updates:,} of the updates after them" if finding.updates else ""
    ops = f"{count:,} gradient ops" if count > 1 else "1 gradient op"
    run = "run" if count + finding.updates > 1 else "runs"
    return f"{ops} of layers on {homes}{updates} {run} on {finding.device}"


def state_slots(finding: SlotsElsewhere) -> str:
    """Return in a clause which slots are elsewhere than their variables."""
    slots, device, home = _join_some(finding.slots), finding.device, finding.home
    if len(finding.slots) > 1:
        return f"{slots} are on {device}, and the variables that they are kept for on {home}"
    return f"{slots} is on {device}, and the variable that it is kept for on {home}"


def _join_some(names: Sequence[str]) -> str:
    count = len(names)
    more = [f"{count - _NAMED:,} more variables"] if count > _NAMED else []
    return join_names([*names[:_NAMED], *more])


def state_far(finding: VariablesFar) -> str:
    """Return in a clause which variables are far from the ops that read them."""
    count = len(finding.variables)
    names = f"{_join_some(finding.variables)} {'are' if count > 1 else 'is'} on {finding.home}"
    read = f"read{'s' * (len(finding.nodes) == 1)} all of {'them' if count > 1 else 'it'} in each step"
    return f"{names}, and {finding.ops} on {finding.device} {read}"


def state_gather(finding: SparseGather) -> str:
    """Return in a clause what replicas gather, and what they could reduce instead."""
    return (
        f"{finding.participants} replicas gather the rows of gradients (IndexedSlices), {finding.gathered:,} bytes "
        f"each, and {finding.variable} has {finding.dense:,} bytes as a whole"
    )


def state_waiting(finding: GpuWaits | SerialReplicas | LaunchBoundLoop) -> str:
    """Return in a clause what GPUs wait for in a simulated step."""
    match finding:
        case GpuWaits():
            return _state_waits(finding)
        case SerialReplicas():
            return _state_serial(finding)
    what = "which are too small to fill it" if finding.is_busy else "and waits for the launches"
    took = f"{finding.mean / 1000:.2g} µs{format_error(finding.mean_error)}"
    return (
        f"the loop {finding.loop} launches {finding.kernels:,} kernels of {took} on "
        f"{finding.device} in {finding.trips:,} iterations, {what}"
    )


def _state_alone(alone: OneGpuStep | None) -> str:
    """Return that a step is quicker on one GPU, by how much, and how far off that is; "" where it is not."""
    if alone is None:
        return ""
    return f" (a step takes {alone.saves:.0%}{format_error(alone.error)} less with all of it on {alone.device})"


def _state_waits(finding: GpuWaits) -> str:
    one = len(finding.devices) == 1
    count, up_to = max(finding.kernels), "up to " * (len(set(finding.kernels)) > 1)
    kernels = f"{up_to}{count:,} kernel{'s' * (count != 1)}"
    what = finding.other or _AWAITED[finding.cause].format(kernels=kernels)
    least, most = (f"{share:.0%}" for share in (min(finding.shares), max(finding.shares)))
    share = least if least == most else f"{least} to {most}"
    longest = f", longest for {finding.nodes[0]}" if finding.nodes else ""
    who = f"{join_names(fold_names(finding.devices))} {'waits' if one else 'each wait'}"
    return f"{who} for {what} during {share} of a simulated step{longest}{_state_alone(finding.alone)}"


def _state_serial(finding: SerialReplicas) -> str:
    first, second = finding.devices[:2]
    who = f"{join_names(fold_names(finding.devices))} do the same work one after the other"
    if len(finding.devices) > 2:
        why = {
            "variable": f"each reads what was updated for the one before, as by {', '.join(finding.nodes)}",
            "stream": "what each needs is copied when the one before has done its work",
            "thread": "one thread launches the kernels of all",
        }
    else:
        why = {
            "variable": f"{second} reads what {', '.join(finding.nodes)} has updated for {first}",
            "stream": f"what {second} needs is copied when {first} has done its work",
            "thread": f"one thread launches the kernels of both, those of {second} last",
        }
    return f"{who}{_state_alone(finding.alone)}: {why[finding.bond]}"


def state_unused(finding: UnusedWork) -> str:
    """Return in a clause which ops compute what nothing uses."""
    what = "computes: TensorFlow removes it" if len(finding.nodes) == 1 else "compute: TensorFlow removes them"
    return (
        f"nothing uses what {finding.ops} on {finding.device} {what} before {finding.program} runs, and thereby "
        f"{finding.share:.0%} of the work"
    )


def format_error(error: float) -> str:
    """Return an uncertainty to put after a time; "" for a time that is no prediction, as of flat costs.

    >>> format_error(0.123), format_error(0.002), format_error(0.0)
    (' ± 12%', ' ± 1%', '')
    """
    return f" ± {max(error, 0.01):.0%}" if error else ""


def join_names(names: Sequence[str]) -> str:
    """Join names with commas and a last "and".

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
