"""What may be changed in a program, one class a kind of change: what the edits mean, as data.

`suggestion_sentences.py` turns them into sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from simplace.suggestions.edits import Edit


@dataclass(frozen=True, kw_only=True)
class Change:
    """Record of a change: its edits, and the line ("file:line") that it is best known by.

    `pins` are the devices that it would have nodes of the program's present graph request, by name: with them a change
    is estimated before it is tried. {} for a change that makes another graph. `changes_values` tells that results may
    differ, as with another data type.
    """

    edits: tuple[Edit, ...]
    at: str
    pins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def changes_values(self) -> bool:
        """Return whether the program computes with other numbers, or on other data, than before."""
        return False

    @property
    def is_slow(self) -> bool:
        """Return whether a CPU, which computes the program here, takes far longer for it than before."""
        return False

    def list_parts(self) -> tuple[Change, ...]:
        """List the changes that it is made of: itself, but for one that makes several."""
        return (self,)

    @property
    def kind(self) -> str:
        """Return the kind of change, as JSON names it."""
        return KINDS[type(self)]


@dataclass(frozen=True, kw_only=True)
class ScopeDevice(Change):
    """Another device in a `tf.device` that is there; `variables` names those that are made under it."""

    before: str
    after: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NewScope(Change):
    """A `tf.device` around a statement that had none, for its ops, or for the variable that it makes."""

    device: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OneGpu(Change):
    """All scopes that request GPUs request one, on as many lines."""

    device: str
    scopes: int


@dataclass(frozen=True, kw_only=True)
class LinesOverGpus(Change):
    """A `tf.device` around each of several statements; `devices` has them by line, where they compute."""

    devices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class LayersOverGpus(Change):
    """Layers of Keras on other GPUs; `devices` has them by name. `has_updates`: what an optimizer does follows them."""

    devices: tuple[tuple[str, str], ...]
    has_updates: bool


@dataclass(frozen=True, kw_only=True)
class ParallelMap(Change):
    """A dataset's map function called for several elements at once."""

    function: str

    @property
    def changes_values(self) -> bool:
        """Return True: a function with state, such as random numbers, is called in another order."""
        return True


@dataclass(frozen=True, kw_only=True)
class PrefetchToDevice(Change):
    """A dataset's elements copied to a GPU before a step needs them.

    `copied` is the nanoseconds that the copies for one step take, beside the step before.
    """

    device: str
    copied: int


@dataclass(frozen=True, kw_only=True)
class ThreadSettings(Change):
    """Other numbers of TensorFlow's threads, 0 for one per core."""

    inter_op: int
    intra_op: int


@dataclass(frozen=True, kw_only=True)
class ColocatedGradients(Change):
    """Gradients on the devices of their forward ops: `tf.compat.v1.gradients` in place of a tape's `gradient`."""


@dataclass(frozen=True, kw_only=True)
class UpdatesBesideVariables(Change):
    """What is assigned to a variable computed on the variable's device: `with tf.device(variable.device):`."""


@dataclass(frozen=True, kw_only=True)
class OtherType(Change):
    """Another data type at all places of a file that name one."""

    before: str
    after: str
    places: int

    @property
    def changes_values(self) -> bool:
        """Return True: other rounding, other limits."""
        return True


@dataclass(frozen=True, kw_only=True)
class MixedPrecision(Change):
    """Keras computes in float16 and keeps its variables in float32."""

    @property
    def changes_values(self) -> bool:
        """Return True: other rounding."""
        return True

    @property
    def is_slow(self) -> bool:
        """Return True: CPUs have no fast kernels for float16."""
        return True


@dataclass(frozen=True, kw_only=True)
class OtherBatch(Change):
    """Another number of examples a step; what counts is then the time of an example."""

    before: int
    after: int

    @property
    def changes_values(self) -> bool:
        """Return True: an optimizer takes other steps."""
        return True


@dataclass(frozen=True, kw_only=True)
class OneDeviceStrategy(Change):
    """`tf.distribute.OneDeviceStrategy` in place of one that copies the model to several GPUs."""

    device: str


@dataclass(frozen=True, kw_only=True)
class OtherReduction(Change):
    """Another way to sum up the gradients of replicas: classes of `tf.distribute`, `before` "" for its own choice."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class MirroredReplicas(Change):
    """`tf.distribute.MirroredStrategy` for a Keras model: on each GPU a replica, which takes its part of a batch.

    `examples` are those of a step, 1 where that is unknown. `copied` is the nanoseconds that the elements of the next
    step take beside a step: into batches in host memory, and from there to all GPUs.
    """

    replicas: int
    examples: int
    copied: int

    @property
    def changes_values(self) -> bool:
        """Return True: sums are of other parts, and BatchNormalization has the statistics of a part of the batch."""
        return True


@dataclass(frozen=True, kw_only=True)
class XlaCompilation(Change):
    """XLA compiles a function, or what Keras makes of a model, into few kernels."""


@dataclass(frozen=True, kw_only=True)
class NoXlaCompilation(Change):
    """XLA leaves a function, or what Keras makes of a model, alone: only then can its ops be on several GPUs."""


@dataclass(frozen=True, kw_only=True)
class Several(Change):
    """Several changes at once."""

    parts: tuple[Change, ...]

    def list_parts(self) -> tuple[Change, ...]:
        """List the changes that it makes."""
        return self.parts

    @property
    def changes_values(self) -> bool:
        """Return whether one of them does."""
        return any(part.changes_values for part in self.parts)

    @property
    def is_slow(self) -> bool:
        """Return whether one of them is."""
        return any(part.is_slow for part in self.parts)


KINDS: Mapping[type[Change], str] = {
    ScopeDevice: "scope-device", NewScope: "new-scope", OneGpu: "one-gpu", LinesOverGpus: "lines-over-gpus",
    LayersOverGpus: "layers-over-gpus",
    ParallelMap: "parallel-map", PrefetchToDevice: "prefetch-to-device", ThreadSettings: "threads",
    ColocatedGradients: "colocated-gradients", UpdatesBesideVariables: "updates-beside-variables",
    OtherType: "data-type", MixedPrecision: "mixed-precision",
    OtherBatch: "batch", OneDeviceStrategy: "one-device-strategy",
    OtherReduction: "reduction", MirroredReplicas: "mirrored-strategy", XlaCompilation: "compiled-by-xla",
    NoXlaCompilation: "not-compiled-by-xla", Several: "several",
}  # fmt: skip


def relocate_change(change: Change, find_line: Callable[[str], str]) -> Change:
    """Return a change with its lines where `find_line` says that they are."""
    if isinstance(change, Several):
        parts = tuple(relocate_change(part, find_line) for part in change.parts)
        return replace(change, at=find_line(change.at), parts=parts)
    if isinstance(change, LinesOverGpus):
        devices = tuple((find_line(line), device) for line, device in change.devices)
        return replace(change, at=find_line(change.at), devices=devices)
    return replace(change, at=find_line(change.at))


def join_changes(*changes: Change) -> Several:
    """Return the change that makes several, in the order given; a later one of the same scope or number counts."""
    parts: list[Change] = []
    for part in (part for change in changes for part in change.list_parts()):
        parts = [*_supersede(parts, part)]
    pins = {name: device for part in parts for name, device in part.pins.items()}
    return Several(
        edits=tuple(edit for part in parts for edit in part.edits), at=parts[0].at, pins=pins, parts=tuple(parts)
    )


def _supersede(parts: Sequence[Change], later: Change) -> Iterator[Change]:
    """Yield the parts and a later one, in place of one that names a device, a batch or a reduction at its line."""
    for part in parts:
        same = type(part) is type(later) and part.at == later.at
        if same and isinstance(part, ScopeDevice) and isinstance(later, ScopeDevice):
            variables = tuple(dict.fromkeys(part.variables + later.variables))
            later = replace(later, before=part.before, variables=variables)
        elif same and isinstance(part, (OtherBatch, OtherReduction)):
            later = replace(later, before=part.before)  # type: ignore[call-arg]  # of the same class, which has it
        else:
            yield part
    yield later
