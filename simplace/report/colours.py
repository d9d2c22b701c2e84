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
_STRONG = 0.5  # of a hue: the colours of reasons beyond the palette's
_SAY_ANOTHER_THING = frozenset({"OK", "NO"})


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
    """Return each reason's label, its letters, which no other has, and its class.

    >>> rule_signs()["soft_fallback"]
    Sign(label='soft fallback', letters='SF', style='rule-5')
    """
    signs: dict[str, Sign] = {}
    for i, reason in enumerate(ALL_REASONS):
        words = reason.rule.upper().split("_")
        taken = {sign.letters for sign in signs.values()} | _SAY_ANOTHER_THING
        first = "".join(word[0] for word in words) if len(words) > 1 else words[0][:2]
        others = (words[0][0] + letter for letter in "".join(words)[1:])
        letters = next(two for two in (first, *others) if two not in taken)
        signs[reason.rule] = Sign(" ".join(words).lower(), letters, f"rule-{i}")
    return signs


def write_style_sheet(devices: Sequence[Device]) -> str:
    """Return the style sheet of all classes: all set `--fill` and `--line`, costs `--night` for the dark theme."""
    seen: Counter[str] = Counter()
    rules = []
    for i, device in enumerate(devices):
        rules.append(_write_rule(f"device-{i}", device.type, seen[device.type]))
        seen[device.type] += 1
    for i in range(len(ALL_REASONS)):
        kind, index = ("CPU", i - _HUES) if _HUES <= i < _HUES + _GREYS else ("GPU", i % (_HUES + _GREYS))
        rules.append(_write_rule(f"rule-{i}", kind, index, is_strong=i >= _HUES + _GREYS))
    for i, share in enumerate(_COSTS):
        night = f"color-mix(in srgb,{_COST_HUE} {share:.0%},#14171c)"
        rules.append(f".cost-{i}{{--fill:{blend(_COST_HUE, share)};--line:#8c3d00;--night:{night}}}")
    return "\n".join(rules)


def _write_rule(style: str, kind: str, index: int, is_strong: bool = False) -> str:
    found = look(Group(style, style, kind=kind, index=index))
    return f".{style}{{--fill:{blend(found.line, _STRONG) if is_strong else found.fill};--line:{found.line}}}"
