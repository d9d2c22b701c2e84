"""What the input of a step takes beside it: the map functions of its dataset, as tf.data runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import Kind
from simplace.costs.chosen_model import costs_of_others
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.graph.op_kinds import CALLS_OF_PYTHON
from simplace.placement.placement import Placement
from simplace.program.program import Caller
from simplace.result import Result
from simplace.suggestions.step_feeds import find_feeds

_SEQUENTIAL = "MapDataset"
_PARALLEL = ("ParallelMapDataset", "ParallelMapDatasetV2")
_ONCE = ("generator init function", "generator finalize function")  # in an epoch


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


def find_slowest_map(result: Result, step: Schedule, examples: int, options: StepOptions) -> MapTime | None:
    """Return the map function of its dataset that takes longest for a step of so many examples; None for none known.

    TensorFlow prepares elements while a step runs, whether `prefetch` is there or not (`inject_prefetch.cc` of
    core/grappler/optimizers/data), and calls functions without state in parallel, asked or not
    (`map_parallelization.cc`); what remains is a function with state, such as random numbers, on one thread.
    """
    return max(_list_maps(result, step, examples, options), key=lambda one: one.nanoseconds, default=None)


def find_untimed_input(result: Result, step: Schedule, examples: int) -> UntimedInput | None:
    """Return the function of its dataset that calls Python most often for a step of so many examples; None for none."""
    found = []
    for placement, caller, calls in _list_functions(result, step, examples):
        if caller.role not in _ONCE and _calls_python(placement):
            found.append(UntimedInput(caller.role, caller.at, calls))
    return max(found, key=lambda one: one.calls, default=None)


def _list_maps(result: Result, step: Schedule, examples: int, options: StepOptions) -> Iterator[MapTime]:
    known = costs_of_others(options.costs, options.gpu, options.memory_fraction, options.cpu)
    options = replace(options, costs=known)
    of_keras = {one.placement.program.at for one in result.programs if one.placement.program.role}
    for placement, caller, calls in _list_functions(result, step, examples):
        if caller.op not in (_SEQUENTIAL, *_PARALLEL) or placement.refusal is not None:
            continue
        if caller.at in of_keras:  # of the arrays that Keras cuts into batches, where its `fit` is called
            continue
        try:
            schedule = Schedule.of(placement, options)
        except SimplaceError:  # an argument that no one knows
            continue
        if not _calls_python(placement):
            yield _measure_map(schedule, caller, calls)


def _list_functions(result: Result, step: Schedule, examples: int) -> Iterator[tuple[Placement, Caller, int]]:
    """List the functions of the datasets that feed a step, each with how often that needs it.

    That is for each of its examples, or once where the function is given batches.
    """
    feeds = find_feeds(result, step)
    for placed in result.programs:
        program = placed.placement.program
        is_batched = feeds.get(program.function or "")
        if program.kind == "dataset" and program.caller is not None and is_batched is not None:
            yield placed.placement, program.caller, examples if is_batched else 1


def _calls_python(placement: Placement) -> bool:
    return not CALLS_OF_PYTHON.isdisjoint(placement.graph.ops)


def _measure_map(schedule: Schedule, caller: Caller, calls: int) -> MapTime:
    is_parallel = caller.op != _SEQUENTIAL or not _has_state(schedule.placement)
    one, program = schedule.trace.makespan, schedule.placement.program
    work = sum(span.duration for span in schedule.trace.spans)
    whole = calls * (max(work, one) // schedule.threads.cores if is_parallel else one)
    return MapTime(program.known_as or program.name, caller.at, calls, one, whole, is_parallel, schedule.errors)


def _has_state(placement: Placement) -> bool:
    """Return whether TensorFlow calls a function for one element at a time (`IsFunctionStateful`)."""
    program = placement.program
    function = program.graph.library.get(program.function or "")
    nodes = () if function is None else function.nodes
    return any(node.op != "Assert" and placement.placed.is_stateful(node.op) for node in nodes)
