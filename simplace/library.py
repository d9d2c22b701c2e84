"""simplace as a library: what `simplace.place` and `simplace.check` do and return."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from simplace import targets
from simplace.exports.json_report import report
from simplace.machine_file import machine
from simplace.result import Result
from simplace.views.notebook import html


class Placements(Result):
    """Hold what a target's placements are, and export themselves; a notebook shows them as a page."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/placement/1)."""
        return report(self)

    def _repr_html_(self) -> str:
        return html(self)


def run(
    command: Callable[[str, targets.Settings], Result],
    target: str,
    devices: str | None,
    visible: str | None,
    **chosen: Any,
) -> Placements:
    """Place a target with `targets.place` or `targets.check`, on the machine that the user describes."""
    found, note = machine(devices, visible, os.environ)
    result = command(target, targets.Settings(found, **chosen)).with_devices_note(note)
    return Placements(**{field.name: getattr(result, field.name) for field in fields(result)})
