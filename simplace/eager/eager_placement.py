"""An eager op with its device, and the evidence of how it got it."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.eager.execute import EagerChoice, InputCopy
from simplace.placement.placement import Placement
from simplace.program.eager_op import EagerOp
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
