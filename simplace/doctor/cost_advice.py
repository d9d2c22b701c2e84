"""Advice on findings about what a step costs: work that is far from what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplace.doctor.advice_record import Advice
from simplace.explain.copy_findings import HostRoundTrip, VariablesFar
from simplace.explain.finding import Finding
from simplace.explain.finding_lines import state_elsewhere, state_far, state_gather
from simplace.explain.gradient_findings import GradientsElsewhere, UpdatesElsewhere
from simplace.explain.sparse_findings import SparseGather

COST_TITLES: dict[type[Finding], str] = {
    GradientsElsewhere: "Gradients are computed elsewhere than the layers",
    UpdatesElsewhere: "Updates are computed elsewhere than the variables",
    VariablesFar: "A layer computes far from its variables",
    SparseGather: "Replicas gather rows of gradients that are larger than the variable",
    HostRoundTrip: "Ops between GPU ops run on the CPU, as requested",
}

_UPDATE_THERE = "compute each update under `with tf.device(variable.device)`"


def _gradients_elsewhere(finding: GradientsElsewhere) -> Advice:
    updates = f"; and {_UPDATE_THERE}" if finding.updates else ""
    return Advice(
        f"{state_elsewhere(finding)}.",
        "A tape adds the ops of a gradient where it is asked for it: they ask for the device of the scope around "
        "tape.gradient, not for that of the forward ops.",
        f"In a tf.function, take tf.gradients(loss, variables), which colocates each gradient with its forward op{updates}.",
    )


def _updates_elsewhere(finding: UpdatesElsewhere) -> Advice:
    return Advice(
        f"{state_elsewhere(finding)}.",
        "Only the assignment itself runs where its variable is; the ops that compute what is assigned ask for the "
        "device of the scope around them, and an optimizer's for none.",
        f"{_UPDATE_THERE[0].upper()}{_UPDATE_THERE[1:]}; or apply the variables of each device under a scope of its own.",
    )


def _variables_far(finding: VariablesFar) -> Advice:
    return Advice(
        f"{state_far(finding)}.",
        "A variable stays on the device that it was made on; an op elsewhere that reads it has the whole of it copied, "
        "each time.",
        f"Make the variables under tf.device({finding.device!r}), or call the layer under tf.device({finding.home!r}). "
        "tf.nn.embedding_lookup on a tf.Variable looks rows up where the variable is, and copies these alone.",
    )


def _sparse_gather(finding: SparseGather) -> Advice:
    return Advice(
        f"{state_gather(finding)}.",
        "The gradient of a lookup has a row for each index, however often an index is repeated (IndexedSlices), and "
        "strategies gather all rows of all replicas.",
        "Hand a dense tensor over, tf.convert_to_tensor(gradient), or sum up the rows of equal indices first.",
    )


def _host_round_trip(finding: HostRoundTrip) -> Advice:
    return Advice(
        f"{finding.ops} on {finding.device} between ops on GPUs: every tensor travels there and back.",
        "The program requests the CPU for them.",
        "Take them out of that scope if they have a GPU kernel, or move them before or after the GPU part.",
    )


COST_ADVICE: dict[type[Finding], Callable[[Any], Advice]] = {
    GradientsElsewhere: _gradients_elsewhere,
    UpdatesElsewhere: _updates_elsewhere,
    VariablesFar: _variables_far,
    SparseGather: _sparse_gather,
    HostRoundTrip: _host_round_trip,
}
