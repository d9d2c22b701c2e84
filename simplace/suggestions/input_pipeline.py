"""What the input of a step takes beside it: the map functions of its dataset, as tf.data runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import Kind
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.graph.op_kinds import CALLS_OF_PYTHON
from simplace.placement.placement import Placement
from simplace.program.program import Caller
from simplace.result import Result

_SEQUENTIAL = "MapDataset"
_PARALLEL = ("ParallelMapDataset", "ParallelMapDatasetV2")
_ONCE = ("generator init function", "generator finalize function")  # in an epoch
_BATCHES = ("BatchDataset", "PaddedBatchDataset", "ParallelBatchDataset", "MapAndBatchDataset")


@dataclass(frozen=True)
class MapTime:
    """Record of a map function of a dataset: `calls` of it a step, the nanoseconds of one, and those of all for a step.

    `at` is the line of the `map`, `errors` how far off the times are for each kind of error, as shares.
    """

    name: str
    at: str
    calls: int
    call_time: int
    nanoseconds: int
    is_parallel: bool
    errors: Mapping[Kind, float]


@dataclass(frozen=True)
class UntimedInput:
    """Record of a function of a dataset that calls Python, whose time is not known: `calls` of it a step.

    `role` is what the function is for, such as "map function", `at` the line that gives it to the dataset.
    """

    role: str
    at: str
    calls: int


def find_slowest_map(result: Result, examples: int, options: StepOptions) -> MapTime | None:
    """Return the map function that takes longest for a step of so many examples; None where none is known.

    TensorFlow prepares elements while a step runs, whether `prefetch` is there or not (`inject_prefetch.cc` of
    core/grappler/optimizers/data), and calls functions without state in parallel, asked or not
    (`map_parallelization.cc`); what remains is a function with state, such as random numbers, on one thread.
    """
    return max(_list_maps(result, examples, options), key=lambda one: one.nanoseconds, default=None)


def find_untimed_input(result: Result, examples: int) -> UntimedInput | None:
    """Return the dataset's function that calls Python most often for a step of so many examples; None for none."""
    found = []
    for placed in result.programs:
        caller = placed.placement.program.caller
        if caller is None or caller.role in _ONCE or not CALLS_OF_PYTHON & set(placed.placement.graph.ops):
            continue
        found.append(UntimedInput(caller.role, caller.at, _count_calls(result, caller, examples)))
    return max(found, key=lambda one: one.calls, default=None)


def _list_maps(result: Result, examples: int, options: StepOptions) -> Iterator[MapTime]:
    of_keras = {one.placement.program.at for one in result.programs if one.placement.program.role}
    for placed in result.programs:
        caller = placed.placement.program.caller
        if caller is None or caller.op not in (_SEQUENTIAL, *_PARALLEL) or placed.placement.refusal is not None:
            continue
        if caller.at in of_keras:  # of the arrays that Keras cuts into batches, where its `fit` is called
            continue
        try:
            schedule = Schedule.of(placed.placement, options)
        except SimplaceError:  # an argument that no one knows
            continue
        if not CALLS_OF_PYTHON & set(placed.placement.graph.ops):
            yield _measure_map(result, schedule, caller, examples)


def _measure_map(result: Result, schedule: Schedule, caller: Caller, examples: int) -> MapTime:
    calls = _count_calls(result, caller, examples)
    is_parallel = caller.op != _SEQUENTIAL or not _has_state(schedule.placement)
    one = schedule.trace.makespan
    work = sum(span.duration for span in schedule.trace.spans)
    whole = calls * (max(work, one) // schedule.threads.cores if is_parallel else one)
    return MapTime(schedule.placement.program.name, caller.at, calls, one, whole, is_parallel, schedule.errors)


def _has_state(placement: Placement) -> bool:
    """Return whether TensorFlow calls a function for one element at a time (`IsFunctionStateful`)."""
    program = placement.program
    function = program.graph.library.get(program.function or "")
    nodes = () if function is None else function.nodes
    return any(node.op != "Assert" and placement.placed.is_stateful(node.op) for node in nodes)


def _count_calls(result: Result, caller: Caller, examples: int) -> int:
    """Return how often a step of so many examples needs the function: once for each batch that it is given whole."""
    return examples if _is_batched_later(result, caller) else 1


def _is_batched_later(result: Result, caller: Caller) -> bool:
    """Return whether the program makes batches of what the function returns: after it, as far as its order tells.

    Of an op in another function, such as a generator's, the line counts.
    """
    ops = [each.op for each in result.eager.ops] if result.eager is not None else []
    made = [i for i, op in enumerate(ops) if op.at == caller.at and (caller.program or op.op == caller.op)]
    return bool(made) and any(op.op.removesuffix("V2") in _BATCHES for op in ops[made[0] :])
