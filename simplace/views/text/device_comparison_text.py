"""Sentences on whether a step is faster on other devices, and from which batch on."""

from __future__ import annotations

from simplace.analysis.device_comparison import DeviceComparison, DevicesTrial
from simplace.explain.finding_lines import format_error
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.lines import wrap_line
from simplace.views.text.quantities import format_count
from viz import Column, Table, to_text


def write_comparison(found: DeviceComparison, width: int | None = None) -> str:
    """Return the verdict on other devices, with a table of the batches that were tried."""
    said = wrap_line(describe_comparison(found), width)
    return "\n\n".join([*([to_text(comparison_table(found), width)] if len(found.trials) > 1 else []), said])


def describe_comparison(found: DeviceComparison) -> str:
    """Return what a step takes on the other devices, and from which batch on they are faster."""
    own, last = found.trials[0], found.trials[-1]
    said = f"with {found.after.placed.devices} instead: {_format_times(own)[1]}, {_format_change(found, own)}"
    if found.examples[0] != found.examples[1]:
        said += f" an example, as a step takes {found.examples[1]:,} in instead of {found.examples[0]:,}"
    if found.worth_from == own:
        return f"{said}: faster as it is{_compare_gpus(found, own)}"
    if found.unknown:
        return f"{said}: not faster as it is; other batches were not tried, since {found.unknown}"
    if found.worth_from is None:
        largest = format_count(last.factor * found.examples[0], "example")
        return f"{said}: not faster, nor with any batch up to {largest} ({_format_change(found, last)})"
    least, batch = found.worth_from, found.worth_from.factor * found.examples[0]
    times = " against ".join(reversed(_format_times(least)))
    return f"{said}: not faster with this batch, but from one of {batch:,} on (found by doubling it: {times})"


def _compare_gpus(found: DeviceComparison, trial: DevicesTrial) -> str:
    """Return how many times as fast a step is with how many times the GPUs, and whether its error is larger."""
    change, error = found.change(trial), found.find_change_error(trial)
    before, after = (
        sum(device.type == "GPU" for device in side.placed.devices) for side in (found.before, found.after)
    )
    said = f", {1 / (1 + change):.2f} times with {after / before:g} times the GPUs" if 0 < before < after else ""
    return f"{said}, but by less than the error" if -change < error else said


def _format_times(trial: DevicesTrial) -> tuple[str, str]:
    return format_uncertain(trial.before, trial.errors[0]), format_uncertain(trial.after, trial.errors[1])


def _format_change(found: DeviceComparison, trial: DevicesTrial) -> str:
    return f"{found.change(trial):+.0%}{format_error(found.find_change_error(trial))}"


def comparison_table(found: DeviceComparison) -> Table:
    """Return the step on both machines with each batch that was tried."""

    def write_row(one: DevicesTrial) -> tuple[str, ...]:
        batches = [f"{one.factor * count:,}" for count in found.examples]
        times = _format_times(one)
        return (batches[0], times[0], batches[1], times[1], _format_change(found, one))

    heads = ("examples", str(found.before.placed.devices), "examples", str(found.after.placed.devices), "an example")
    return Table(tuple(Column(head, "right", flexible=False) for head in heads), tuple(map(write_row, found.trials)))
