"""Eager ops with their devices, and the evidence of how each got it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from simplace.devices.device_set import DeviceSet
from simplace.kernels.registry import KernelTable
from simplace.placement.eager.execute import EagerChoice, InputCopy
from simplace.placement.placement import Placement
from simplace.program.eager_op import EagerOp
from simplace.program.observation import MadeBy
from simplace.program.status import Refusal


@dataclass(frozen=True, slots=True)
class EagerPlacement:
    """Record of where an eager op runs.

    `choice` is None where no device was found. `copies` are the inputs that each execution copies. `body` is the
    placement of the function that TensorFlow makes of the op, None where it does not come so far.
    """

    op: EagerOp
    choice: EagerChoice | None
    copies: tuple[InputCopy, ...] = ()
    body: Placement | None = None
    refusal: Refusal | None = None

    @property
    def device(self) -> str:
        """Return the full name of the device, "" where TensorFlow refuses the op."""
        return self.choice.device if self.choice is not None and self.refusal is None else ""


@dataclass(frozen=True, slots=True)
class EagerCopies:
    """Count the tensors that an eager op had copied for one input, each once; None for what is not known."""

    input: int
    source: str
    target: str
    tensors: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class PlacedOp:
    """Pair an eager op's placement with how often it ran; `name` tells it from all others of the program.

    `made_by` lists what read what another op made: the input, and the number of that op in the program. `devices` are
    those that TensorFlow had then, None where they are those of the program.
    """

    name: str
    placement: EagerPlacement
    times: int
    copies: tuple[EagerCopies, ...] = ()
    made_by: tuple[MadeBy, ...] = ()
    devices: DeviceSet | None = None

    @property
    def op(self) -> EagerOp:
        """Return the op."""
        return self.placement.op


@dataclass(frozen=True)
class PlacedEager:
    """Record of all that a program ran outside of functions, alike ops together, in the order of their first run."""

    ops: tuple[PlacedOp, ...]
    devices: DeviceSet
    table: KernelTable

    @property
    def times(self) -> int:
        """Return how many ops ran."""
        return sum(each.times for each in self.ops)

    def devices_of(self, placed: PlacedOp) -> DeviceSet:
        """Return the devices that TensorFlow had when an op ran."""
        return self.devices if placed.devices is None else placed.devices

    @cached_property
    def used_devices(self) -> frozenset[str]:
        """Return the devices on which ops ran, by full names."""
        return frozenset(each.placement.device for each in self.ops if each.placement.device)

    @cached_property
    def all_devices(self) -> DeviceSet:
        """Return the devices that the program had at any time."""
        sets = (self.devices, *(self.devices_of(each) for each in self.ops))
        return DeviceSet({device.name: device for devices in sets for device in devices}.values())
