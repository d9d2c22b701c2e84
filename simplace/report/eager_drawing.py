"""Draw what ran outside of functions, for the page of a program that has no graph."""

from __future__ import annotations

import base64

from simplace.result import Result
from simplace.views.figures.drawing import draw_picture
from simplace.views.figures.eager_figure import eager_figure

_SPOKEN = "The lines of the program, the devices that run their ops, and the copies between them, as in the summary"


def draw_eager_ops(result: Result) -> str:
    """Return the figure of the eager ops as an image within the page; "" where there are none."""
    if result.eager is None:
        return ""
    picture = base64.b64encode(draw_picture(eager_figure(result), "eager.svg")).decode()
    image = f'<img alt="{_SPOKEN}" src="data:image/svg+xml;base64,{picture}">'
    return f'<div class="drawing" tabindex="0" role="group" aria-label="The figure">{image}</div>'
