"""Advice on findings about what a step costs: work far from what it needs, and devices that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplace.doctor.advice_record import Advice
from simplace.explain.copy_findings import HostRoundTrip, VariablesFar
from simplace.explain.finding import Finding
from simplace.explain.finding_lines import (
    state_elsewhere,
    state_far,
    state_gather,
    state_slots,
    state_unused,
    state_waiting,
)
from simplace.explain.gradient_findings import GradientsElsewhere, UpdatesElsewhere
from simplace.explain.slot_findings import SlotsElsewhere
from simplace.explain.sparse_findings import SparseGather
from simplace.explain.waiting_findings import Awaited, GpuWaits, LaunchBoundLoop, SerialReplicas, UnusedWork

COST_TITLES: dict[type[Finding], str] = {
    GradientsElsewhere: "Gradients are computed elsewhere than the layers",
    UpdatesElsewhere: "Updates are computed elsewhere than the variables",
    SlotsElsewhere: "An optimizer keeps its state elsewhere than the variables",
    VariablesFar: "A layer runs on another device than its variables",
    SparseGather: "Replicas gather rows of gradients that are larger than the variable",
    HostRoundTrip: "Ops between GPU ops run on the CPU, as requested",
    SerialReplicas: "Replicas run one after another",
    LaunchBoundLoop: "A loop launches kernels that are too small for a GPU",
    GpuWaits: "A GPU waits for longer than it computes",
    UnusedWork: "A function computes what nothing uses",
}

_UPDATE_THERE = "compute each update under `with tf.device(variable.device)`"


def _gradients_elsewhere(finding: GradientsElsewhere) -> Advice:
    updates = f"; and {_UPDATE_THERE}" if finding.updates else ""
    return Advice(
        f"{state_elsewhere(finding)}.",
        "A tape makes the ops of a gradient where tape.gradient is called: they request the device of the scope around "
        "that call, not that of the forward ops.",
        "In a tf.function, take tf.gradients(loss, variables), which colocates each gradient with its forward op"
        f"{updates}.",
    )


def _updates_elsewhere(finding: UpdatesElsewhere) -> Advice:
    return Advice(
        f"{state_elsewhere(finding)}.",
        "Only the assignment itself runs where its variable is; the ops that compute what is assigned request the "
        "device of the scope around them, and an optimizer's request none.",
        f"{_UPDATE_THERE[0].upper()}{_UPDATE_THERE[1:]}; or apply those of each device under a scope of its own.",
    )


def _slots_elsewhere(finding: SlotsElsewhere) -> Advice:
    return Advice(
        f"{state_slots(finding)}.",
        "An optimizer's slots are made where the optimizer is built, and the ops that compute with them request the "
        "device of the scope around them: gradients are copied there, and updates back.",
        f"Make the slots under tf.device({finding.home!r}), and {_UPDATE_THERE}; an optimizer of Keras needs "
        "both in its add_variable_from_reference and update_step, as `simplace suggest` writes them.",
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
        "Pass a dense tensor, tf.convert_to_tensor(gradient), or sum up the rows of equal indices first.",
    )


def _host_round_trip(finding: HostRoundTrip) -> Advice:
    what = f"{finding.ops} on {finding.device} between ops on GPUs: every tensor is copied there and back."
    if not finding.has_kernel:
        return Advice(
            what,
            "The program, or TensorFlow's own code, requests the CPU for them, and there is no kernel for GPUs.",
            "Move them before or after the GPU part.",
        )
    return Advice(
        what,
        "The program requests the CPU for them.",
        "Take them out of that scope, or move them before or after the GPU part.",
    )


def _serial_replicas(finding: SerialReplicas) -> Advice:
    if finding.bond == "variable":
        return Advice(
            f"{state_waiting(finding)}.",
            "Within a tf.function, what reads a variable waits for every op before it that updates the variable, on "
            "whatever device they are.",
            "Compute the gradients of all replicas first and update the variables after that, once, with their mean.",
        )
    if finding.bond == "stream":
        return Advice(
            f"{state_waiting(finding)}.",
            "A copy out of a GPU waits for all kernels that were launched there before it, whatever they compute.",
            f"Keep what {finding.devices[1]} reads on {finding.devices[1]}, or on the CPU: a variable for each "
            "replica, as tf.distribute.MirroredStrategy has it.",
        )
    return Advice(
        f"{state_waiting(finding)}.",
        "Ops of GPUs are launched by the host, in the order in which they become ready.",
        "Use larger batches, or XLA (jit_compile=True), so that fewer and longer kernels are launched.",
    )


def _launch_bound_loop(finding: LaunchBoundLoop) -> Advice:
    return Advice(
        f"{state_waiting(finding)}.",
        "A kernel takes a GPU some microseconds, however little it computes, and each iteration launches its own."
        if finding.is_busy
        else "Each iteration of a loop launches its kernels anew, which takes the host longer than they take the GPU.",
        "Compute all iterations at once where they are independent (tf.vectorized_map, a larger tensor); for a "
        "recurrent layer take one that cuDNN runs (no recurrent_dropout, the activations that it has by default); or "
        "compile the loop (jit_compile=True), or run it on the CPU.",
    )


def _unused_work(finding: UnusedWork) -> Advice:
    said = state_unused(finding)
    return Advice(
        f"{said[0].upper()}{said[1:]}.",
        "Of a function, TensorFlow runs what its results and its ops with side effects need.",
        "Return the results, or add them up in one that is returned, if they are meant to be computed or measured; "
        "else delete the lines.",
    )


_WHY: dict[Awaited, tuple[str, str]] = {
    "launches": (
        "The host launches each kernel, and its threads do the executor's bookkeeping for every op.",
        "Use a larger batch, fewer and larger ops, or XLA (jit_compile=True).",
    ),
    "copies": (
        "A kernel starts when what it reads has been copied to its device.",
        "Put what exchanges tensors on one device; `simplace show --table` lists all copies, and who reads them.",
    ),
    "collectives": (
        "A collective starts when its last member is ready, and ends on all members at once.",
        "Give all replicas equal work; a larger batch makes a step longer, and not its collectives.",
    ),
    "input": (
        "The step begins when the dataset has its next element.",
        "Call map functions with state, such as random numbers, for several elements at once: map with "
        "num_parallel_calls=tf.data.AUTOTUNE. TensorFlow does so for others, and prefetches, by itself.",
    ),
    "devices": (
        "What it computes depends on what another device computes before.",
        "Split the batch instead of the model (tf.distribute.MirroredStrategy), or feed a split model several small "
        "batches, so that its parts work on different ones at once.",
    ),
}


_FOR_CPU = (
    "What it computes depends on what {} computes before.",
    "Compute that on the GPU, if it has a kernel there: leave it, and the variables that it reads or updates, out of "
    "the tf.device scope that requests the CPU. `simplace explain` says of each node why it is where it is.",
)


def _gpu_waits(finding: GpuWaits) -> Advice:
    if finding.other.startswith("CPU"):
        why, instead = _FOR_CPU
        return Advice(f"{state_waiting(finding)}.", why.format(finding.other), instead)
    return Advice(f"{state_waiting(finding)}.", *_WHY[finding.cause])


COST_ADVICE: dict[type[Finding], Callable[[Any], Advice]] = {
    GradientsElsewhere: _gradients_elsewhere,
    UpdatesElsewhere: _updates_elsewhere,
    SlotsElsewhere: _slots_elsewhere,
    VariablesFar: _variables_far,
    SparseGather: _sparse_gather,
    HostRoundTrip: _host_round_trip,
    SerialReplicas: _serial_replicas,
    LaunchBoundLoop: _launch_bound_loop,
    GpuWaits: _gpu_waits,
    UnusedWork: _unused_work,
}
