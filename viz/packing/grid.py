"""The grid on which boxes lie and lines run: whole units, `y` counted downwards."""

from __future__ import annotations

import math
from dataclasses import dataclass

UNIT = 6.0  # points

Point = tuple[int, int]
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rect:
    """Describe a box: its grid points from `left` to `right` and from `top` to `bottom`, both included."""

    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def at(cls, left: int, top: int, size: Size) -> Rect:
        """Return the box of a size with its upper left corner at a point."""
        return cls(left, top, left + size[0], top + size[1])

    @property
    def size(self) -> Size:
        """Return width and height."""
        return self.right - self.left, self.bottom - self.top

    @property
    def middle(self) -> tuple[float, float]:
        """Return the point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def moved(self, x: int, y: int) -> Rect:
        """Return the box elsewhere."""
        return Rect(self.left + x, self.top + y, self.right + x, self.bottom + y)

    def overlaps(self, other: Rect) -> bool:
        """Return whether two boxes have a point in common."""
        apart = self.right < other.left or other.right < self.left or self.bottom < other.top or other.bottom < self.top
        return not apart

    def holds(self, point: Point) -> bool:
        """Return whether a point is in the box or at its rim."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom


def snap(width: float, height: float, even: bool = True) -> Size:
    """Return the least size in units that holds one in points; where `even`, its middle is a point of the grid.

    >>> snap(50, 20), snap(50, 20, even=False)
    ((10, 4), (9, 4))
    """
    step = 2 if even else 1
    return tuple(step * max(math.ceil(side / UNIT / step - 0.01), 1) for side in (width, height))  # type: ignore[return-value]


def span(rects: list[Rect]) -> Rect:
    """Return the least box around some boxes; there must be one."""
    return Rect(
        min(rect.left for rect in rects), min(rect.top for rect in rects),
        max(rect.right for rect in rects), max(rect.bottom for rect in rects),
    )  # fmt: skip
