"""Findings about a placement, each in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.explain.copy_findings import HostRoundTrip, VariablesFar
from simplace.explain.failures import format_failure
from simplace.explain.finding import Failure, Finding
from simplace.explain.findings import DetourOverCpu, HostMemory, IdleGpu, RequestNotGranted
from simplace.explain.gradient_findings import GradientsElsewhere, UpdatesElsewhere
from simplace.explain.slot_findings import SlotsElsewhere
from simplace.explain.sparse_findings import SparseGather
from simplace.explain.waiting_findings import Awaited, GpuWaits, LaunchBoundLoop, SerialReplicas, UnusedWork

_NAMED = 3  # variables
_AWAITED: dict[Awaited, str] = {
    "launches": "the host to launch {kernels:,} kernels", "copies": "copies", "collectives": "collectives",
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

    >>> state_idle(IdleGpu("", "", (), ("GPU:1", "GPU:2"), 0))
    'GPU:1 and GPU:2 are idle: no op requests them, and TensorFlow does not distribute ops by itself'
    """
    one = len(finding.devices) == 1
    idle = f"{join_names(finding.devices)} {'is' if one else 'are'} idle"
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
    """Return in a clause what a GPU waits for in a simulated step."""
    match finding:
        case GpuWaits():
            what = finding.other or _AWAITED[finding.cause].format(kernels=finding.kernels)
            longest = f", longest for {finding.nodes[0]}" if finding.nodes else ""
            return f"{finding.device} waits for {what} during {finding.share:.0%} of a simulated step{longest}"
        case SerialReplicas():
            both = f"{finding.earlier} and {finding.later} do the same work one after the other"
            if finding.bond == "variable":
                return f"{both}: {finding.later} reads what {finding.nodes[0]} has updated for {finding.earlier}"
            if finding.bond == "stream":
                return f"{both}: what {finding.later} needs is copied when {finding.earlier} has done its work"
            return f"{both}: one thread launches the kernels of both, those of {finding.later} last"
    what = "which are too small to fill it" if finding.is_busy else "and waits for the launches"
    took = f"{finding.mean / 1000:.2g} µs{format_error(finding.mean_error)}"
    return (
        f"the loop {finding.loop} launches {finding.kernels:,} kernels of {took} on "
        f"{finding.device} in {finding.trips:,} iterations, {what}"
    )


def state_unused(finding: UnusedWork) -> str:
    """Return in a clause which ops compute what nothing uses."""
    what = "computes: TensorFlow removes it" if len(finding.nodes) == 1 else "compute: TensorFlow removes them"
    return (
        f"nothing uses what {finding.ops} on {finding.device} {what} before {finding.program} runs, and thereby "
        f"{finding.share:.0%} of the work"
    )


def state_serial(findings: Sequence[SerialReplicas]) -> str:
    """Return in a clause which GPUs, in the order of a chain, do the same work because one thread launches it."""
    devices = [findings[0].earlier, *(one.later for one in findings)]
    return f"{join_names(devices)} do the same work one after the other: one thread launches the kernels of all"


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
