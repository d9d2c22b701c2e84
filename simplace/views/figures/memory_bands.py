"""Choose the bands of a chart of memory: variables of layers and of optimizers, the input, and the largest layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest

from simplace.analysis.batch_growth import ELEMENTS
from simplace.analysis.memory import Held, MemoryUse, Resize, keep_size
from simplace.analysis.memory_kinds import (
    MADE,
    MemoryKind,
    find_kind,
    find_origin,
    has_scope,
    list_scopes,
    name_scope,
    open_scopes,
)
from simplace.analysis.memory_over_time import Series, find_bytes_at_peak, follow_groups
from simplace.analysis.memory_replay import Tensor
from simplace.analysis.schedule import Schedule
from simplace.graph.op_kinds import is_arg
from simplace.views.figures.variable_roles import VariableRoles
from simplace.views.text.quantities import format_bytes, format_count
from viz.area import Band, Pattern

GIVEN, WEIGHTS, STATE = "input, constants", MemoryKind.VARIABLE.value, MemoryKind.STATE.value
_LOOKS: Mapping[str, Pattern] = {WEIGHTS: "plain", STATE: "level", GIVEN: "upright"}
_GIVEN = (MemoryKind.ARGUMENT, MemoryKind.CONSTANT)
_SHOWN = 5  # layers that a device shows by name
_LEAST = 0.01  # of the peak: a layer that never takes so much is not shown by name
_HUES = 5  # colours that readers who are colour-blind tell apart as areas; then come the same with lines upon them
_PATTERNS: tuple[Pattern, ...] = ("plain", "upright", "level")
_SECOND = 1e9  # nanoseconds


@dataclass(frozen=True, slots=True)
class DeviceBands:
    """Record of the bands of a device: what is there before the step at the bottom, then layers by their first use.

    `layers` are the names of those that are shown by name.
    """

    use: MemoryUse
    bands: tuple[Band, ...]
    layers: frozenset[str]


def choose_bands(schedule: Schedule, uses: Sequence[MemoryUse], resize: Resize = keep_size) -> list[DeviceBands]:
    """Return the bands of each device; a layer has one look on all of them.

    Layers are those of Keras, other name scopes, and the lines of ops that are in no scope; gradients count for what
    they are of. All but the largest layers of a device are one band.
    """
    groups = _Groups(schedule, uses)
    layers = [follow_groups(schedule.trace, use, groups.name, resize) for use in uses]
    largest = [_list_largest(use, series) for use, series in zip(uses, layers, strict=True)]
    looks = _give_looks(largest)
    titles = _shorten_names(list(looks))
    found = []
    for use, all_of_it, own in zip(uses, layers, largest, strict=True):
        shown = frozenset(name for name in own if name in looks)
        joined = format_count(len(all_of_it.keys() - shown - _LOOKS.keys()), "other scope")
        name = partial(_join_small, groups.name, {*shown, *_LOOKS}, joined)
        series = follow_groups(schedule.trace, use, name, resize)
        found.append(DeviceBands(use, tuple(_make_bands(use, series, looks, titles)), shown))
    return found


class _Groups:
    """The band that each tensor belongs to."""

    def __init__(self, schedule: Schedule, uses: Sequence[MemoryUse]) -> None:
        self.schedule = schedule
        self._roles = VariableRoles(schedule)
        outputs = {held for use in uses for held in use.holders if find_kind(schedule, held) in MADE}
        self.opened = open_scopes(schedule, (held for held in outputs if has_scope(schedule, held.node)))

    def name(self, tensor: Tensor) -> str:
        """Return what is there for the whole step, or the layer, or the line of what is in none."""
        node, kind = tensor[0], find_kind(self.schedule, Held(*tensor, 0))
        if kind == MemoryKind.VARIABLE:
            return STATE if self._roles.is_state(Held(*tensor, 0)) else WEIGHTS
        if kind in _GIVEN or self._is_given(node):
            return GIVEN
        scopes = list_scopes(self.schedule, node)
        layer = next((depth for depth, scope in enumerate(scopes, 1) if scope in self._layers), 0)
        if layer:
            return "/".join(scopes[:layer])
        of = self._ops.get("/".join(scopes), node)  # the gradient of an op has that op's name for a scope
        line = "" if has_scope(self.schedule, of) else self.schedule.estimated.graph.source_line(of)
        return line or name_scope(self.schedule, node, self.opened)

    def _is_given(self, node: int) -> bool:
        """Return whether a node puts out an element of a dataset, or receives one, or what the step is fed."""
        origin = find_origin(self.schedule, node)
        op = self.schedule.placed.graph.ops[origin] if origin >= 0 else ""
        return op in ELEMENTS or is_arg(op)

    @cached_property
    def _ops(self) -> dict[str, int]:
        return {node.name: i for i, node in enumerate(self.schedule.estimated.graph.nodes)}

    @cached_property
    def _layers(self) -> frozenset[str]:
        return frozenset(part.name for part in self._roles.parts.values() if part.kind == "layer")


def _join_small(name: Callable[[Tensor], str], shown: Collection[str], joined: str, tensor: Tensor) -> str:
    own = name(tensor)
    return own if own in shown else joined


def _list_largest(use: MemoryUse, series: Mapping[str, Series]) -> list[str]:
    """Return the layers that can be seen, those that take most at any time first."""
    most = {name: max(size for _, size in points) for name, points in series.items() if name not in _LOOKS}
    seen = [name for name, size in most.items() if size > _LEAST * use.peak]
    return sorted(seen, key=lambda name: (-most[name], name))[:_SHOWN]


def _give_looks(largest: Iterable[Sequence[str]]) -> dict[str, tuple[int, Pattern]]:
    """Assign a colour and a pattern to the largest layer of each device, then to the next of each, and so on."""
    ranks = zip_longest(*largest)
    names = dict.fromkeys(name for rank in ranks for name in rank if name is not None)
    looks = [(hue, pattern) for pattern in _PATTERNS for hue in range(_HUES)]
    return dict(zip(names, looks, strict=False))


def _shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Return the innermost scope of each name, or the file of a line, where that tells it from the others.

    >>> _shorten_names(["net/dense", "net/conv", "a/out", "b/out"])
    {'net/dense': 'dense', 'net/conv': 'conv', 'a/out': 'a/out', 'b/out': 'b/out'}
    """
    ends = [name.rpartition("/")[2] for name in names]
    return {name: end if ends.count(end) == 1 else name for name, end in zip(names, ends, strict=True)}


def _make_bands(
    use: MemoryUse, series: Mapping[str, Series], looks: Mapping[str, tuple[int, Pattern]], titles: Mapping[str, str]
) -> Iterator[Band]:
    """Yield the bands; what holds nothing at the peak says how much it holds at another time."""
    at_peak = find_bytes_at_peak(series, use)
    for name in (*(one for one in _LOOKS if one in series), *(one for one in series if one not in _LOOKS)):
        points = tuple((time / _SECOND, float(size)) for time, size in series[name])
        largest = max(size for _, size in points)
        if not largest:
            continue
        note = format_bytes(at_peak[name]) if at_peak[name] else f"else {format_bytes(int(largest))}"
        if name in looks:
            index, pattern = looks[name]
            yield Band(titles[name], points, "GPU", index, pattern, note)
        elif name in _LOOKS:
            yield Band(name, points, pattern=_LOOKS[name], note=note)
        else:
            yield Band(name, points, index=2, note=note)
