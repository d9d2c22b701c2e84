"""Write the parts of the page that are plain HTML: summaries, surprises, agreement; readable without any script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from simplace.explain.findings import Finding, find_in_placement, line_of
from simplace.explain.sentence import Sentence
from simplace.explain.sentences import tell_conflict
from simplace.placement.placement import Placement
from simplace.report.colours import Sign
from simplace.report.packed_sentences import FIRST
from simplace.result import Placed, Result
from simplace.views.text import summary, tables
from viz import Table
from viz.names import elide, visible

_CELL = 120  # letters
_DIFFERENCES = 500


def text(words: str, limit: int = 2000) -> str:
    """Escape a text for HTML; what cannot be shown is replaced, a very long text loses its middle.

    >>> text("<b>\\n")
    '&lt;b&gt;↵'
    """
    return escape(elide(visible(words), limit))


def sentence(parts: Sentence) -> str:
    """Write a sentence, the nodes in it as links into the graph."""
    return "".join(text(part) if isinstance(part, str) else _link(part.node, part.text) for part in parts)


def _link(node: int, words: str) -> str:
    number = node - FIRST
    return f"<a class='link' href='#node-{number}' data-node='{number}'><bdi>{text(words)}</bdi></a>"


def table(content: Table, first: dict[str, str] | None = None) -> str:
    """Write a table; `first` maps cells of the first column to HTML that stands before them."""
    heads = "".join(f'<th scope="col" class="{column.align}">{text(column.title)}</th>' for column in content.columns)
    rows = []
    for row in content.rows:
        cells = [f'<td class="{c.align}">{_cell(word)}</td>' for word, c in zip(row, content.columns, strict=True)]
        before = (first or {}).get(row[0], "")
        cells[0] = f'<th scope="row">{before}{_cell(row[0])}</th>'
        rows.append(f"<tr>{''.join(cells)}</tr>")
    footer = f"<p class='faint'>{text(content.footer)}</p>" if content.footer else ""
    return f"<div class='scroll'><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>" + (
        footer
    )


def badge(sign: Sign) -> str:
    """Write the letters of a device or a reason in its colour."""
    return f'<span class="badge {sign.style}" aria-hidden="true">{text(sign.letters)}</span> '


def program_summary(placed: Placed, signs: Sequence[Sign]) -> str:
    """Write the summary of one program: what runs where, what TensorFlow refuses, what surprises."""
    placement = placed.placement
    badges = {sign.label: badge(sign) for sign in signs}
    parts = [f"<p>{text(summary.title(placed))}</p>", table(tables.device_table(placed), badges)]
    parts.append(_refusal(placement))
    parts.append(_surprises(placement))
    return "".join(parts)


def agreement(result: Result) -> str:
    """Write how far TensorFlow agrees, program by program, with every difference."""
    parts = [f"<p class='verdict'>{text(summary.agreement_line(result))}</p>"]
    for placed in result.programs:
        parts.append(f"<h3>{text(placed.name, _CELL)}</h3>")
        asked = placed.agreement
        if asked is None:
            parts.append(f"<p>not asked{': ' + text(result.unchecked) if result.unchecked else ''}</p>")
            continue
        codes = [f"{who}: {text(code)}" for who, code in zip(("simplace", "TensorFlow"), asked.refusals, strict=True)]
        refused = f", refused by {' and '.join(codes)}" if any(asked.refusals) else ""
        parts.append(f"<p>{asked.same:,} of {asked.total:,} nodes on the same device{refused}</p>")
        if asked.differences:
            parts.append(table(tables.difference_table(placed, _DIFFERENCES)))
    return "".join(parts)


def notes(result: Result) -> str:
    """Write the remarks about the run, and how it ended before its end."""
    lines = [*result.remarks, *([str(result.failure)] if result.failure else [])]
    return "".join(f"<p class='note'>{text(line)}</p>" for line in lines)


def _cell(words: str) -> str:
    return f"<bdi>{text(words, _CELL)}</bdi>"


def _refusal(placement: Placement) -> str:
    refusal = placement.refusal
    if refusal is None:
        return ""
    first = refusal.message.split("\nColocation Debug Info")[0].splitlines()
    lines = [*map(text, first[:1]), *map(sentence, tell_conflict(placement))]
    said = "".join(f"<li>{line}</li>" for line in lines)
    return f"<h3>Refused</h3><p>TensorFlow does not place this graph ({text(refusal.code)}).</p><ul>{said}</ul>"


def _surprises(placement: Placement) -> str:
    found = find_in_placement(placement)
    if not found:
        return "<h3>Surprises</h3><p class='faint'>None: every request was granted and every device has work.</p>"
    lines = "".join(_surprise(placement, one) for one in found)
    return f"<h3>Surprises <span class='count'>{len(found)}</span></h3><ul class='surprises'>{lines}</ul>"


def _surprise(placement: Placement, one: Finding) -> str:
    said = text(line_of(one))
    show = ""
    if one.nodes:
        show = f" {_link(placement.graph.ids[one.nodes[0]], 'show in the graph')}"
    return f"<li><b>{one.title}</b> {said}{show}</li>"
