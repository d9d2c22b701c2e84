"""The functions of datasets that are made eagerly: TensorFlow places them when something walks through the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.kernels.dataset_ops import INITIALIZES, count_rewrites, describe_role, takes_default
from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.captured_inputs import find_captured
from simplace.oracle.child.dataset_twins import TAKES_ELEMENTS
from simplace.oracle.child.function_calls import FunctionCalls
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import find_host, resource_device, task_of
from simplace.program.program import Caller

_ON_HOST = (tf.int32, tf.string)
_HOST = "host"
# Attributes of datasets, which go when they go.
_CALLED = "_simplace_dataset_function"
_WAITING = "_simplace_waiting_functions"


@dataclass(frozen=True, eq=False, slots=True)
class _CalledFunction:
    """Record of a function that a dataset's op has, of the op's own device, and of who calls it.

    `captured` has, for each tensor that it captures, the device of a resource, `_HOST`, or "" for that of the iterator.
    """

    name: str
    captured: tuple[str, ...]
    device: str
    caller: Caller


class DatasetFunctions:
    """Write each function down, once for each set of devices that it is given its arguments on.

    TensorFlow places a function of a dataset on the device of the iterator over it, or of the op that walks through it
    (`CapturedFunction::Instantiate` of core/data/captured_function.cc takes that device's function library), wherever
    the dataset's own op is. So functions wait for that op; several may come. What walks through a dataset in another
    one's function has no kernel but on a CPU.
    """

    def __init__(self, functions: Functions, recorder: Recorder, lines: SourceLines, calls: FunctionCalls) -> None:
        self._functions = functions
        self._recorder = recorder
        self._lines = lines
        self._calls = calls
        self._known: set[tuple[str, ...]] = set()
        self._waiting: dict[_CalledFunction, None] = {}  # in the order of their ops

    def record(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], scope: str) -> list[str]:
        """Record the functions of an op that makes a dataset, or walks through one; return their names."""
        device = eager_device.choose_device(kernel_types.device_types(op, attrs), scope)
        names = []
        for attr in kernel_types.find_op_def(op).attr:
            name = read_function_name(attrs[attr.name]) if attr.type == "func" and attr.name in attrs else ""
            if name and self._functions.exists(name):
                captured = tuple(map(_find_place, find_captured(op, attr.name, inputs, attrs)))
                caller = self._describe_caller(op, attr.name, inputs, attrs, len(captured))
                found = _CalledFunction(name, captured, device, caller)
                if kernel_types.makes_dataset(op):
                    self._waiting[found] = None
                else:
                    self._write(found, device)
                names.append(name)
        return names

    def settle(self, op: str, inputs: Sequence[Any], attrs: Sequence[Any], scope: str) -> None:
        """Record the functions of a dataset that an op takes elements of, on the device of the iterator."""
        if op in INITIALIZES:
            self._settle(inputs[:1], resource_device(inputs[1]))
        elif op in TAKES_ELEMENTS:
            named = dict(zip(attrs[::2], attrs[1::2], strict=True))
            self._settle(inputs[:1], eager_device.choose_device(kernel_types.device_types(op, named), scope))

    def settle_given(self, inputs: Sequence[Any]) -> None:
        """Record the functions of the datasets that a call is given: what walks through them there is on the host."""
        self._settle(inputs, find_host())

    def report(self) -> None:
        """Record the functions of datasets that nothing took elements of, on the devices of their ops."""
        for found in self._waiting:
            self._write(found, found.device)
        self._waiting.clear()

    def mark(
        self, op: str, functions: Sequence[str], inputs: Sequence[Any], attrs: Sequence[Any], results: Any
    ) -> None:
        """Let a dataset remember the function that the op which made it has, if it has one, and all that wait."""
        if not kernel_types.makes_dataset(op) or not isinstance(results, (list, tuple)):
            return
        waiting = _join_waiting(inputs)
        if functions:
            inside = self._list_walked_inside(op, functions, inputs, dict(zip(attrs[::2], attrs[1::2], strict=True)))
            waiting.update(dict.fromkeys(_join_waiting(inside), True))
            waiting.update((found, False) for found in self._waiting if found.name in functions)
        for tensor in results:
            if len(functions) == 1:
                tensor.__dict__[_CALLED] = functions[0]
            if waiting:
                tensor.__dict__[_WAITING] = waiting

    def _list_walked_inside(
        self, op: str, functions: Sequence[str], inputs: Sequence[Any], attrs: Mapping[str, Any]
    ) -> list[Any]:
        """List the datasets that the functions of an op capture and do not return."""
        results = (arg for name in functions for arg in self._functions.definition(name).signature.output_arg)
        if any(arg.type == tf.variant.as_datatype_enum for arg in results):
            return []
        return [
            tensor
            for attr in kernel_types.find_op_def(op).attr
            if attr.type == "func"
            for tensor in find_captured(op, attr.name, inputs, attrs)
        ]

    def _settle(self, datasets: Sequence[Any], device: str) -> None:
        host = f"{task_of(device)}/device:CPU:0"
        for found, is_inside in _join_waiting(datasets).items():
            self._waiting.pop(found, None)
            self._write(found, host if is_inside and "/device:CPU:" not in device else device)

    def _describe_caller(
        self, op: str, attr: str, inputs: Sequence[Any], attrs: Mapping[str, Any], captured: int
    ) -> Caller:
        plain = {each: value for each, value in attrs.items() if isinstance(value, bool)}
        return Caller(
            "",
            "",
            op,
            describe_role(op, attr),
            self._lines.here(),
            takes_default(op, plain),
            count_rewrites(op),
            upstream=getattr(inputs[0], _CALLED, "") if len(inputs) else "",
            captured=captured,
            attr=attr,
            called=self._lines.name_call(),
        )

    def _write(self, found: _CalledFunction, device: str) -> None:
        name, captured = found.name, found.captured
        args = self._functions.definition(name).signature.input_arg
        places = {"": device, _HOST: f"{task_of(device)}/device:CPU:0"}
        placed = [device] * (len(args) - len(captured)) + [places.get(place, place) for place in captured]
        key = (name, device, *placed)
        if key in self._known or self._calls.is_left_out(shown_name(name)):
            return
        self._known.add(key)
        self._calls.devices.tell()
        graph, names = self._functions.library(name)
        self._functions.write_notes(names)
        self._calls.reach_functions(names)
        self._recorder.program(
            graph,
            name=shown_name(name),
            program_kind="dataset",
            function=name,
            arg_devices=placed,
            scope=device,
            soft_placement=eager_device.soft_placement(),
            functions=names,
            log=[],
            refused=None,
            asked=False,
            caller=asdict(found.caller),
            **self._calls.describe_grappler(),
        )


def _join_waiting(inputs: Sequence[Any]) -> dict[_CalledFunction, bool]:
    """Join the functions that wait of the datasets among inputs, with whether another function walks through theirs."""
    return {
        found: is_inside
        for tensor in inputs
        for found, is_inside in getattr(tensor, "__dict__", {}).get(_WAITING, {}).items()
    }


def _find_place(tensor: Any) -> str:
    """Return where a captured tensor is, as `_CalledFunction` has it."""
    if getattr(tensor, "dtype", None) == tf.resource:
        return resource_device(tensor)
    return _HOST if getattr(tensor, "dtype", None) in _ON_HOST else ""
