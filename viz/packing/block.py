"""Lay out the boxes of one device in layers, so that what follows stands below (or right of) what it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from viz.packing.grid import Rect, Size, span
from viz.shape import find_longest_paths

ALONG, _ACROSS = 4, 3  # units between layers, and between boxes of a layer
_BETWEEN = 5  # units between the columns into which layers are broken: lines run from the end of one to the next
FOLDED = 2  # layers that a column has at least
_SWEEPS = 5

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Block:
    """Record of laid out boxes: the first column and row that they take are 0."""

    rects: Mapping[str, Rect]
    size: Size


def lay_out_block(
    sizes: Mapping[str, Size], links: Sequence[Link], down: bool, room: int = 0, folds: int = 1, along: int = ALONG
) -> Block:
    """Return the boxes in layers that follow each other downwards, or to the right.

    A layer holds what has longest paths of one length to it; what reads nothing stands just before its first reader.
    `along` are units between layers, `room` those to add between boxes for lines to pass. Many layers are broken, as a
    text is, into `folds` columns that go down, or lines that go right.
    """
    if not sizes:
        return Block({}, (0, 0))
    turned = {name: size if down else (size[1], size[0]) for name, size in sizes.items()}
    layers = _order_layers(_fill_layers(turned, links), links)
    rects: dict[str, Rect] = {}
    start = 0
    for some in _fold_layers(layers, turned, folds):
        column = _stack_layers(some, turned, links, room, along + room)
        first = min(rect.left for rect in column.values())
        rects |= {name: rect.moved(start - first, 0) for name, rect in column.items()}
        start = max(rect.right for rect in rects.values()) + _BETWEEN + room
    placed = {name: _turn(rects[name], down) for name in sizes}
    return Block(placed, span(list(placed.values())).size)


def _stack_layers(
    layers: list[list[str]], sizes: Mapping[str, Size], links: Sequence[Link], room: int, along: int
) -> dict[str, Rect]:
    """Return the boxes of layers, each layer below the one before."""
    names = {name for layer in layers for name in layer}
    across = _align(layers, sizes, [link for link in links if names.issuperset(link)], _ACROSS + room)
    rects, at = {}, 0
    for layer in layers:
        depth = max(sizes[name][1] for name in layer)
        for name in layer:
            wide, high = sizes[name]
            rects[name] = Rect.at(across[name], at + (depth - high) // 2, (wide, high))
        at += depth + along
    return rects


def _fold_layers(layers: list[list[str]], sizes: Mapping[str, Size], folds: int) -> list[list[list[str]]]:
    """Return layers in at most `folds` columns of about one height, none of which has one layer only."""
    count = min(folds, len(layers) // FOLDED)
    if count <= 1:
        return [layers]
    depths = [max(sizes[name][1] for name in layer) + ALONG for layer in layers]
    columns: list[list[list[str]]] = [[] for _ in range(count)]
    before = 0
    for layer, depth in zip(layers, depths, strict=True):
        columns[min(int((before + depth / 2) * count / sum(depths)), count - 1)].append(layer)
        before += depth
    return [column for column in columns if column]


def _turn(rect: Rect, down: bool) -> Rect:
    return rect if down else Rect(rect.top, rect.left, rect.bottom, rect.right)


def _fill_layers(sizes: Mapping[str, Size], links: Sequence[Link]) -> list[list[str]]:
    """Return the names by layer; those without links go where there is most room."""
    linked = {end for link in links for end in link}
    depth = find_longest_paths([name for name in sizes if name in linked], [(one, other, 1) for one, other in links])
    reads = {other for _, other in links}
    readers: dict[str, list[int]] = {}
    for one, other in links:
        readers.setdefault(one, []).append(depth[other])
    for name in depth:
        if name not in reads:
            depth[name] = max(min(readers[name]) - 1, 0)
    alone = [name for name in sizes if name not in linked]
    wide = sum(sizes[name][0] + _ACROSS for name in alone) * sum(sizes[name][1] + ALONG for name in alone)
    count = max(max(depth.values(), default=-1) + 1, math.ceil(math.sqrt(wide) / max(wide, 1)), _count_rows(alone))
    layers: list[list[str]] = [[] for _ in range(count)]
    for name in (name for name in sizes if name in depth):
        layers[depth[name]].append(name)
    for name in alone:
        min(layers, key=lambda layer: sum(sizes[one][0] + _ACROSS for one in layer)).append(name)
    return [layer for layer in layers if layer]


def _count_rows(alone: Sequence[str]) -> int:
    return math.isqrt(max(len(alone) - 1, 0)) + 1 if alone else 0


def _order_layers(layers: list[list[str]], links: Sequence[Link]) -> list[list[str]]:
    """Sort each layer by the middle of what its boxes read, and of what reads them, in turns; ties stay."""
    place = {name: float(i) for layer in layers for i, name in enumerate(layer)}
    for sweep in range(_SWEEPS):
        near = _list_neighbours(links, forward=sweep % 2 == 0)
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            pull = {name: fmean([place[one] for one in near.get(name, [name])]) for name in layer}
            layer.sort(key=pull.__getitem__)
            place |= {name: i - (len(layer) - 1) / 2 for i, name in enumerate(layer)}
    return layers


def _list_neighbours(links: Sequence[Link], forward: bool) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for one, other in links:
        near.setdefault(other if forward else one, []).append(one if forward else other)
    return near


def _align(layers: list[list[str]], sizes: Mapping[str, Size], links: Sequence[Link], gap: int) -> dict[str, int]:
    """Return where boxes begin across the layers: below what they read, above what reads them, in turns.

    So a chain is straight. Of several neighbours those of the nearest layer count, and of these the one in the middle.
    """
    middle: dict[str, float] = {}
    for layer in layers:
        total = sum(sizes[name][0] + gap for name in layer) - gap
        at = -total / 2
        for name in layer:
            middle[name] = at + sizes[name][0] / 2
            at += sizes[name][0] + gap
    depth = {name: i for i, layer in enumerate(layers) for name in layer}
    sides = [_pick_nearest(_list_neighbours(links, forward), depth) for forward in (True, False)]
    for sweep in range(_SWEEPS):
        near, other = sides if sweep % 2 == 0 else sides[::-1]
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [median([middle[one] for one in near.get(name, other.get(name, [name]))]) for name in layer]
            middle |= dict(zip(layer, _separate(wanted, [sizes[name][0] for name in layer], gap), strict=True))
    starts = {}
    for layer in layers:
        least = -math.inf
        for name in layer:
            start = max(round(middle[name] - sizes[name][0] / 2), least)
            starts[name] = int(start)
            least = start + sizes[name][0] + gap
    return starts


def _pick_nearest(near: Mapping[str, list[str]], depth: Mapping[str, int]) -> dict[str, list[str]]:
    """Return, for each name, those neighbours whose layer is the nearest."""
    found = {}
    for name, others in near.items():
        least = min(abs(depth[name] - depth[one]) for one in others)
        found[name] = [one for one in others if abs(depth[name] - depth[one]) == least]
    return found


def _separate(wanted: Sequence[float], widths: Sequence[int], gap: int) -> list[float]:
    """Return the middles nearest to those wanted (least squares) that keep order and gaps: pools of neighbours.

    >>> _separate([0.0, 0.0], [2, 2], 2)
    [-2.0, 2.0]
    """
    offsets, at = [], 0.0
    for i, width in enumerate(widths):
        at += (widths[i - 1] + width) / 2 + gap if i else 0.0
        offsets.append(at)
    pools: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        pools.append([want - offset])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    levels = [fmean(pool) for pool in pools for _ in pool]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]
