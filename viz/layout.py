"""Turn DOT into SVG, PNG or PDF bytes with Graphviz, in a process of its own.

A `dot` on PATH is used where there is one, otherwise the Graphviz bundled in pygraphviz's wheels. Both draw with the
fonts of `viz/fonts`, so that text has the same size on each machine and appears on machines without fonts; the
system's fonts only supply characters that those lack.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args
from xml.sax.saxutils import escape

from viz.dot import to_dot
from viz.errors import LayoutError
from viz.figure import Figure
from viz.laid_out import finished, scale_of
from viz.style import SCREEN, Style
from viz.svg import described, tidy

Format = Literal["svg", "png", "pdf"]

_FONTS = Path(__file__).with_name("fonts")
_BUNDLED = Path(__file__).with_name("bundled.py")
_POINTS_PER_INCH = 72  # what Graphviz assumes for SVG and PDF; other values would scale them


def draw(
    figure: Figure,
    file_format: Format = "svg",
    *,
    style: Style = SCREEN,
    timeout_s: float = 60.0,
    dpi: int = 192,
) -> bytes:
    """Draw a figure; see `render`. An SVG carries the figure's title and description for readers who do not see it."""
    _check(file_format)
    laid = _largest([_laid_out(one, style, timeout_s) for one in _directed(figure, style)], style)
    if file_format != "svg":
        return render(finished(laid, style), file_format, timeout_s=timeout_s, dpi=dpi)
    sized = finished(laid, style, titles=False)  # `tidy` does better: it lifts the titles, with a rim
    return described(render(sized, timeout_s=timeout_s), figure.title, figure.description)


def render(dot: str, file_format: Format = "svg", *, timeout_s: float = 60.0, dpi: int = 192) -> bytes:
    """Lay DOT out and return the drawing; the same DOT and Graphviz version give the same bytes.

    `dpi` (dots per inch) is for PNG alone. No file is written but a temporary font configuration.

    Raises:
        LayoutError: no Graphviz is installed, the DOT does not parse, Graphviz failed, or `timeout_s` ran out.
    """
    _check(file_format)
    drawing = _graphviz(dot, file_format, dpi if file_format == "png" else _POINTS_PER_INCH, timeout_s)
    return _TIDIED[file_format](drawing)


def _directed(figure: Figure, style: Style) -> list[Figure]:
    """List what to lay out: for a page of a given size both directions, since an estimate may choose the smaller."""
    if figure.direction != "auto" or not style.widths:
        return [figure]
    return [replace(figure, direction="down"), replace(figure, direction="right")]


def _laid_out(figure: Figure, style: Style, timeout_s: float) -> str:
    return _graphviz(to_dot(figure, style), "dot", _POINTS_PER_INCH, timeout_s).decode()


def _largest(layouts: list[str], style: Style) -> str:
    """Pick the layout whose text is largest on the page, the first of several."""
    return max(layouts, key=lambda laid: scale_of(laid, style)) if len(layouts) > 1 else layouts[0]


def _check(file_format: str) -> None:
    if file_format not in get_args(Format):
        raise LayoutError(f"cannot draw as {file_format!r}; choose from: {', '.join(get_args(Format))}")


def _graphviz(dot: str, file_format: str, dpi: int, timeout_s: float) -> bytes:
    with tempfile.TemporaryDirectory(prefix="viz-") as scratch:
        config = Path(scratch, "fonts.conf")
        config.write_text(_font_config(scratch), encoding="utf-8")
        return _run(_command(file_format, dpi), dot, _environment(config), timeout_s)


def _dated(pdf: bytes) -> bytes:
    """Give a PDF the same date every time: the bundled cairo writes the present one, whatever SOURCE_DATE_EPOCH says.

    The date keeps its length, so the file's table of offsets still holds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(int(epoch) if epoch.isdecimal() else 0))
    return re.sub(rb"(/CreationDate \(D:)\d{14}", rb"\g<1>" + stamp.encode(), pdf)


def _as_it_is(drawing: bytes) -> bytes:
    return drawing


_TIDIED: dict[Format, Callable[[bytes], bytes]] = {"svg": tidy, "png": _as_it_is, "pdf": _dated}


def _command(file_format: str, dpi: int) -> list[str]:
    program = shutil.which("dot")
    if program is not None:
        return [program, f"-T{file_format}", f"-Gdpi={dpi}"]
    if find_spec("pygraphviz") is None:
        raise LayoutError(
            "no Graphviz here: run `pip install pygraphviz`, whose wheels bundle it, or put `dot` on PATH"
        )
    return [sys.executable, "-P", str(_BUNDLED), file_format, str(dpi)]  # -P: viz/html.py must not hide Python's


def _run(command: list[str], dot: str, environment: dict[str, str], timeout_s: float) -> bytes:
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=timeout_s, env=environment)
    except subprocess.TimeoutExpired:
        raise LayoutError(
            f"Graphviz did not finish within {timeout_s:g} s on {len(dot):,} characters of DOT; "
            "draw fewer nodes (collapse scopes) or allow more time"
        ) from None
    if done.returncode == 0 and done.stdout:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise LayoutError(f"Graphviz failed (exit status {done.returncode}): {said[-1] if said else 'it said nothing'}")


def _environment(config: Path) -> dict[str, str]:
    """Copy the environment with our fonts, and a fixed date for PDF metadata unless the caller fixed one."""
    return {"SOURCE_DATE_EPOCH": "0"} | os.environ | {"FONTCONFIG_FILE": str(config), "PYTHONWARNINGS": "ignore"}


def _font_config(scratch: str) -> str:
    """Write a configuration that prefers `viz/fonts`, and hides other versions of the same fonts."""
    ours = escape(str(_FONTS))
    system = "".join(f"<dir>{escape(str(folder))}</dir>" for folder in _system_fonts())
    return (
        '<?xml version="1.0"?><fontconfig>'
        f"<dir>{ours}</dir>{system}<cachedir>/var/cache/fontconfig</cachedir>"
        f'<cachedir prefix="xdg">fontconfig</cachedir><cachedir>{escape(scratch)}</cachedir>'
        f"<selectfont><rejectfont><glob>*/DejaVuSans*</glob></rejectfont>"
        f"<acceptfont><glob>{ours}/*</glob></acceptfont></selectfont>"
        '<match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>'
        "</fontconfig>"
    )


def _system_fonts() -> list[Path]:
    folders = ["/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "/System/Library/Fonts"]
    folders += [os.path.expanduser(folder) for folder in ("~/.local/share/fonts", "~/.fonts", "~/Library/Fonts")]
    folders += [os.path.join(os.environ.get("WINDIR", r"C:\Windows"), "Fonts")]
    return [Path(folder) for folder in folders if Path(folder).is_dir()]
