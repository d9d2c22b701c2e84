"""Find other settings of TensorFlow's threads for a step that runs on a CPU alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from simplace.analysis.schedule import Schedule
from simplace.executor.step_options import StepOptions
from simplace.suggestions.changes import ThreadSettings
from simplace.suggestions.edits import Edit, Insertion, replace_node
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.source_file import SourceFile

# What a step on several threads takes longer than simulated: after a short spin (WorkerLoop of Eigen's
# NonBlockingThreadPool.h) threads sleep between steps, and then their cores do, too. 0.1 to 0.25 ms were measured on a
# virtual machine of two cores, with 0.5 to 5 ms a step (benchmarks/suggested_gains.py).
WAKE_NS, WAKE_ERROR_NS = 175_000, 75_000

_INTER, _INTRA = "set_inter_op_parallelism_threads", "set_intra_op_parallelism_threads"


def read_threads(files: Sequence[SourceFile], options: StepOptions) -> StepOptions:
    """Return the options with the settings of threads that the program makes, where the user gave no others."""
    inter, intra = (next((number for _, _, number in _find_settings(files, name)), 0) for name in (_INTER, _INTRA))
    return replace(options, inter_op=options.inter_op or inter, intra_op=options.intra_op or intra)


def works_on_threads(schedule: Schedule) -> bool:
    """Return whether a step has work for several inter-op threads: one of them at least has to be woken.

    What it takes to wake those of the intra-op pool is in the time to fork a kernel.
    """
    trace = schedule.trace
    threads = {i for i, track in enumerate(trace.tracks) if track.kind == "worker"}
    return len({span.track for span in trace.spans if span.duration and span.track in threads}) > 1


def time_waking(before: Schedule, after: Schedule) -> int:
    """Return the nanoseconds that a step with other threads waits for them to wake, if it did not wait for any."""
    is_known = bool(after.estimated.model.overheads.parked_s)  # and simulated
    return WAKE_NS if works_on_threads(after) and not works_on_threads(before) and not is_known else 0


def time_unsure_waking(before: Schedule, after: Schedule) -> int:
    """Return how far off, in nanoseconds, the waking of threads makes the difference of two steps.

    Where only the step before waits for inter-op threads, that is not counted in it, and so is as large as all of it.
    """
    return WAKE_NS if works_on_threads(before) and not works_on_threads(after) else WAKE_ERROR_NS


def find_thread_settings(evidence: Evidence) -> Iterator[tuple[ThreadSettings, int]]:
    """Find the numbers of threads, with the nanoseconds of a step, that take less than the present ones.

    Recorded costs are of kernels on so many intra-op threads, and do not tell what it takes to fork them.
    """
    placement, options = evidence.placed.placement, evidence.schedule.execution.options
    intra_op = {options.intra_op} if evidence.has_recorded_costs else {0, 1}
    used = evidence.list_devices(placement.decisions)
    if placement.program.kind != "function" or any("GPU" in device for device in used):
        return
    for inter in (0, 1):
        for intra in sorted(intra_op):
            chosen = replace(options, inter_op=inter, intra_op=intra)
            pools = (chosen.inter_op_size, chosen.intra_op_size)
            edits = tuple(_write_settings(evidence, options, chosen))
            if edits and pools != (options.inter_op_size, options.intra_op_size):
                after = Schedule.of(placement, chosen)
                nanoseconds = after.trace.makespan + time_waking(evidence.schedule, after)
                at = f"{edits[0].file}:{edits[0].line}"
                yield ThreadSettings(edits=edits, at=at, inter_op=inter, intra_op=intra), nanoseconds


def _write_settings(evidence: Evidence, before: StepOptions, after: StepOptions) -> Iterator[Edit]:
    for name, old, new in ((_INTER, before.inter_op, after.inter_op), (_INTRA, before.intra_op, after.intra_op)):
        if old == new:
            continue
        settings = list(_find_settings(evidence.files, name))
        for source, number, _ in settings:
            yield replace_node(source, number, str(new))
        source = evidence.files[0]
        module = source.find_module("tensorflow")
        statement = source.find_import(module)
        if not settings and statement is not None:
            line = statement.end_lineno or statement.lineno
            yield Insertion(source.name, line, f"{module}.config.threading.{name}({new})")


def _find_settings(files: Sequence[SourceFile], name: str) -> Iterator[tuple[SourceFile, ast.expr, int]]:
    """Find the calls that set a number of threads, with the expression of that and its value."""
    for source in files:
        for call in source.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == name and len(call.args) == 1:
                given = call.args[0]
                if isinstance(given, ast.Constant) and type(given.value) is int and given.value >= 0:
                    yield source, given, given.value
