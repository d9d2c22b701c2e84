"""The signs of reasons: letters that no other reason has and that say nothing else, colours that differ."""

from __future__ import annotations

import re
from itertools import combinations

from simplace.devices.device_set import local_devices
from simplace.report.colours import rule_signs, write_style_sheet
from viz.palette import contrast

_INK = "#14171c"  # of the letters


def test_no_two_reasons_have_the_same_letters() -> None:
    letters = [sign.letters for sign in rule_signs().values()]
    assert len(set(letters)) == len(letters)
    assert "OK" not in letters


def test_no_two_reasons_have_colours_that_are_near() -> None:
    sheet = write_style_sheet(list(local_devices([("CPU", 1)])))
    fills = re.findall(r"\.rule-\d+\{--fill:(#\w{6});--line:(#\w{6})\}", sheet)
    assert len(fills) == len(rule_signs())
    assert {pair for pair in combinations(fills, 2) if pair[0] == pair[1]} == set()
    assert min(contrast(_INK, fill) for fill, _ in fills) >= 4.5
