"""Place programs again with changed settings: nodes pinned to devices, soft placement, another version's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TypeVar

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import FACTORY_PRIORITY
from simplace.errors import DeviceSpecError, NodeNotFoundError, SimplaceError
from simplace.explain.explanation import find_node
from simplace.kernels.registry import KernelTable
from simplace.pipeline import place_program
from simplace.program.program import Pin, Program
from simplace.result import Placed, Result

_PATTERN = set("*?[")
_UNCHECKED = "it is a what-if, on the graphs that the program has under the first settings"


def read_pin(text: str) -> Pin:
    """Read "NODE=DEVICE", where NODE may be a glob pattern and DEVICE is written as for `tf.device`.

    >>> str(read_pin("dense*/MatMul=gpu:1").device)
    '/device:GPU:1'
    """
    pattern, _, device = text.rpartition("=")
    if not pattern or not device:
        raise SimplaceError(
            f"cannot read the pin {text!r}; write NODE=DEVICE, such as dense/MatMul=GPU:1 or 'dense*=CPU'"
        )
    return Pin(pattern, _parse_device(text, device))


R = TypeVar("R", bound=Result)


def suppose_changes(result: R, pins: Sequence[Pin] = (), soft_placement: bool | None = None, tensorflow: str = "") -> R:
    """Place the programs of a result again, as if the pins had been requested, without running anything.

    `soft_placement` None keeps what each placement had; `tensorflow` names the version whose kernels and rules count,
    "" for the same. Raises `NodeNotFoundError` for a pin that matches no node.
    """
    pins = [_resolve_pin(pin, result) for pin in pins]
    table = KernelTable.shipped(tensorflow) if tensorflow else None
    programs: list[Placed] = []
    for placed in result.programs:
        old, program = placed.placement, _kept_elsewhere(placed.placement.program, programs)
        program = replace(program, pins=(*program.pins, *pins))
        soft = old.soft_placement if soft_placement is None else soft_placement
        kernels = table or old.groups.support.table
        programs.append(Placed(place_program(program, old.devices, kernels, soft_placement=soft)))
    changed = {"tensorflow": table.version, "kernels": table.name} if table else {}
    return replace(result, programs=tuple(programs), unchecked=_UNCHECKED, failure=None, remarks=(), **changed)  # type: ignore[arg-type]


def _kept_elsewhere(program: Program, earlier: Sequence[Placed]) -> Program:
    """Return a program whose nodes that an earlier session run placed are where that run now puts them."""
    kept = dict(program.kept_devices)
    for one in earlier:
        if one.placement.program.kind == "session":
            ids = one.placement.graph.ids
            kept |= {name: one.placement.device(ids[name]) for name in kept if ids.get(name) in one.placement.decisions}
    return replace(program, kept_devices=kept)


def _parse_device(text: str, device: str) -> DeviceName:
    """Read a device with or without its slash and "device:"; without it, in any case of its type."""
    if device.startswith("/"):
        spec = DeviceName.parse(device)
    else:
        spec = DeviceName.parse(f"/device:{device.upper()}")
        spec = spec if spec is not None and spec.type in FACTORY_PRIORITY else None
    if spec is None or not spec.is_set:
        raise DeviceSpecError(
            f"cannot read the device of the pin {text!r}; write one such as GPU:1, CPU or /device:GPU:0"
        )
    return spec


def _resolve_pin(pin: Pin, result: Result) -> Pin:
    """Return the pin of a pattern that matches something, or of the whole name where the end of one was given."""
    if any(fnmatchcase(name, pin.pattern) for placed in result for name in placed.placement.graph.names[2:]):
        return pin
    if _PATTERN & set(pin.pattern):
        raise NodeNotFoundError(
            f"no node matches the pattern {pin.pattern!r} of the pin; --table of show lists them all"
        )
    placement = result.holding(pin.pattern).placement
    return Pin(placement.graph.names[find_node(placement, pin.pattern)], pin.device)
