"""Suggest changes of a script that make a step faster, each tried on the emulated machine."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from simplace import targets
from simplace.analysis.session_memory import use_memory_fraction
from simplace.api.split_gpus import find_split_limits
from simplace.errors import SimplaceError, TargetError
from simplace.executor.step_options import StepOptions
from simplace.importers.target import parse_target
from simplace.oracle.launch import sending_errors, starting_by_forks
from simplace.progress import show_nothing
from simplace.result import Placed, Result
from simplace.suggestions.find_suggestions import Suggestions, find_suggestions
from simplace.targets import Settings

if TYPE_CHECKING:
    from simplace.costs.recorded_costs import RecordedCosts
    from simplace.suggestions.trial import Sources

_NO_SCRIPT = "suggestions are changes of source lines; name the script that makes this model"
_EAGER = (
    "all of it runs outside of functions, op by op; put what is repeated under @tf.function, which saves the most, and "
    "suggestions have a step to time"
)
_LOOPS_IN_XLA = (
    "XLA compiles loops or branches of {}, and how long those take is not simulated; --no-jit has suggestions for the "
    "program without XLA"
)
_FEW = 2  # calls that are computed of a program that has become slow here: what counts is where its ops are
_PATIENCE = 20.0  # seconds that a changed program may take at least, three times what it took as it was at most

R = TypeVar("R", bound=Result)


class Suggested(Suggestions):
    """Record of suggestions that prints and exports itself."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/suggestion/1)."""
        from simplace.suggestions import suggestion_report

        return suggestion_report.report_suggestions(self)

    def __str__(self) -> str:
        from simplace.suggestions import suggestion_text

        return suggestion_text.write_suggestions(self)

    def __repr__(self) -> str:
        return f"<{len(self.best)} suggestions for {self.evidence.placed.title}>"


def suggest_changes(
    target: str,
    settings: Settings,
    kind: type[R],
    options: StepOptions,
    seconds: float = 60.0,
    program: str = "",
    trial_timeout: float | None = None,
) -> Suggested:
    """Search for changes of a script for at most about `seconds` after its first run; `kind` is the results' class.

    A changed program may run for `trial_timeout` seconds (infinity: without end), by default three times as long as it
    took as it was. Costs that are "measured" are those of the step as it is, on this computer's CPU.

    Raises a `SimplaceError` for whatever the user can fix.
    """
    parsed = parse_target(target)
    if parsed.kind != "script":
        raise TargetError(f"{target}: {_NO_SCRIPT}")
    script = str(parsed.path)
    with starting_by_forks(), open(os.devnull, "w") as nowhere:
        began = time.monotonic()
        result = targets.place_target(script, settings, kind)
        if result.failure is not None:
            raise result.failure
        placed = _choose_step(target, result, program or parsed.function)
        options = use_memory_fraction(options, result.python)
        if trial_timeout is None:
            trial_timeout = min(max(_PATIENCE, 3 * (time.monotonic() - began)), settings.timeout or inf)
        timeout = None if trial_timeout == inf else trial_timeout
        quiet = replace(settings, stdout=nowhere.fileno(), stage=show_nothing, timeout=timeout)
        few = min(settings.calls, _FEW) if settings.calls > 0 else settings.calls

        def run(sources: Sources, is_slow: bool) -> R:
            calls = few if is_slow else settings.calls
            with sending_errors(nowhere.fileno()):
                return targets.place_target(script, replace(quiet, sources=sources, calls=calls), kind)

        if options.costs == "measured":
            settings.stage("running real steps", is_alone=True)
            options = replace(options, costs=_measure_costs(script, placed, settings, options))
        options = replace(options, limits={**find_split_limits(placed, settings), **options.limits})
        return find_suggestions(result, placed, run, options, seconds, settings.stage, Suggested)


def _measure_costs(script: str, placed: Placed, settings: Settings, options: StepOptions) -> RecordedCosts:
    from simplace.api.measuring import measure_costs
    from simplace.measure.measurement import MeasureOptions

    wanted = MeasureOptions(arguments=settings.arguments, batch=options.batch, timeout=settings.timeout or inf)
    return measure_costs(script, placed, wanted, options.gpu, options.memory_fraction, options.cpu)


def _choose_step(target: str, result: Result, name: str) -> Placed:
    """Return the program to make faster; raise `SimplaceError` where no step of it can be simulated."""
    if not name and result.eager is not None and not any(not one.is_initializer for one in result.programs):
        raise SimplaceError(f"{target}: {_EAGER}")
    placed = result.program(name) if name else result.largest()
    if any(cluster.has_control_flow for cluster in placed.clusters):
        raise SimplaceError(f"{target}: {_LOOPS_IN_XLA.format(placed.title)}")
    return placed
