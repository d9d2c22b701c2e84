"""Turn findings into what happened, why, and what to write instead: all of the doctor's sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simplace.doctor import silent_failures as found
from simplace.doctor.advice_record import Advice
from simplace.doctor.cost_advice import COST_ADVICE, COST_TITLES
from simplace.explain import failures as fails
from simplace.explain import findings as about
from simplace.explain.eager_findings import EagerCopiesEachTime, state_copies
from simplace.explain.finding import Failure, Finding, state_caught
from simplace.explain.finding_lines import state_idle

_MIB = 1 << 20


_NAMED = 3  # lines
TITLES: dict[type[Finding], str] = {
    found.ProgramRefused: "TensorFlow refuses to place the program",
    fails.XlaOtherDevice: "XLA compiles a function that uses a variable or table of another device",
    fails.NotCompilable: "XLA has no kernel for an op of a function that it compiles",
    fails.RefusedOp: "TensorFlow finds no device for an op outside of functions",
    fails.NoPartner: "A collective waits for members that are not there",
    fails.XlaRefuses: "XLA refuses to compile a function",
    fails.NotCopied: "A tensor cannot be copied to a GPU",
    fails.RefusedSetting: "TensorFlow refuses a setting, which ends the program",
    fails.UnequalGrowth: "Memory growth is set for some of the GPUs",
    fails.OutOfMemory: "A step does not fit in the memory of a GPU",
    found.LateSetting: "TensorFlow refused a setting, and the program went on",
    found.LateLogFlag: "The placement log was switched on too late",
    found.HiddenLog: "The log level hides the placement log",
    found.BakedDevice: "A saved graph requests a device that is not there",
    about.NoSuchDevice: "A request names a device that is not there",
    about.NoKernel: "A request was not met: no kernel for that device",
    about.RequestOverruled: "A request was overruled by that of a colocated node",
    found.UnknownColocation: "A node is colocated with one that does not exist",
    found.LostScope: "Python dropped a tf.device scope",
    found.LayerOutsideScope: "A layer is called outside of the scope that it was built in",
    found.DatasetScope: "A tf.device scope does not reach a dataset's function",
    found.Retraced: "A function is traced again and again",
    found.EagerLoop: "A loop runs op by op, outside of functions",
    about.DetourOverCpu: "Ops between GPU ops run on the CPU",
    **COST_TITLES,
    EagerCopiesEachTime: "Eager ops have inputs copied again and again",
    about.HostMemory: "Results of GPU ops are in host memory",
    about.IdleGpu: "A GPU is idle",
}


def advise_on_finding(finding: Finding) -> Advice:
    """Return the text of one finding."""
    said = _SENTENCES[type(finding)](finding)
    if caught := state_caught(finding.caught_at):
        is_unseen = isinstance(finding, Failure) and finding.is_foretold and not finding.was_raised
        then = "what follows was not run, since the call was computed" if is_unseen else "the program goes on"
        said = replace(said, what=f"{said.what} The error is {caught}; {then}.")
    return replace(said, error=finding.error) if isinstance(finding, Failure) else said


def _xla_other_device(finding: fails.XlaOtherDevice) -> Advice:
    made = f", made at {finding.made_at}," if finding.made_at else ""
    what = f"XLA compiles {finding.call} for {finding.home}; {fails.count_resources(finding)} that it uses"
    why = "A call that XLA compiles takes all variables and tables from its own device; nothing is copied to it."
    if finding.are_variables:
        instead = (
            f"Call it under tf.device({finding.device!r}), make the variable on {finding.home}, or pass its value "
            "as an argument; or turn jit_compile off (in Keras: model.compile(..., jit_compile=False))."
        )
    else:
        instead = (
            "Look up before the call, such as in Dataset.map, and pass the result; or turn jit_compile off (in "
            "Keras: model.compile(..., jit_compile=False))."
        )
    verb = "is" if len(finding.nodes) == 1 else "are"
    return Advice(f"{what}{made} {verb} on {finding.device}: the call fails.", why, instead)


def _not_compilable(finding: fails.NotCompilable) -> Advice:
    return Advice(
        f"XLA has no kernel for {finding.op}, which {finding.call} needs: TensorFlow refuses to run that call.",
        "jit_compile=True compiles a function whole; no op of it can run outside of XLA. Keras turns it on by itself "
        "where it sees a GPU.",
        "Move the op out of the function, or turn jit_compile off (in Keras: model.compile(..., jit_compile=False)).",
    )


def _refused_op(finding: fails.RefusedOp) -> Advice:
    what = f"TensorFlow finds no device for {finding.op or 'a constant'}, which is an error where it runs."
    if finding.elsewhere:
        both = (finding.home, finding.elsewhere)
        return Advice(
            what,
            f"An op goes where the resource is that it works on, and the resources that this one works on are on "
            f"{both[0]} and {both[1]}. TensorFlow copies no variable, table or dataset from one to the other.",
            f"Create all of them on one device: under tf.device({min(both)!r}).",
        )
    if finding.home:
        return Advice(
            what,
            f"An op goes where the resource is that it works on, here a variable or a random generator's state on "
            f"{finding.home}, whatever scope is around it and with soft placement, too; it has no kernel there.",
            "Create the variable or the tf.random.Generator under tf.device('CPU:0'), or use another op; "
            f"`simplace kernels {finding.op}` lists what there is.",
        )
    return Advice(
        what,
        "Soft placement is off, so a device that is not there, or has no kernel for the op, is an error.",
        "Correct the device of the scope, take the op out of it, or turn soft placement on: "
        "tf.config.set_soft_device_placement(True).",
    )


def _no_partner(finding: fails.NoPartner) -> Advice:
    few = f"{finding.count} of them {'is' if finding.count == 1 else 'are'} in {finding.program}"
    lack = few if finding.count < finding.size else "one of them starts when another has ended"
    return Advice(
        f"{finding.op} waits for {finding.size} members of its group, and {lack}: the call does not end.",
        "A collective ends when all members with the same group key and instance key have started; TensorFlow does not "
        "check that they exist, and waits without an error. Within a tf.function, stateful ops run one after another.",
        "Run it on every device of the group in the same call, with equal keys, at once (CollectiveReduce instead of "
        "CollectiveReduceV2, or by a tf.distribute strategy), and not in a branch that only one replica takes.",
    )


def _xla_refuses(finding: fails.XlaRefuses) -> Advice:
    return Advice(
        f"XLA refuses to compile {finding.call}: the call fails.",
        "XLA needs every shape before it runs: a loop variable keeps its shape, and a size that is computed from data "
        "cannot be that of a tensor everywhere.",
        "Give the tensor a fixed size (pad it, or tf.TensorArray with a known size), or turn jit_compile off (in "
        "Keras: model.compile(..., jit_compile=False)).",
    )


def _not_copied(finding: fails.NotCopied) -> Advice:
    content = finding.content[0].upper() + finding.content[1:]
    return Advice(
        f"{content} would have to be copied to {finding.device}, and TensorFlow cannot copy it there.",
        "Strings, datasets and lists of strings are objects in host memory. An op that only forwards a tensor (a loop, "
        "a branch, an identity) runs on the GPU as others do, and its input is copied there first; so are all "
        "arguments of a function that XLA compiles for it.",
        "Call the function under tf.device('CPU:0'), or make the dataset or list where it is used, inside of the "
        "branch or loop; leave strings and datasets out of what XLA compiles.",
    )


_LATE = "cannot be modified after"  # as context.py has it


def _refused_setting(finding: fails.RefusedSetting) -> Advice:
    return Advice(
        f"TensorFlow refuses to set {finding.setting}, and the program ends there.",
        *_explain_refusal(finding.error, finding.started),
    )


def _late_setting(finding: found.LateSetting) -> Advice:
    return Advice(
        f"TensorFlow refused to set {finding.setting}: {finding.error}. The program handles the error and goes on "
        "without the setting.",
        *_explain_refusal(finding.error, finding.started),
    )


def _explain_refusal(error: str, started: str) -> tuple[str, str]:
    """Return why a setting is refused, and what to write instead."""
    if _LATE in error:
        at = f" (here at {started})" if started else ""
        return (
            "TensorFlow reads its configuration once, when it starts: with the first op or variable, the first list of "
            f"logical devices, and a strategy{at}.",
            "Move the setting above all that, right after `import tensorflow as tf`; tf.config.list_physical_devices "
            "may come before it.",
        )
    return (
        "This setting contradicts another one, or the kind of device.",
        "Set memory growth for whole GPUs, and for split ones a memory_limit for each part instead; CPUs have neither.",
    )


def _unequal_growth(finding: fails.UnequalGrowth) -> Advice:
    at = f" at {finding.set_at}" if finding.set_at else ""
    return Advice(
        f"Memory growth is set{at} for some of the visible GPUs and not for all: TensorFlow does not start.",
        "One allocator option counts for all GPUs of a process; it is read with the first op.",
        "Set it for each: `for gpu in tf.config.list_physical_devices('GPU'): "
        "tf.config.experimental.set_memory_growth(gpu, True)`; or hide the others with tf.config.set_visible_devices.",
    )


def _out_of_memory(finding: fails.OutOfMemory) -> Advice:
    smaller = "Make the batch smaller"
    if finding.batch and finding.largest_batch:
        smaller = f"Call it with at most {finding.largest_batch:,} examples instead of {finding.batch:,}"
    return Advice(
        f"A step needs {finding.needed / _MIB:,.1f} MiB on {finding.device}, "
        f"which has {finding.limit / _MIB:,.1f} MiB: there is no room for the output of {finding.nodes[0]}.",
        "An output stays in memory until its last consumer, often an op of the gradient, is done; variables and those "
        "of an optimizer stay all the time.",
        f"{smaller}; or give the logical GPU more memory, use mixed precision, or move layers to another GPU. "
        "`simplace memory` lists what holds the memory.",
    )


def _late_log_flag(_: found.LateLogFlag) -> Advice:
    return Advice(
        "tf.debugging.set_log_device_placement(True) comes after TensorFlow has started, so functions log nothing.",
        "The first op, and tf.config.list_logical_devices too, create TensorFlow's context, which reads the flag once.",
        "Make it the first line after `import tensorflow as tf`; tf.config.list_physical_devices may come before it.",
    )


def _hidden_log(finding: found.HiddenLog) -> Advice:
    where = "The environment sets" if finding.inherited else "The program sets"
    return Advice(
        f"{where} TF_CPP_MIN_LOG_LEVEL={finding.log_level}, so no line of the placement log reaches stderr.",
        "The log is of level 0 (INFO); 1 and above hide it, and only a function's first copy on stdout is left.",
        "Unset TF_CPP_MIN_LOG_LEVEL, or set it to 0, while you look at placements.",
    )


def _baked_device(finding: found.BakedDevice) -> Advice:
    effect = "TensorFlow refuses the graph" if finding.is_refused else "soft placement puts them elsewhere"
    return Advice(
        f"{_count_nodes(finding.nodes)} request{_verb_ending(finding.nodes)} {finding.request} in the saved "
        f"file; there are only {finding.there}, and {effect}.",
        "tf.device scopes around the code that was saved are written into the nodes of the graph.",
        "Save it without device scopes, or load it with clear_devices=True (tf.compat.v1.train.import_meta_graph), or "
        "turn soft placement on.",
    )


def _no_such_device(finding: about.NoSuchDevice) -> Advice:
    ran = f"run{_verb_ending(finding.nodes)} on {finding.got}" if finding.got else "what is in it runs elsewhere"
    who = (
        f"{_count_nodes(finding.nodes)} request{_verb_ending(finding.nodes)}"
        if finding.nodes
        else "A tf.device scope requests"
    )
    return Advice(
        f"{who} {finding.request} and {ran}, since there are only {finding.there}.",
        "Soft placement, on by default, takes another device without a warning, whatever the index or type.",
        "Correct the name, loop over tf.config.list_logical_devices('GPU'), or call "
        "tf.config.set_soft_device_placement(False) to get an error.",
    )


def _no_kernel(finding: about.NoKernel) -> Advice:
    other = f"Use {finding.instead}, for which there is a kernel, or" if finding.instead else "Use another op, or"
    return Advice(
        f"{_count_nodes(finding.nodes)} request{_verb_ending(finding.nodes)} {finding.request} and "
        f"run{_verb_ending(finding.nodes)} on {finding.got}.",
        f"{finding.op} has no kernel there for its data types, and soft placement moves it without a warning.",
        f"{other} take it out of the scope, so that the copies show in the code; "
        f"`simplace kernels {finding.op}` lists what there is.",
    )


def _request_overruled(finding: about.RequestOverruled) -> Advice:
    instead = "read it once (tf.identity) in the scope."
    if finding.assigns:
        instead = "compute in the scope what is assigned, and assign it outside: an update runs where its variable is."
    return Advice(
        f"{_count_nodes(finding.nodes)} request{_verb_ending(finding.nodes)} {finding.request} and "
        f"run{_verb_ending(finding.nodes)} on {finding.got}.",
        finding.because,
        f"Create the variable under the scope that its ops shall run in, or {instead}",
    )


def _unknown_colocation(finding: found.UnknownColocation) -> Advice:
    return Advice(
        f"{_count_nodes(finding.nodes)} {'are' if len(finding.nodes) > 1 else 'is'} to be colocated with "
        f"{finding.wanted!r}, and there is no node of that name.",
        "A name in loc:@ is only a label: nodes that share it are colocated, and TensorFlow does not check that a node "
        "has it.",
        "Correct the name, or give the op itself to colocate_with; after an import, the name needs the scope's prefix.",
    )


def _lost_scope(finding: found.LostScope) -> Advice:
    return Advice(
        f"{_count_nodes(finding.nodes)} {'were' if len(finding.nodes) > 1 else 'was'} made under {finding.request}, "
        f"but {finding.got} is what the graph requests.",
        f"colocate_with (which assigning to a reference variable does too) gives an op the device of "
        f"{finding.leader or 'its leader'!r}, and drops the tf.device scope before anything is placed.",
        "Leave colocate_with out, or use resource variables (use_resource=True), whose reads can be placed.",
    )


def _layer_outside_scope(finding: found.LayerOutsideScope) -> Advice:
    called = f" at {finding.called_at}" if finding.called_at else ""
    return Advice(
        f"The layer {finding.layer!r} was built under {finding.request}, and is called{called} outside of that scope: "
        "its variables are there, its computation is not.",
        "A tf.device scope holds for the ops made inside it: building a layer makes variables, calling it makes the "
        "matrix products. A functional model calls its layers anew, outside of the scope.",
        "Call the layer, or the whole model, under the scope; in a functional model, put tf.device into the layer's "
        "call().",
    )


def _dataset_scope(finding: found.DatasetScope) -> Advice:
    return Advice(
        f"The function given to {finding.transformation} ({finding.ops}) does not run on {finding.request}, though it "
        "is given inside that scope.",
        "tf.data calls functions on the CPU; a scope around the transformation is that of the dataset op, not of the "
        "ops in the function.",
        "Write `with tf.device(...)` inside the function, or do the work after the dataset, in the training step.",
    )


def _retraced(finding: found.Retraced) -> Advice:
    name, compiled = finding.program, " and compiled by XLA" if finding.is_compiled else ""
    said = f"{name} was traced{compiled} {finding.times:,} times"
    if finding.shapes == 1:
        return Advice(
            f"{said}, for tensors of the same shapes.",
            "A tf.function is traced again for each new value of an argument that is not a tensor, such as a number or "
            "an object, and for each tf.function that is made anew.",
            "Make and compile the model once, outside of the loop: each compile() makes new functions."
            if finding.is_of_keras
            else "Pass what varies as a tensor (tf.constant), and make the tf.function once, outside of the loop.",
        )
    why = f"A tf.function is traced{compiled} again for each new shape, and each new value that is not a tensor."
    if finding.is_compiled:
        return Advice(
            f"{said}, for {finding.shapes:,} shapes of its tensors.",
            f"{why} XLA needs to know all shapes.",
            "Pad to a few shapes, drop what does not fill a batch (drop_remainder=True), or do without jit_compile.",
        )
    if finding.is_of_keras:
        return Advice(
            f"{said}, for {finding.shapes:,} shapes of its tensors.",
            why,
            "Pad what varies to a few lengths (padded_batch, pad_sequences), and drop what does not fill a batch "
            "(drop_remainder=True).",
        )
    return Advice(
        f"{said}, for {finding.shapes:,} shapes of its tensors.",
        why,
        "Give tf.function an input_signature with None for what varies, or reduce_retracing=True; pass numbers as "
        "tensors.",
    )


def _eager_loop(finding: found.EagerLoop) -> Advice:
    named = ", ".join(finding.lines[:_NAMED])
    more = f" and {len(finding.lines) - _NAMED} more lines" if len(finding.lines) > _NAMED else ""
    return Advice(
        f"{finding.ops:,} ops of {named}{more} ran outside of functions {finding.runs:,} times in all, up to "
        f"{finding.times:,} times each.",
        "Python creates, places and launches each of them on its own, which takes longer than a small op does on a "
        "GPU, so the GPU waits in between.",
        "Put what the loop repeats, or a function that it calls, under @tf.function; then `simplace schedule` shows "
        "where its step's time goes.",
    )


_INSTEAD_OF_DETOUR = {
    "kernel": "Choose a data type or an op that has a GPU kernel, or move the op before or after the GPU part.",
    "colocation": "Make what it is colocated with, such as a variable, on the GPU, if it fits there: the op follows. "
    "A lookup in a table that is too large is best left where the table is: only the rows are copied.",
    "python": "Write it with TensorFlow's ops, which have GPU kernels, or do it in the dataset, beside the step.",
}


def _detour_over_cpu(finding: about.DetourOverCpu) -> Advice:
    return Advice(
        f"{finding.ops} on {finding.device} between ops on GPUs: every tensor is copied there and back.",
        finding.because,
        _INSTEAD_OF_DETOUR[finding.cause],
    )


def _eager_copies(finding: EagerCopiesEachTime) -> Advice:
    return Advice(
        f"{state_copies(finding, finding.op)}.",
        "An eager op copies each input that is on another device before it can run; TensorFlow keeps the copy with the "
        "tensor, but in a loop each iteration has a new tensor.",
        f"Make the tensor where it is used (under tf.device({finding.device!r}), or without a scope), or put the "
        "loop's body into one tf.function.",
    )


def _host_memory(finding: about.HostMemory) -> Advice:
    return Advice(
        f"{finding.ops} on a GPU keep{_verb_ending(finding.nodes)} int32 results in host memory.",
        "The GPU's kernels for int32 work in host memory, because such values mostly control the program (shapes, "
        "sizes, counters): the op's device is a GPU, its output bytes are in host memory.",
        "Nothing, if these are shapes or counters; for data, use int64 or a float type, which are kept in GPU memory.",
    )


def _idle_gpu(finding: about.IdleGpu) -> Advice:
    if finding.requests:
        return Advice(
            f"{state_idle(finding)}.",
            "Each of them was moved, or colocated with a node elsewhere.",
            "See the findings above, or `simplace explain TARGET NODE` for one of them.",
        )
    if finding.ops:
        return Advice(
            f"{state_idle(finding)}.",
            "A tf.device scope that names the CPU holds for all ops in it, whatever kernels a GPU has.",
            "Leave what the GPU is to compute out of that scope, with the variables that it uses.",
        )
    instead = "Use tf.distribute.MirroredStrategy, or `with tf.device` for a part of the model on each GPU."
    if any("/" in device for device in finding.devices):
        instead = (
            "Start a task that only keeps variables, or the chief, without GPUs (CUDA_VISIBLE_DEVICES=''); on a worker "
            "name each of its GPUs in a tf.device."
        )
    return Advice(
        f"{state_idle(finding).partition(', and ')[0]}.",
        "TensorFlow places ops that request no device on the first GPU; it does not spread work over GPUs by itself.",
        instead,
    )


def _program_refused(finding: found.ProgramRefused) -> Advice:
    return Advice(
        f"TensorFlow refuses to place {finding.program}: {finding.message}",
        finding.because or "With soft placement off a request that cannot be met is an error.",
        "Change one of the requests, or turn soft placement on.",
    )


def _count_nodes(nodes: tuple[str, ...]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes[:3])}{', …' * (len(nodes) > 3)})"


def _verb_ending(nodes: tuple[str, ...]) -> str:
    return "" if len(nodes) > 1 else "s"


_SENTENCES: dict[type[Finding], Callable[[Any], Advice]] = {
    found.ProgramRefused: _program_refused,
    fails.XlaOtherDevice: _xla_other_device,
    fails.NotCompilable: _not_compilable,
    fails.RefusedOp: _refused_op,
    fails.NoPartner: _no_partner,
    fails.XlaRefuses: _xla_refuses,
    fails.NotCopied: _not_copied,
    fails.RefusedSetting: _refused_setting,
    fails.UnequalGrowth: _unequal_growth,
    fails.OutOfMemory: _out_of_memory,
    found.LateSetting: _late_setting,
    found.LateLogFlag: _late_log_flag,
    found.HiddenLog: _hidden_log,
    found.BakedDevice: _baked_device,
    about.NoSuchDevice: _no_such_device,
    about.NoKernel: _no_kernel,
    about.RequestOverruled: _request_overruled,
    found.UnknownColocation: _unknown_colocation,
    found.LostScope: _lost_scope,
    found.LayerOutsideScope: _layer_outside_scope,
    found.DatasetScope: _dataset_scope,
    about.DetourOverCpu: _detour_over_cpu,
    **COST_ADVICE,
    found.Retraced: _retraced,
    found.EagerLoop: _eager_loop,
    EagerCopiesEachTime: _eager_copies,
    about.HostMemory: _host_memory,
    about.IdleGpu: _idle_gpu,
}
