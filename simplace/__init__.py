"""Replay, check, explain and draw how TensorFlow places a program on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Unpack

from simplace._version import __version__

if TYPE_CHECKING:
    from simplace.api import Diff, PlaceKeywords, Placements, Simulated, SuggestKeywords
    from simplace.api.measuring import RealSteps
    from simplace.api.suggesting import Suggested
    from simplace.executor.step_options import StepKeywords
    from simplace.placement.placement import Placement
    from simplace.watching import Watch

__all__ = ["__version__", "check", "diff", "measure_steps", "place", "schedule", "suggest", "watch"]

# The functions import what they need when they are called, so that `simplace --help` is instant.


def place(
    target: str, devices: str | None = None, soft_placement: bool | None = None, **options: Unpack[PlaceKeywords]
) -> Placements:
    """Place every program of a target and return the result, which explains, draws and exports itself.

    `target` is what `simplace show` takes: a script (`model.py`, `model.py:function`), a SavedModel directory, or a
    .pb, .pbtxt or .keras file. `devices` is a list such as "cpu:1,gpu:2", the tasks of a cluster such as
    "ps=cpu:1+2xworker=gpu:2", or a TOML file. `soft_placement` None keeps what the program sets.

    The options: `arguments` of a script; `visible`, the GPUs that it sees, such as "1,0"; `calls`, how many calls of
    each function and signature are computed before the latest values stand for the rest (10; -1: all); `timeout` in
    seconds (300, None for none); `kernels`, a TOML file with the kernels of custom ops; `tensorflow`, the version that
    places a file ("2.18"), by default the installed one; `allocations` asks the run of a script without GPUs for what
    TensorFlow does in host memory, with which `result.memory()` begins.

    Raises `simplace.errors.SimplaceError` for what the user can fix.
    """
    from simplace import api

    return api.place(target, api.settings(devices, soft_placement=soft_placement, **options))


def check(
    target: str,
    devices: str | None = None,
    soft_placement: bool | None = None,
    *,
    log: str = "",
    **options: Unpack[PlaceKeywords],
) -> Placements:
    """Place a target as `place` does, and have TensorFlow place files too; `result.agrees`: whether both agree.

    With `log`, the file of a placement log of any TensorFlow, the placements are compared with that instead.
    """
    from simplace import api

    return api.check(target, api.settings(devices, soft_placement=soft_placement, **options), log)


def diff(
    before: Placements,
    after: Placements | None = None,
    *,
    pins: Mapping[str, str] | None = None,
    soft_placement: bool | None = None,
    tensorflow: str = "",
) -> Diff:
    """Compare two results: what moved, because of which node, which copies came and went.

    `pins`, `soft_placement` and `tensorflow` are suppositions about the second placement, which is that of `before`
    where `after` is None: `pins` maps nodes (names or patterns) to the devices they are supposed to request, and
    `tensorflow` names the version whose kernels and rules count.
    """
    from simplace import api
    from simplace.changes.what_if import read_pin

    supposed = [read_pin(f"{pattern}={device}") for pattern, device in (pins or {}).items()]
    return api.diff(before, after, supposed, soft_placement, tensorflow)


def schedule(placement: Placement, **options: Unpack[StepKeywords]) -> Simulated:
    """Simulate when each op of a placement (`result.programs[0].placement`) runs.

    The options are those of `simplace.executor.step_options.StepOptions`: threads, executor, costs, hardware, batch.
    """
    from simplace import api
    from simplace.executor.step_options import StepOptions

    return api.schedule(placement, StepOptions(**options))


def measure_steps(
    target: str,
    *,
    inter_op: Sequence[int] = (1, 2),
    intra_op: int = 1,
    steps: int = 12,
    batch: int = 32,
    arguments: Sequence[str] = (),
    timeout: float = 300.0,
) -> RealSteps:
    """Run real steps of a target on this computer's CPU; `found.agreements` compares them with simulated ones.

    `target` is a script (its largest function, or `model.py:function`), a SavedModel directory (`:signature` for one),
    or a .pb or .pbtxt file, whose ops run with your permissions. `steps` steps of each size of the inter-op pool are
    traced; `batch` is the size of the unknown first dimensions of placeholder inputs; `timeout` is in seconds. The
    times, `found.to_json()`, are a file of costs, whose name `costs` of a schedule takes.
    Raises `simplace.errors.SimplaceError` for what the user can fix.
    """
    from simplace import api
    from simplace.measure.measurement import MeasureOptions

    settings = [(size, intra_op) for size in inter_op]
    options = MeasureOptions(settings, arguments, steps=steps, batch=batch, timeout=timeout, calibrates=True)
    return api.measure_steps(target, options)


def suggest(
    target: str,
    devices: str | None = None,
    *,
    program: str = "",
    seconds: float = 60.0,
    gpu: str = "a100",
    cores: int = 0,
    costs: str = "modelled",
    **options: Unpack[SuggestKeywords],
) -> Suggested:
    """Search for changes of a script that make a step of it faster: `found.best`, at most three, each with its patch.

    The step is that of `program` (the largest by default), simulated with `gpu`, `cpu`, `cores` (0: those of `cpu`,
    else of the CPU that `costs` were measured on, else 2) and `costs`: "modelled", "analytic", "flat", "measured" (on
    this computer's CPU, now), or a file of recorded costs. The program is run once as it is and once with each change
    that is worth it, on emulated devices, for about `seconds` after the first run. Nothing is written. The options are
    those of `place`; a `timeout` holds for the changed programs, too, which otherwise may take three times what the
    program took as it was. Raises `simplace.errors.SimplaceError`.
    """
    from simplace import api
    from simplace.executor.step_options import StepOptions

    step = StepOptions(gpu=gpu, cpu=options.pop("cpu", ""), cores=cores, costs=costs)
    of_place: PlaceKeywords = options
    settings = api.settings(devices, **of_place)
    trial_timeout = (options["timeout"] or inf) if "timeout" in options else None
    return api.suggest(target, settings, step, seconds, program, trial_timeout)


def watch(*, quiet: bool = False) -> Watch:
    """Return what watches TensorFlow in this process, on its real devices: `with simplace.watch() as watched:`.

    It is a Keras callback as well: `model.fit(..., callbacks=[simplace.watch()])`. At the end it writes one line to
    standard error, unless `quiet`; `watched.result` is then a result as that of `simplace.check`. What runs is not
    changed, and an error of simplace's own does not reach it.
    """
    from simplace.watching import Watch

    return Watch(quiet=quiet)
