"""Replay, check, explain and draw how TensorFlow places a program on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simplace._version import __version__

if TYPE_CHECKING:
    from simplace.library import Diff, Placements, Simulated
    from simplace.placement.placement import Placement

__all__ = ["__version__", "check", "diff", "place", "schedule"]

# The functions import what they need when they are called, so that `simplace --help` is instant.


def place(
    target: str,
    devices: str | None = None,
    soft_placement: bool | None = None,
    *,
    arguments: Sequence[str] = (),
    visible: str | None = None,
    max_calls: int = 10,
    timeout: float | None = 300.0,
    kernels: str = "",
    tensorflow: str = "",
) -> Placements:
    """Place every program of a target and return the result, which explains, draws and exports itself.

    `target` is what `simplace show` takes: a script (`model.py`, `model.py:function`), a SavedModel directory, or a
    .pb, .pbtxt or .keras file. `devices` is a list such as "cpu:1,gpu:2", the tasks of a cluster such as
    "ps=cpu:1+2xworker=gpu:2", or a TOML file. `soft_placement` None keeps what the program sets. `tensorflow` is the
    version that places a file ("2.18"), by default the installed one.
    `timeout` is in seconds. Raises `simplace.errors.SimplaceError` for what the user can mend.
    """
    from simplace import library, targets

    chosen = {"max_calls": max_calls, "time_limit": timeout, "kernels": kernels, "arguments": tuple(arguments)}
    return library.run(
        targets.place, target, devices, visible, soft_placement=soft_placement, tensorflow=tensorflow, **chosen
    )


def check(
    target: str,
    devices: str | None = None,
    soft_placement: bool | None = None,
    *,
    arguments: Sequence[str] = (),
    visible: str | None = None,
    max_calls: int = 10,
    timeout: float | None = 300.0,
    kernels: str = "",
) -> Placements:
    """Do what `place` does, and let TensorFlow place files too; `result.agrees` says whether it does the same."""
    from simplace import library, targets

    chosen = {"max_calls": max_calls, "time_limit": timeout, "kernels": kernels, "arguments": tuple(arguments)}
    return library.run(targets.check, target, devices, visible, soft_placement=soft_placement, **chosen)


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
    from simplace import library

    return library.diff(before, after, dict(pins or {}), soft_placement, tensorflow)


def schedule(placement: Placement, **options: Any) -> Simulated:
    """Simulate when each op of a placement (`result.programs[0].placement`) runs.

    The options are those of `simplace.scheduling.schedule`: threads, executor, costs, hardware, batch.
    """
    from simplace import library

    return library.simulate(placement, **options)
