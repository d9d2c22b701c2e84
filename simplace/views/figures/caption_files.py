"""Write the caption of a figure beside it, as text and for LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

from simplace.errors import DrawingError
from simplace.views.file_mark import write_file
from viz.names import visible

_MARK = "caption made by simplace"  # in the last line; a file without it is not replaced
_BETWEEN = re.compile(r" · |\n")  # parts of a caption
_WORD = re.compile(r"[^\s;:,.()]+(?:[:.][^\s;:,.()]+)*")  # such as GPU:0, Session.run, 15/15
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_COMMANDS = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
_SIGNS = {
    "×": r"$\times$", "…": r"\ldots{}", "→": r"$\rightarrow$", "µ": r"$\mu$", "·": r"$\cdot$", "±": r"$\pm$",
    "≥": r"$\geq$", "≤": r"$\leq$",
}  # fmt: skip


def write_captions(title: str, description: str, caption: str, figure: str | Path) -> list[Path]:
    """Write FIGURE.txt and FIGURE.tex beside a figure, and return those written: no other file is replaced."""
    said = " ".join(_list_sentences(title, description, caption))
    texts = {".txt": f"{visible(said)}\n\n({_MARK})\n", ".tex": f"{write_latex(title, said)}% {_MARK}\n"}
    written = []
    for ending, text in texts.items():
        path = Path(figure).with_suffix(ending)
        if _is_replaceable(path):
            write_file(path, text.encode(), overwrite=True)
            written.append(path)
    return written


def write_latex(title: str, said: str) -> str:
    r"""Return a caption for LaTeX, with a short form for lists of figures.

    >>> print(write_latex("a_b", "a_b: 50 %."), end="")
    \caption[a\_b]{a\_b: 50 \%.}
    """
    return f"\\caption[{_escape(title)}]{{{_escape(said)}}}\n"


def _list_sentences(title: str, description: str, caption: str) -> list[str]:
    """Return title and description, and what the caption adds to them.

    A part of the caption whose words all stand before it is left out, such as who agrees; and what a description for
    those who do not see a chart repeats of its heading.

    >>> _list_sentences("All on GPU:0", "Placement of f: 5 nodes. TensorFlow agrees.", "f on GPU:0 · 5 nodes · at once")
    ['All on GPU:0.', 'Placement of f: 5 nodes. TensorFlow agrees.', 'Shown: at once.']
    """
    parts = [part for part in _BETWEEN.split(caption) if part]
    shown = "; ".join(parts)
    whole = description.removesuffix(f" {title}; {shown}.") if shown else description
    if shown and whole.endswith(f"; {shown}."):
        whole = f"{whole.removesuffix(f'; {shown}.')}."
    known = set(_WORD.findall(f"{title} {whole}"))
    added = [part for part in parts if not known.issuperset(_WORD.findall(part))]
    return list(filter(None, (_end(title), whole, f"Shown: {'; '.join(added)}." if added else "")))


def _escape(text: str) -> str:
    escaped = _SPECIAL.sub(lambda found: _COMMANDS.get(found[0], f"\\{found[0]}"), visible(text))
    for sign, command in _SIGNS.items():
        escaped = escaped.replace(sign, command)
    return escaped.replace("[", "{[}").replace("]", "{]}")


def _end(sentence: str) -> str:
    return f"{sentence}." if sentence and not sentence.endswith(".") else sentence


def _is_replaceable(path: Path) -> bool:
    try:
        return not path.exists() or (path.is_file() and _MARK in path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise DrawingError(f"{path}: cannot read: {error.strerror}") from None
