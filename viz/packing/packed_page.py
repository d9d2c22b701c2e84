"""Place a packed figure on its page: heading, devices, legend, one below the other and about as wide as each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from viz.packing.grid import UNIT, Size
from viz.packing.measured_parts import MeasuredParts, PointSize
from viz.packing.packing import estimate_size, pack_parts
from viz.packing.parts import count_covered
from viz.packing.wiring import Wiring
from viz.style import Style, fitted

_LEAST = 240.0  # points: a drawing is no narrower, for its heading
_GAP = 7.0  # points between heading, devices and legend
_SAMPLE_GAP, _LEGEND_PAD = 10.0, 3.0
_SMALL_TEXT = 12  # the power by which text that is smaller than wanted counts
_LARGE_TEXT = 0.5  # the power by which text that is larger than it must be counts, where a page is filled
_SPARE = 1.02  # by so much text is to be larger than it must be: lines may need more room than is estimated
_ASPECT = 0.5  # how much a shape other than that of the page counts, where the page has no size


@dataclass(frozen=True, slots=True)
class Page:
    """Record of a packed figure on its page, in points counted downwards from its upper left corner.

    `heading` are its lines; `samples` are the middles of the samples of the legend, `legend` its box.
    """

    width: float
    height: float
    heading: tuple[str, ...]
    heading_size: PointSize
    top: float
    left: float
    wiring: Wiring
    legend: tuple[float, float, float, float]
    samples: tuple[tuple[float, float], ...]


def lay_out_page(measured: MeasuredParts, style: Style, rounded: frozenset[str]) -> Page:
    """Return the page of a figure."""
    wiring, width = _pack(measured, style, rounded)
    return _stack(measured, style, wiring, max(wiring.arrangement.size[0] * UNIT, width))


def _pack(measured: MeasuredParts, style: Style, rounded: frozenset[str]) -> tuple[Wiring, float]:
    """Return the devices with their lines, and the width that they fill: that of a column where they fit one."""

    def fit(size: Size) -> Size:
        wide, high = _pick_page(measured, style, size)
        room = max(high - _measure_height(measured, wide), 0)
        return int(wide / UNIT + 0.01) if wide > size[0] * UNIT else 0, int(room / UNIT + 0.01)

    wiring = pack_parts(measured.parts, lambda size: _rate(measured, style, size), fit, rounded, bool(style.widths))
    return wiring, _pick_page(measured, style, wiring.arrangement.size)[0]


def estimate_scale(measured: MeasuredParts, style: Style) -> float:
    """Return about by what a figure is scaled on its page, without routing its lines."""
    size = estimate_size(measured.parts, lambda size: _rate(measured, style, size), bool(style.widths))
    width = _pick_page(measured, style, size)[0]
    height = _measure_height(measured, width) + size[1] * UNIT
    return fitted(style, width + 2 * style.pad, height + 2 * style.pad)


def measure_empty_page(page: Page, style: Style) -> float:
    """Return the share of a page with its margin that no device, bar, label, heading or legend covers."""
    left, top, right, bottom = page.legend
    drawn = count_covered(page.wiring.arrangement) * UNIT * UNIT
    covered = drawn + page.heading_size[0] * page.heading_size[1] + (right - left) * (bottom - top)
    width, height = page.width + 2 * style.pad, page.height + 2 * style.pad
    if style.enlarges:  # to the shape of its page
        aspect = style.widths[-1] / style.height
        width, height = max(width, height * aspect), max(height, width / aspect)
    return 1 - covered / (width * height)


def _pick_page(measured: MeasuredParts, style: Style, size: Size) -> PointSize:
    """Return how large a drawing of devices of a size is to be, without the room around it.

    That is as wide as a column which takes it, or the shape of a page which has one; the height is 0 where any will do.
    """
    natural = size[0] * UNIT
    least = max(natural, _LEAST if measured.headings[0][0] else 0.0)
    if style.enlarges:
        aspect = style.widths[-1] * 72 / (style.height * 72)
        height = _measure_height(measured, least) + size[1] * UNIT + 2 * style.pad
        width = max(least + 2 * style.pad, height * aspect)
        return width - 2 * style.pad, width / aspect - 2 * style.pad
    columns = [72 * one / style.scale - 2 * style.pad for one in style.widths]
    return next((one for one in columns if one >= natural), least), 0.0


def _rate(measured: MeasuredParts, style: Style, size: Size) -> float:
    """Return how bad a size of the devices is: the paper it takes, more where text is small or the shape is odd."""
    width = _pick_page(measured, style, size)[0] + 2 * style.pad
    height = _measure_height(measured, width - 2 * style.pad) + size[1] * UNIT + 2 * style.pad
    if not style.widths:
        return width * height * (1 + _ASPECT * abs(math.log(width / height / style.aspect)))
    scale = fitted(style, width, height) / style.scale
    if style.enlarges:
        too_small = max(_SPARE * style.legible / scale, 1.0)
        return float(too_small**_SMALL_TEXT / scale**_LARGE_TEXT)
    return width * height / scale**_SMALL_TEXT


def _measure_height(measured: MeasuredParts, width: float) -> float:
    """Return the height of heading and legend, with the gaps beside them."""
    heading = _choose_heading(measured, width)[1][1]
    legend = _measure_legend(measured.samples, width, measured.legend_title)
    return heading + (_GAP if heading else 0) + (legend + _GAP if legend else 0)


def _choose_heading(measured: MeasuredParts, width: float) -> tuple[tuple[str, ...], PointSize]:
    """Return the lowest heading that is not wider, else the narrowest."""
    fitting = [one for one in measured.headings if one[1][0] <= width + 1]
    return min(fitting, key=lambda one: one[1][1]) if fitting else min(measured.headings, key=lambda one: one[1][0])


def _break_samples(samples: Sequence[PointSize], width: float) -> list[list[int]]:
    """Return the samples, by number, in rows that are no wider."""
    rows: list[list[int]] = []
    used = math.inf
    for i, (wide, _) in enumerate(samples):
        if used + wide + _SAMPLE_GAP > width - 2 * _LEGEND_PAD:
            rows.append([])
            used = -_SAMPLE_GAP
        rows[-1].append(i)
        used += wide + _SAMPLE_GAP
    return rows


def _measure_legend(samples: Sequence[PointSize], width: float, title: float) -> float:
    if not samples:
        return 0.0
    rows = [max(samples[i][1] for i in row) for row in _break_samples(samples, width)]
    return sum(rows) + 6.0 * (len(rows) - 1) + 2 * _LEGEND_PAD + title


def _stack(measured: MeasuredParts, style: Style, wiring: Wiring, width: float) -> Page:
    heading, heading_size = _choose_heading(measured, width)
    width = max(width, heading_size[0])
    tall = wiring.arrangement.size[1] * UNIT
    legend = _measure_legend(measured.samples, width, measured.legend_title)
    top = heading_size[1] + _GAP if heading else 0.0
    end = top + tall + (_GAP + legend if legend else 0.0)
    box = (0.0, top + tall + _GAP, width, top + tall + _GAP + legend) if legend else (0.0, 0.0, 0.0, 0.0)
    return Page(
        width,
        end,
        heading,
        heading_size,
        top,
        (width - wiring.arrangement.size[0] * UNIT) / 2,
        wiring,
        box,
        tuple(_place_samples(measured.samples, width, box[1] + _LEGEND_PAD + measured.legend_title)),
    )


def _place_samples(samples: Sequence[PointSize], width: float, top: float) -> list[tuple[float, float]]:
    """Return the middles of the samples, each row from the left."""
    found = []
    for row in _break_samples(samples, width):
        high = max(samples[i][1] for i in row)
        starts = accumulate((samples[i][0] + _SAMPLE_GAP for i in row), initial=_LEGEND_PAD)
        found += [(x + samples[i][0] / 2, top + high / 2) for x, i in zip(starts, row, strict=False)]
        top += high + 6.0
    return found
