"""Run Graphviz on DOT in a process of its own: everywhere the same Graphviz, with the same fonts.

That is the Graphviz in pygraphviz's wheels; a `dot` of the system draws where that is missing, or where GRAPHVIZ_DOT
names it. Text is measured with the fonts of `viz/fonts` alone, and no variable that steers Graphviz or its libraries is
passed on. So the same DOT gives the same drawing on each machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

from viz.errors import LayoutError
from viz.scratch import scratch_folder

_FONTS = Path(__file__).with_name("fonts")
_BUNDLED = Path(__file__).with_name("bundled.py")
_ASKED = "GRAPHVIZ_DOT"  # as PlantUML and others call it
_OF_GLYPHS = ("png", "pdf")  # what holds text as shapes, and needs a shape for each character
# Where Thai words end Pango asks libthai, and crashes where that has no dictionary. No label is broken between words,
# so one without any word does: in libdatrie's format an alphabet of no ranges, a double array of its root, no tails.
_NO_WORDS = bytes.fromhex(
    "d9fcd9fc 00000000 dafcdafc 00000003 ffffffff ffffffff 00000003 00000000 dffcdffc 00000000 00000000"
)
# What a process needs to start; what else is set may steer Graphviz, Pango, cairo, FreeType and fontconfig.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "TMPDIR", "SYSTEMROOT", "SOURCE_DATE_EPOCH")


def run_graphviz(dot: str, file_format: str, dpi: int, timeout_s: float) -> bytes:
    """Return what Graphviz makes of DOT; no file is written but a temporary font configuration.

    Raises:
        LayoutError: no Graphviz is installed, the DOT does not parse, Graphviz failed, there is no room for a temporary
            file, or `timeout_s` ran out.
    """
    with ExitStack() as held:
        try:
            scratch = held.enter_context(scratch_folder("viz"))
            config = Path(scratch, "fonts.conf")
            others = _system_fonts() if file_format in _OF_GLYPHS else []
            config.write_text(_font_config(scratch, others), encoding="utf-8")
            Path(scratch, "thbrk.tri").write_bytes(_NO_WORDS)
        except OSError as error:
            raise LayoutError(
                f"no temporary file can be made ({error.strerror}); set TMPDIR to another folder"
            ) from error
        return _run(_command(file_format, dpi), dot, _environment(config), timeout_s)


def system_dot() -> str | None:
    """Return the path of the system's `dot` if it is what draws, None for the Graphviz in pygraphviz's wheel.

    Raises:
        LayoutError: neither is installed, or GRAPHVIZ_DOT names no program.
    """
    asked = os.environ.get(_ASKED)
    if not asked and find_spec("pygraphviz") is not None:
        return None
    program = shutil.which(asked or "dot")
    if program is not None:
        return program
    if asked:
        raise LayoutError(f"{_ASKED}={asked!r} is no program; unset it to draw with the Graphviz in pygraphviz's wheel")
    raise LayoutError("no Graphviz here: run `pip install pygraphviz`, whose wheels bundle it, or put `dot` on PATH")


def _command(file_format: str, dpi: int) -> list[str]:
    program = system_dot()
    if program is not None:
        return [program, f"-T{file_format}", f"-Gdpi={dpi}"]
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
    """Write an environment of our own: our fonts and words, no locale, a date for PDFs unless the caller has one."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = {
        "FONTCONFIG_FILE": str(config),
        "LIBTHAI_DICTDIR": str(config.parent),
        "LC_ALL": "C.UTF-8",
        "PYTHONWARNINGS": "ignore",
    }
    return {"SOURCE_DATE_EPOCH": "0"} | kept | ours


def _font_config(scratch: str, others: list[Path]) -> str:
    """Write a configuration with `viz/fonts`, and other fonts for what those lack, without other versions of them."""
    ours = escape(str(_FONTS))
    folders = "".join(f"<dir>{escape(str(folder))}</dir>" for folder in others)
    cache = "<cachedir>/var/cache/fontconfig</cachedir>" if others else ""
    return (
        '<?xml version="1.0"?><fontconfig>'
        f"<dir>{ours}</dir>{folders}{cache}<cachedir>{escape(scratch)}</cachedir>"
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
