"""A sentence for each kind of change that simplace suggests, and what it does to a step."""

from __future__ import annotations

from functools import singledispatch
from itertools import groupby
from math import hypot

from simplace.analysis.device_comparison import DeviceComparison, DevicesTrial
from simplace.analysis.schedule import Schedule
from simplace.explain.finding_lines import format_error
from simplace.placement.xla_compiler import find_clusters
from simplace.suggestions.changes import (
    Change,
    ColocatedGradients,
    LayersOverGpus,
    LinesOverGpus,
    MirroredReplicas,
    MixedPrecision,
    NewScope,
    NoXlaCompilation,
    OneDeviceStrategy,
    OneGpu,
    OtherBatch,
    OtherReduction,
    OtherType,
    ParallelMap,
    PrefetchToDevice,
    ScopeDevice,
    Several,
    ThreadSettings,
    UpdatesBesideVariables,
    XlaCompilation,
)
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.find_suggestions import WithoutXla
from simplace.suggestions.gradient_changes import TAPE
from simplace.suggestions.input_pipeline import MapTime, UntimedInput
from simplace.suggestions.thread_changes import WAKE_ERROR_NS, WAKE_NS
from simplace.suggestions.trial import Outcome, Trial
from simplace.views.text.cost_sentences import format_makespan, format_uncertain
from simplace.views.text.quantities import format_bytes, format_count
from simplace.views.text.traffic_phrases import list_traffic
from simplace.views.text.verdict import write_verdict

_NAMED = 3  # variables, lines
_SCALES_LOSS = ("LossScaleOptimizer", "scale_loss")

OUTCOMES: dict[Outcome, str] = {
    "held": "tried",
    "edits overlap": "its edits overlap",
    "program failed": "the changed program fails",
    "refused": "TensorFlow refuses the placement",
    "disagrees": "simplace and TensorFlow disagree on the changed program",
    "no such step": "the changed program has no such step, or one with fewer examples",
    "not simulated": "XLA compiles loops or branches of the changed program, and how long those take is not simulated",
    "would fail": "TensorFlow would place the changed program and then fail to run it",
    "out of memory": "it does not fit in memory",
}


@singledispatch
def describe_change(change: Change) -> str:
    """Return what to change, as an imperative clause with the user's lines."""
    raise AssertionError(f"no sentence for {change}")


@describe_change.register
def _(change: ScopeDevice) -> str:
    whose = f", for {_list_some(change.variables)}" if change.variables else ""
    return f'{change.at}: name "{change.after}" in place of {change.before}{whose}'


@describe_change.register
def _(change: NewScope) -> str:
    what = f"make {_list_some(change.variables)}" if change.variables else "compute"
    return f'{change.at}: {what} under tf.device("{change.device}")'


@describe_change.register
def _(change: OneGpu) -> str:
    return f"{change.at}: name {change.device} in all {change.scopes} scopes that name GPUs"


@describe_change.register
def _(change: LinesOverGpus) -> str:
    each = [f"{line} on {device}" for line, device in change.devices]
    return f"compute {_list_some(each)}"


@describe_change.register
def _(change: LayersOverGpus) -> str:
    groups = groupby(sorted(change.devices, key=lambda one: one[1]), key=lambda one: one[1])
    each = [f"{_list_some([layer for layer, _ in layers])} on {device}" for device, layers in groups]
    updates = ", and update their variables there" if change.has_updates else ""
    return f"{change.at}: build and call {', '.join(each)}{updates}"


@describe_change.register
def _(change: ParallelMap) -> str:
    return f'{change.at}: call "{change.function}" for several elements at once'


@describe_change.register
def _(change: PrefetchToDevice) -> str:
    return f"{change.at}: copy the next elements to {change.device} while a step runs"


@describe_change.register
def _(change: ThreadSettings) -> str:
    inter, intra = (str(number) if number else "one per core" for number in (change.inter_op, change.intra_op))
    return f"{change.at}: set inter-op threads to {inter}, intra-op threads to {intra}"


@describe_change.register
def _(change: ColocatedGradients) -> str:
    return f"{change.at}: compute each gradient on the device of the op that it is of"


@describe_change.register
def _(change: UpdatesBesideVariables) -> str:
    return f"{change.at}: compute the update on the device of its variable"


@describe_change.register
def _(change: OtherType) -> str:
    places = format_count(change.places, "place")
    return f"{change.at}: compute in {change.after} in place of {change.before} ({places})"


@describe_change.register
def _(change: MixedPrecision) -> str:
    return f"{change.at}: let Keras compute in float16 and keep variables in float32"


@describe_change.register
def _(change: OtherBatch) -> str:
    return f"{change.at}: take a batch of {change.after:,} in place of {change.before:,}"


@describe_change.register
def _(change: OneDeviceStrategy) -> str:
    return f"{change.at}: train on {change.device} alone"


@describe_change.register
def _(change: OtherReduction) -> str:
    return f"{change.at}: sum up the gradients by {change.after} in place of {change.before or 'the default'}"


@describe_change.register
def _(change: MirroredReplicas) -> str:
    share = -(-change.examples // change.replicas)
    parts = f"{share:,} of the {change.examples:,} examples of a step" if share > 1 else "its part of a batch"
    return f"{change.at}: copy the model to all {change.replicas} GPUs, each of which takes {parts}"


@describe_change.register
def _(change: XlaCompilation) -> str:
    return f"{change.at}: let XLA compile it (jit_compile=True)"


@describe_change.register
def _(change: NoXlaCompilation) -> str:
    return f"{change.at}: keep XLA from compiling it (jit_compile=False)"


@describe_change.register
def _(change: Several) -> str:
    return "; ".join(describe_change(part) for part in change.parts)


def describe_gain(trial: Trial) -> str:
    """Return what a change saves, how far off that may be, and the step's time, or an example's, before and after.

    Of a change that makes the step fit in memory, return what it then needs.
    """
    assert trial.after is not None
    before, after = trial.before, trial.after
    if trial.makes_fit:
        return f"makes it fit: {describe_memory(after)} ({_compare_times(trial)})"
    error = format_error(trial.gain_error)
    steps = f"{_format_step(before)} to {_format_step(after)} a step"
    if not trial.is_per_example:
        return f"saves {trial.gain:.0%}{error} ({steps})"
    examples = f"{_format_example(before)} to {_format_example(after)} an example"
    return f"saves {trial.gain:.0%}{error} of an example's time ({examples}; {steps})"


def describe_memory(step: Step) -> str:
    """Return what a step needs of the memory of each device that has a limit, and whether that is too much."""
    memory, devices = step.memory, step.schedule.placement.devices.by_name
    limited = [use for use in memory.uses if memory.limit(use)]
    limited.sort(key=lambda use: (use.runs_out < 0, list(devices).index(use.device)))
    each = [
        f"{format_bytes(memory.needed(use))} of {format_bytes(memory.limit(use))} on {devices[use.device].short}"
        for use in limited
    ]
    close = [devices[use.device].short for use in limited if memory.is_close(use)] if memory.fits else []
    free = f", which leaves too little on {_list_some(close)} to rely on" if close else ""
    return f"needs {_list_some(each)}{free}{'' if memory.fits else ': does not fit'}"


def needs_more_inside_xla(trial: Trial) -> bool:
    """Return whether a change is about memory, or takes more of it, and XLA compiles what it makes."""
    assert trial.after is not None
    batches = [part for part in trial.change.list_parts() if isinstance(part, OtherBatch)]
    is_larger = any(part.after > part.before for part in batches)
    return bool(find_clusters(trial.after.schedule.placement)) and (trial.makes_fit or is_larger)


def lacks_loss_scaling(trial: Trial) -> bool:
    """Return whether gradients become float16 in a loop of the program's own, where Keras does not scale the loss."""
    assert trial.after is not None
    placement = trial.after.schedule.placement
    if placement.program.role or not any(isinstance(part, MixedPrecision) for part in trial.change.list_parts()):
        return False
    is_scaled = any(word in text for word in _SCALES_LOSS for text in trial.texts.values())
    return not is_scaled and any(TAPE in name for name in placement.graph.names)


def describe_without_xla(found: WithoutXla, before: Step) -> str:
    """Return why nothing that XLA compiles is split over GPUs, and what to set; "" where a split gains."""
    said = "XLA compiles this step for one GPU, so none of its ops can be on another one"
    if found.alone is None:
        return f"{said}; --no-jit looks for splits of the program without XLA"
    at = f"jit_compile=False at {found.alone.change.at}"
    last = found.split or found.alone
    if last.after is None or last.outcome != "held":
        what = "splitting it" if found.split else "it"
        return f"{said}; {at} would change that, but {what} was not confirmed: {last.error or OUTCOMES[last.outcome]}"
    if last is found.split and (last.makes_fit or last.gain > 0):
        return ""
    assert found.alone.after is not None
    present, alone = (_format_step(step) for step in (before, found.alone.after))
    estimated = format_uncertain(found.estimated, found.alone.after.uncertainty)
    split = _format_step(last.after) if last is found.split else estimated
    apart = f"{split} with its best split" if found.estimated else "and no split was found to be faster"
    return f"{said}; as it is a step takes {present}, with {at} {alone} on that GPU, {apart}"


def describe_replicas(found: DeviceComparison) -> str:
    """Return why a replica on each GPU is not suggested, and from which batch on it would be."""
    own, last, examples = found.trials[0], found.trials[-1], found.examples[0]
    before, after = _format_trial(own)
    said = f"a replica on each GPU (tf.distribute.MirroredStrategy) was tried, too: {before} to {after} a step"
    if found.unknown:
        return f"{said}, which does not gain; other batches were not tried, since {found.unknown}"
    if found.worth_from is None:
        return f"{said}, which does not gain, nor with any batch up to {last.factor * examples:,}"
    first = found.worth_from
    times = " to ".join(_format_trial(first))
    batch = f"{first.factor * examples:,}"
    return f"{said}, which does not gain with this batch of {examples:,}, but from one of {batch} on ({times})"


def describe_input(slowest: MapTime | None, schedule: Schedule) -> str:
    """Return what of a step's input takes longer than the step, "" where nothing does."""
    if slowest is None or slowest.nanoseconds <= schedule.trace.makespan:
        return ""
    calls, error = format_count(slowest.calls, "call"), hypot(*slowest.errors.values())
    how = "several at once" if slowest.is_parallel else "one after the other"
    whole, one = (format_uncertain(time, error) for time in (slowest.nanoseconds, slowest.call_time))
    return f'its input takes longer, {whole}: {calls} of "{slowest.name}" at {slowest.at}, each {one}, {how}'


def describe_untimed(untimed: UntimedInput | None) -> str:
    """Return which function of a step's input calls Python and is not counted, "" for none."""
    if untimed is None:
        return ""
    calls = "once" if untimed.calls == 1 else f"{untimed.calls:,} times"
    return (
        f"not counted: the dataset's {untimed.role} at {untimed.at} calls Python, {calls} a step, and a step waits for "
        "that where it takes longer"
    )


def describe_causes(trial: Trial) -> list[str]:
    """Return why a change saves time: what a step sends, and what its devices wait for, before and after."""
    assert trial.after is not None
    sent = [
        "; ".join(list_traffic(step.schedule.estimated.graph.traffic)) or "nothing"
        for step in (trial.before, trial.after)
    ]
    said = [f"a step sends {sent[0]} before, {sent[1]} after"] if sent[0] != sent[1] else []
    verdicts = [write_verdict(step.schedule) for step in (trial.before, trial.after)]
    return [*said, f"before: {verdicts[0]}", f"after: {verdicts[1]}"]


def _compare_times(trial: Trial) -> str:
    """Return the time of a step that fits, and what it would be as the program is if memory sufficed."""
    assert trial.after is not None
    before, after, each = _format_step(trial.before), _format_step(trial.after), ""
    if trial.is_per_example:
        before, after = _format_example(trial.before), _format_example(trial.after)
        each = " an example"
    return f"{after}{each or ' a step'}; {before}{each} as it is, if memory sufficed"


def _format_step(step: Step) -> str:
    """Return the time of a step; where what goes on beside it takes longer, the time of that."""
    if step.nanoseconds == step.schedule.trace.makespan:
        return format_makespan(step.schedule)
    if step.is_input_bound or step.copied == step.nanoseconds:
        time = format_uncertain(step.nanoseconds, step.uncertainty)
        return f"{time} of {'input' if step.is_input_bound else 'copies beside it'}"
    if step.woken:
        woken = format_uncertain(step.woken, WAKE_ERROR_NS / WAKE_NS)
        return f"{format_makespan(step.schedule)} and {woken} to wake threads"
    given = format_uncertain(step.given, step.schedule.estimated.model.assume_reliability("copy").error)
    return f"{format_makespan(step.schedule)} after {given} of copies"


def _format_trial(trial: DevicesTrial) -> tuple[str, str]:
    return format_uncertain(trial.before, trial.errors[0]), format_uncertain(trial.after, trial.errors[1])


def _format_example(step: Step) -> str:
    return format_uncertain(step.per_example, step.uncertainty)


def _list_some(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
