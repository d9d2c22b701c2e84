"""An eager op: an op that runs outside of a function, with all that its device depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue

SMALL = 64  # elements of an input that is small to MaybePinSmallOpsToCpu (common_runtime/eager/placement_utils.cc)


@dataclass(frozen=True, slots=True)
class EagerInput:
    """Describe an input: its type, and the full name of the device whose memory it is in, or that its resource is on.

    `is_small` tells that it is an integer of at most `SMALL` elements on the CPU, in a program that has turned on the
    pinning of small ops.
    """

    dtype: DataType
    device: str
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class EagerOp:
    """Describe an op that runs outside of a function: all that its device depends on, and the user's line.

    `scope` is the device scope around it as a device name, "" without one. `attrs` are those that decide which kernel
    runs, and the types of its inputs and outputs. `library` is what makes the op for the user's line, such as "keras",
    "" where the line itself asks for it. `handlers` is, for an op that was refused, as of a `Program`.
    """

    op: str
    at: str
    scope: str
    soft_placement: bool
    attrs: Mapping[str, AttrValue]
    inputs: tuple[EagerInput, ...] = ()
    library: str = ""
    handlers: Mapping[str, str] = field(default_factory=dict)
