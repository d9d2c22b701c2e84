"""The functions of datasets that are made eagerly: TensorFlow places them when something walks through the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.kernels.dataset_ops import count_rewrites, describe_role, takes_default
from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.captured_inputs import find_captured
from simplace.oracle.child.function_calls import FunctionCalls
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tensors import resource_device, task_of
from simplace.program.program import Caller

_ON_HOST = (tf.int32, tf.string)
_CALLED = "_simplace_dataset_function"  # an attribute of datasets, which goes when they go


class DatasetFunctions:
    """Write each function down, once for each set of devices that it is given its arguments on."""

    def __init__(self, functions: Functions, recorder: Recorder, lines: SourceLines, calls: FunctionCalls) -> None:
        self._functions = functions
        self._recorder = recorder
        self._lines = lines
        self._calls = calls
        self._known: set[tuple[str, ...]] = set()

    def record(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], scope: str) -> list[str]:
        """Record the functions of an op that makes a dataset, or walks through one; return their names."""
        device = eager_device.choose_device(kernel_types.device_types(op, attrs), scope)
        found = []
        for attr in kernel_types.find_op_def(op).attr:
            name = read_function_name(attrs[attr.name]) if attr.type == "func" and attr.name in attrs else ""
            if name and self._functions.exists(name):
                captured = list(find_captured(op, attr.name, inputs, attrs))
                upstream = getattr(inputs[0], _CALLED, "") if len(inputs) else ""
                self._record(op, attr.name, name, captured, attrs, device, upstream)
                found.append(name)
        return found

    def mark(self, functions: Sequence[str], results: Any) -> None:
        """Let datasets remember the function that the op which made them has, if it has one."""
        if len(functions) == 1 and isinstance(results, (list, tuple)):
            for tensor in results:
                tensor.__dict__[_CALLED] = functions[0]

    def _record(
        self,
        op: str,
        attr: str,
        name: str,
        captured: list[Any],
        attrs: Mapping[str, Any],
        device: str,
        upstream: str,
    ) -> None:
        args = self._functions.definition(name).signature.input_arg
        placed = [device] * (len(args) - len(captured)) + [_find_device(tensor, device) for tensor in captured]
        key = (name, device, *placed)
        if key in self._known or self._calls.is_left_out(shown_name(name)):
            return
        self._known.add(key)
        self._calls.devices.tell()
        graph, names = self._functions.library(name)
        self._functions.write_notes(names)
        self._calls.reach_functions(names)
        plain = {each: value for each, value in attrs.items() if isinstance(value, bool)}
        caller = Caller(
            "",
            "",
            op,
            describe_role(op, attr),
            self._lines.here(),
            takes_default(op, plain),
            count_rewrites(op),
            upstream=upstream,
            captured=len(captured),
            attr=attr,
            called=self._lines.name_call(),
        )
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
            caller=asdict(caller),
        )


def _find_device(tensor: Any, device: str) -> str:
    if getattr(tensor, "dtype", None) == tf.resource:
        return resource_device(tensor)
    return f"{task_of(device)}/device:CPU:0" if getattr(tensor, "dtype", None) in _ON_HOST else device
