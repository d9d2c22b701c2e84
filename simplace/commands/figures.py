"""The options and the writing of figures, which subcommands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from simplace.commands import options as words
from simplace.commands import output
from simplace.errors import DrawingError
from simplace.progress import show_progress

if TYPE_CHECKING:
    from viz import Figure
    from viz.area import AreaChart
    from viz.gantt import Gantt

STYLES = ("screen", "paper", "slide", "dark")  # as in viz.style, which `--help` does not wait for


def add_figure(
    parser: argparse.ArgumentParser, what: str, figures: Sequence[str], has_boxes: bool = True, detail: str = ""
) -> None:
    """Add `-o` with the figures to choose from, the first being the default, and their style.

    `detail` is the figure that `--detail` draws, "" where there is none such.
    """
    group = parser.add_argument_group("figure")
    group.add_argument("-o", "--output", metavar="FILE", help=f"draw {what}: {', '.join(output.FIGURES)}")
    group.add_argument("--figure", action=_NotedOption, choices=figures, default=figures[0],
                       help="what to draw (default: %(default)s)")  # fmt: skip
    if detail:
        group.add_argument("--detail", dest="figure", action=_NotedOption, nargs=0, const=detail,
                           help=f"draw ops, not parts of the program: short for --figure {detail}")  # fmt: skip
    group.add_argument("--style", action=_NotedOption, choices=STYLES, default=STYLES[0], help="sizes and colours for "
                       "a screen, a column or page of print, a slide, or a dark page (default: "
                       "%(default)s)")  # fmt: skip
    output.add_force(group)
    if has_boxes:
        group.add_argument("--nodes", action=_NotedOption, metavar="N", type=words.parse_positive, help="draw at most "
                           "N boxes: name scopes, or parts of the program, collapse (default: depends on the "
                           "style)")  # fmt: skip
    parser.set_defaults(noted=())


class _NotedOption(argparse.Action):
    """Store the value of an option of figures, and note in `noted` that it was given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)
        namespace.noted = (*namespace.noted, option_string)


def check_figure(options: argparse.Namespace) -> None:
    """Raise `DrawingError` if the figure cannot be written, or if options of figures are given and none is drawn."""
    if options.noted and not options.output:
        flags = " and ".join(dict.fromkeys(options.noted))
        raise DrawingError(f"{flags}: nothing is drawn without -o; add -o FILE, such as -o figure.svg")
    output.check_figure(options.output)


def choose_box_limit(options: argparse.Namespace) -> int:
    """Return the maximal number of boxes in a figure."""
    from simplace.views.figures.drawing import style_of

    chosen: int | None = options.nodes
    return style_of(options.style).boxes if chosen is None else chosen


def fit_figure(make: Callable[[int], Figure], options: argparse.Namespace) -> Figure:
    """Return a figure with as many boxes as `--nodes` says, or without it as many as are legible in the style."""
    from simplace.views.figures.drawing import fit_boxes

    limit = choose_box_limit(options)
    with show_progress() as stage:
        stage(f"choosing what {options.output} shows")
        return make(limit) if options.nodes is not None else fit_boxes(make, options.style, limit)


def write_figure(what: Figure | Gantt | AreaChart, said: str, options: argparse.Namespace) -> None:
    """Draw to the file of `-o`, and report it on stderr."""
    from simplace.views.figures.drawing import draw_picture, write_beside

    with show_progress() as stage:
        stage(f"drawing {options.output}")
        data = draw_picture(what, options.output, options.style)
    output.write_output_file(options.output, data, options.force)
    beside = write_beside(what, options.output, options.style)
    more = f"; its caption: {', '.join(map(str, beside))}" if beside else ""
    output.print_text(f"drew {said}: {options.output}{more}", sys.stderr)
