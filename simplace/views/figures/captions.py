"""Describe what a figure shows in a sentence or two, for print captions and for screen readers."""

from __future__ import annotations

from collections import Counter

from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.text.quantities import format_count

_KINDS = {
    "function": "tf.function",
    "session": "session graph",
    "graph": "graph",
    "compiled": "tf.function",
    "dataset": "function",
    "call": "function",
}
_NAMED = 4  # devices that are listed by name


def describe_placement(placed: Placed, what: str = "Placement") -> str:
    """Return what a figure is of: program, devices, nodes, TensorFlow's version, and whether TensorFlow agrees."""
    placement = placed.placement
    count = len(placement.decisions)
    nodes = f": {format_count(count, 'node')}" if count else ","  # none where the first of them is refused
    kind = _KINDS[placement.program.kind]
    version = placement.groups.support.table.version
    rules = f"the rules of TensorFlow {version}" if version else "TensorFlow's rules"
    soft = "on" if placement.soft_placement else "off"
    start = f"{what} of the {kind} {placed.title} on {format_devices(placement)}"
    return f"{start}{nodes} by {rules}, soft placement {soft}. {_describe_agreement(placed)}"


def shorten_title(title: str) -> str:
    """Return a program's title with its file, but without the folders of that.

    >>> shorten_title("fit, train step (samples/mnist/train.py:24)"), shorten_title("a/b")
    ('fit, train step (train.py:24)', 'a/b')
    """
    name, between, at = title.rpartition(" (")
    return f"{name} ({at.rpartition('/')[2]}" if between and at.endswith(")") else title


def format_devices(placement: Placement) -> str:
    """Return the devices of a placement as text.

    They are named where they are few, otherwise counted by type.
    """
    names = [device.short for device in placement.devices]
    if len(names) > _NAMED:
        names = [
            format_count(count, kind) for kind, count in Counter(device.type for device in placement.devices).items()
        ]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _describe_agreement(placed: Placed) -> str:
    agreement = placed.agreement
    if placed.placement.program.pins:
        return "A what-if, not checked against TensorFlow."
    if agreement is None:
        return "Not checked against TensorFlow."
    if placed.placement.refusal is not None:
        code = placed.placement.refusal.code
        if agreement.holds:
            return f"TensorFlow refuses the graph ({code}), as predicted."
        return f"By its rules TensorFlow refuses the graph ({code}), but its own log differs."
    if agreement.holds:
        return f"TensorFlow's own log agrees on all of them ({agreement})."
    return f"TensorFlow's own log differs: {agreement} are the same."
