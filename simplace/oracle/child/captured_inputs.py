"""The inputs of an op that a function of it captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simplace.oracle.child import kernel_types


def find_captured(op: str, attr: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the tensors that a function captures: those of the op's argument that belongs to the function."""
    own = (f"{attr}_other_arguments", f"{attr}_other_args", "other_arguments")
    start = 0
    for arg in kernel_types.find_op_def(op).input_arg:
        count = (
            len(attrs[arg.type_list_attr]) if arg.type_list_attr else attrs[arg.number_attr] if arg.number_attr else 1
        )
        if arg.name in own:
            yield from inputs[start : start + count]
        start += count
