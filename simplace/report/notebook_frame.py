"""Show a result in a notebook: its page in a frame."""

from __future__ import annotations

from html import escape

from simplace.report.page import write_page
from simplace.result import Result
from simplace.views import notebook
from simplace.views.text import summary
from viz.names import visible

LARGEST = 5_000  # nodes of all programs whose page a notebook keeps in each output: some 1.5 MB
_HEIGHT = 680  # pixels: the first screen of the page without its foot
_STYLE = f"width:100%;height:{_HEIGHT}px;border:1px solid #ccc;border-radius:4px;resize:vertical"


def write_notebook_html(result: Result) -> str:
    """Return a result as HTML: its page in a frame, between what it is and whether TensorFlow agrees.

    Where the programs have more than `LARGEST` nodes together, or there is none, it is tables and figures. The frame
    runs the page's own scripts alone, which reach nothing of the notebook.
    """
    nodes = sum(len(placed.placement.graph.op_ids) for placed in result.programs)
    if not 0 < nodes <= LARGEST:
        return notebook.write_html(result)
    head = escape(visible(f"{result.target} on {result.devices}"))
    agreement = escape(visible(summary.agreement_line(result)))
    page = _quote(write_page(result))
    frame = f"<iframe sandbox='allow-scripts' title='{head}' style='{_STYLE}' srcdoc='{page}'></iframe>"
    return f"<div><p><b>{head}</b></p>{frame}<p>{agreement}</p></div>"


def _quote(page: str) -> str:
    """Escape a page for an attribute in single quotes: it has many double ones."""
    return page.replace("&", "&amp;").replace("'", "&#39;")
