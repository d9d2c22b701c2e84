"""The moving averages that separate expensive ops from cheap ones: read, and frozen, by TensorFlow's own profiler.

A profiler that watches an op keeps the executor from looking at what the op costs, so its average stays as it is
(`ProcessSync` of tensorflow/core/common_runtime/executor.cc). At level 2 it watches the expensive ops, at level 3 all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from simplace.oracle.child.tf_private import xplane_pb2
from simplace.oracle.scratch import scratch_folder

_EXPENSIVE, _ALL = 2, 3


class _Level:
    """An integer by `__index__` only: TensorFlow 2.20 and 2.21 ignore options that are an int themselves."""

    def __init__(self, level: int) -> None:
        self._level = level

    def __index__(self) -> int:
        return self._level


def list_expensive_nodes(run: Callable[[], object]) -> list[str]:
    """Run a step; return the names of the nodes that it took to be expensive, sorted."""
    with scratch_folder() as folder:
        with _profile_ops(folder, _EXPENSIVE, keeps=True):
            run()
        (file,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    names = {
        plane.event_metadata[event.metadata_id].name
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    }
    # "node:Op"; others, such as "ExecutorState::Process", are the runtime's own.
    return sorted(name.partition(":")[0] for name in names if name.count(":") == 1)


@contextmanager
def hold_averages() -> Iterator[None]:
    """Freeze all averages within the block.

    Else ops that take about as long as the limit change sides from step to step: a cheap one is measured in 1 of 16
    runs, chosen by the last bits of the processor's clock.
    """
    with scratch_folder() as nothing, _profile_ops(nothing, _ALL, keeps=False):
        yield


@contextmanager
def _profile_ops(folder: str, level: int, *, keeps: bool) -> Iterator[None]:
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=_Level(level), python_tracer_level=0)
    tf.profiler.experimental.start(folder, options)
    try:
        yield
    finally:
        tf.profiler.experimental.stop(save=keeps)
