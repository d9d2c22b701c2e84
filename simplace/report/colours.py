"""Colours and letters of the page: of devices, of reasons, of costs; colour is never the only sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from simplace.devices.device_set import Device
from simplace.explain.reasons import ALL_REASONS
from viz import Group
from viz.palette import blend, look

_COSTS = (0.06, 0.2, 0.38, 0.6, 0.85)  # shares of a hue, from low to high cost
_COST_HUE = "#d55e00"
_HUES, _GREYS = 8, 4  # of the palette


@dataclass(frozen=True, slots=True)
class Sign:
    """Record of the sign of one device or reason: letters, and a CSS class that sets its colours."""

    label: str
    letters: str
    style: str


def device_signs(devices: Sequence[Device]) -> list[Sign]:
    """Return each device's letters, such as G1 for the second GPU, and its class."""
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    signs = []
    for i, device in enumerate(devices):
        index = seen[device.type]
        seen[device.type] += 1
        ends = range(1, len(device.type) + 1)
        letters = next((w for w in (f"{device.type[:end]}{index}" for end in ends) if w not in taken), device.short)
        taken.add(letters)
        signs.append(Sign(device.short, letters, f"device-{i}"))
    return signs


def rule_signs() -> dict[str, Sign]:
    """Return each reason's label, its letters and its class.

    >>> rule_signs()["soft_fallback"]
    Sign(label='soft fallback', letters='SF', style='rule-5')
    """
    signs = {}
    for i, reason in enumerate(ALL_REASONS):
        words = reason.rule.split("_")
        letters = "".join(word[0] for word in words) if len(words) > 1 else words[0][:2]
        signs[reason.rule] = Sign(" ".join(words), letters.upper(), f"rule-{i}")
    return signs


def write_style_sheet(devices: Sequence[Device]) -> str:
    """Return the style sheet of all classes: all set `--fill` and `--line`, costs `--night` for the dark theme."""
    seen: Counter[str] = Counter()
    rules = []
    for i, device in enumerate(devices):
        rules.append(_write_rule(f"device-{i}", device.type, seen[device.type]))
        seen[device.type] += 1
    for i in range(len(ALL_REASONS)):
        kind, index = ("GPU", i) if i < _HUES else ("CPU", (i - _HUES) % _GREYS)
        rules.append(_write_rule(f"rule-{i}", kind, index))
    for i, share in enumerate(_COSTS):
        night = f"color-mix(in srgb,{_COST_HUE} {share:.0%},#14171c)"
        rules.append(f".cost-{i}{{--fill:{blend(_COST_HUE, share)};--line:#8c3d00;--night:{night}}}")
    return "\n".join(rules)


def _write_rule(style: str, kind: str, index: int) -> str:
    found = look(Group(style, style, kind=kind, index=index))
    return f".{style}{{--fill:{found.fill};--line:{found.line}}}"
