"""What a custom device such as DTensor's makes of an op or function: a function that each device of its mesh runs.

DTensor lowers what it is given to a function for one device (dtensor/cc/dtensor_device.cc), adds that to the context,
and executes it on every device of the mesh, each in a thread of its own: TensorFlow places it there as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from simplace.devices.device_name import DeviceName
from simplace.graph.function_names import shown_name
from simplace.graph.op_kinds import is_arg
from simplace.oracle.child import eager_device
from simplace.oracle.child.boundary import forget_frames, raise_as_theirs
from simplace.oracle.child.devices import computes_nothing
from simplace.oracle.child.failures import FAILURES
from simplace.oracle.child.function_calls import Call, FunctionCalls
from simplace.oracle.child.recorder import LogFile, list_placed
from simplace.oracle.child.run_parts import RunParts
from simplace.oracle.placement_log import Executed, Instantiated, Instantiating, LogLine, PlacementLine

_EAGER = "__wrapped__"  # how the function begins that TensorFlow makes of an eager op
_ON_GPUS = (
    "emulated GPUs compute nothing, so that what DTensor runs on a mesh of them fails: run the program with a mesh of "
    'as many CPUs, with device_type="CPU" and such as --devices cpu:8, to see the functions that each device runs.'
)


@dataclass(slots=True)
class _Instance:
    """Record of a function that TensorFlow instantiates on a device, on a thread, and of what it places for it."""

    begun: Instantiating
    placed: list[PlacementLine] = field(default_factory=list)


class MeshFunctions:
    """Record each function that a custom device has made, once for each device that runs it."""

    def __init__(self, parts: RunParts, calls: FunctionCalls) -> None:
        self._recorder = parts.recorder
        self._log: LogFile = parts.log
        self._lines = parts.lines
        self._functions = parts.functions
        self._partitionings = parts.partitionings
        self._reached = parts.reached
        self._calls = calls

    def run(self, op: str, call: Call) -> Any:
        """Run an op or function on a custom device, and record what TensorFlow places for it on the way."""
        start = self._log.end()
        try:
            return call()
        except FAILURES as error:
            if not computes_nothing(error):
                raise
            forget_frames(error)
            raise_as_theirs(tf.errors.UnimplementedError(None, None, _ON_GPUS))
        finally:
            found = _list_instances(self._log.since(start, every_thread=True))
            for each in sorted(found, key=lambda each: DeviceName.parse(each.begun.device) or DeviceName()):
                if not each.begun.function.startswith(_EAGER) and self._functions.exists(each.begun.function):
                    self._record(op, each, start)

    def _record(self, op: str, instance: _Instance, start: int) -> None:
        name, device = instance.begun.function, instance.begun.device
        is_function = self._functions.exists(op)
        shown = shown_name(op)
        if self._calls.is_left_out(shown):
            return
        self._calls.devices.tell()
        graph, names = self._functions.library(name)
        if is_function:
            self._reached.reach_functions(self._functions.reached(op))
            for each in names:
                self._functions.copy_notes(op, each)
        devices = {line.node.name: line.node.device for line in instance.placed if is_arg(line.node.op)}
        arguments = [arg.name for arg in self._functions.definition(name).signature.input_arg]
        number = self._recorder.program(
            graph,
            name=shown,
            role=f"{shown} on {device.rpartition('/device:')[2]} of a mesh",
            is_internal=not is_function,
            at=self._lines.of_frames(),
            program_kind="function",
            function=name,
            arg_devices=[devices.get(each, device) for each in arguments],
            scope=device,
            soft_placement=eager_device.soft_placement(),
            functions=names,
            log=list_placed(instance.placed),
            refused=None,
            **self._partitionings.describe_grappler(),
        )
        self._partitionings.record(number, start, thread=instance.begun.thread)


def _list_instances(lines: Iterable[LogLine]) -> Iterator[_Instance]:
    """Yield what TensorFlow instantiates and places nodes for, each when that ends, whatever other threads log."""
    open_ones: dict[int | None, _Instance] = {}
    for line in lines:
        if isinstance(line, PlacementLine):
            if not line.verbose and line.thread in open_ones:
                open_ones[line.thread].placed.append(line)
            continue
        if line.thread in open_ones:
            yield open_ones.pop(line.thread)
        if isinstance(line, Instantiating):
            open_ones[line.thread] = _Instance(line)
        else:
            assert isinstance(line, (Executed, Instantiated)), "there are no other lines"
    yield from open_ones.values()
