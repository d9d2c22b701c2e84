"""Write the parts of the page that are plain HTML: summaries, findings, agreement; readable without any script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from simplace.explain.eager_findings import find_in_eager, line_of_eager
from simplace.explain.sentence import Sentence
from simplace.explain.sentences import state_conflict
from simplace.placement.placement import Placement
from simplace.report.colours import Sign
from simplace.report.packed_sentences import FIRST
from simplace.result import Placed, Result
from simplace.views.text import eager_tables, summary, tables
from simplace.views.text.eager_summary import write_eager_title
from simplace.views.text.traffic_phrases import describe_traffic
from viz import Table
from viz.names import elide, visible

_CELL = 120  # letters
_DIFFERENCES = 500
_LINES = 100  # of eager ops
_QUANTITY = re.compile(r"(\d[\d.,]* (?:[KMGT]iB|B|ns|µs|ms|s)\b)")
_SCOPES = re.compile(r"(?<=/)(?=\w)")
_JOINTS = re.compile(r"(?<=[_.])(?=[a-z])|(?<=[a-z0-9]:)(?=\d)|(?<=[a-z])(?=[A-Z])")  # text.js has it, too


def escape_text(words: str, limit: int = 2000) -> str:
    """Return a text escaped for HTML; what cannot be shown is replaced, a very long text loses its middle.

    >>> escape_text("<b>\\n")
    '&lt;b&gt;↵'
    """
    return escape(elide(visible(words), limit))


def write_sentence(parts: Sentence) -> str:
    """Return a sentence as HTML, its nodes as links into the graph."""
    return "".join(escape_text(part) if isinstance(part, str) else _write_link(part.node, part.text) for part in parts)


def _write_link(node: int, words: str) -> str:
    number = node - FIRST
    return f"<a class='link' href='#node-{number}' data-node='{number}'><bdi>{escape_text(words)}</bdi></a>"


def write_table(content: Table, first: dict[str, str] | None = None) -> str:
    """Return a table as HTML; `first` maps cells of the first column to HTML that stands before them."""
    heads = "".join(
        f'<th scope="col" class="{column.align}">{escape_text(column.title)}</th>' for column in content.columns
    )
    rows = []
    for row in content.rows:
        cells = [
            f'<td class="{c.align}">{_write_cell(word)}</td>' for word, c in zip(row, content.columns, strict=True)
        ]
        before = (first or {}).get(row[0], "")
        cells[0] = f'<th scope="row">{before}{_write_cell(row[0])}</th>'
        rows.append(f"<tr>{''.join(cells)}</tr>")
    footer = f"<p class='faint'>{escape_text(content.footer)}</p>" if content.footer else ""
    return f"<div class='scroll'><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>" + (
        footer
    )


def write_badge(sign: Sign) -> str:
    """Return the letters of a device or a reason in its colour."""
    return f'<span class="badge {sign.style}" aria-hidden="true">{escape_text(sign.letters)}</span> '


def write_answers(result: Result, verdicts: Sequence[str]) -> str:
    """Return a line a program with what matters most: that it is refused, or why its devices are not busier."""
    lines = []
    for i, (placed, verdict) in enumerate(zip(result.programs, verdicts, strict=True)):
        refusal = placed.placement.refusal
        if refusal is not None:
            said = f"<p class='refused'>✗ TensorFlow refuses this graph ({escape_text(refusal.code)}).</p>"
        elif verdict:
            link = "<a class='link' href='#view=schedule' data-tab='schedule'>schedule</a>"
            said = f"<p><b>{escape_text(verdict)}</b> {link}</p>"
        else:
            continue
        lines.append(f"<section class='answers' aria-label='In short' data-program='{i}'>{said}</section>")
    return "".join(lines)


def program_summary(placed: Placed, signs: Sequence[Sign], found: Sequence[Mapping[str, Any]]) -> str:
    """Return the summary of one program: devices, what TensorFlow refuses, findings as `graph_data` lists them."""
    badges = {sign.label: write_badge(sign) for sign in signs}
    parts = [f"<p>{escape_text(summary.write_title(placed))}</p>"]
    if placed.placement.refusal is None:
        parts.append(write_table(tables.device_table(placed), badges))
    sent = describe_traffic(placed.traffic)
    parts += [f"<p>{escape_text(sent)}</p>"] if sent else []
    if given := summary.describe_given_shapes(placed):
        parts.append(f"<p class='faint'>{escape_text(given)}</p>")
    if placed.clusters:
        parts.append(write_table(tables.cluster_table(placed)))
    parts.insert(0, _write_refusal(placed.placement))
    if found or placed.placement.refusal is None:
        parts.append(_write_findings(found))
    return "".join(parts)


def write_agreement(result: Result) -> str:
    """Return the agreement with TensorFlow, program by program, with every difference."""
    parts = [f"<p class='verdict'>{escape_text(summary.agreement_line(result))}</p>"]
    for placed in result.programs:
        parts.append(f"<h3>{escape_text(placed.title, _CELL)}</h3>")
        asked = placed.agreement
        if asked is None:
            parts.append(f"<p>not checked{': ' + escape_text(result.unchecked) if result.unchecked else ''}</p>")
            continue
        codes = [
            f"{who}: {escape_text(code)}" for who, code in zip(("simplace", "TensorFlow"), asked.refusals, strict=True)
        ]
        refused = f", refused by {' and '.join(codes)}" if any(asked.refusals) else ""
        parts.append(f"<p>{asked.same:,} of {asked.total:,} nodes on the same device{refused}</p>")
        if asked.differences:
            parts.append(write_table(tables.difference_table(placed, _DIFFERENCES)))
    return "".join(parts)


def write_eager(result: Result) -> str:
    """Return what ran outside of functions: the lines with devices and copies, and findings; "" where nothing did."""
    eager = result.eager
    if eager is None:
        return ""
    found = find_in_eager(eager, is_all=not result.programs)
    lines = "".join(f"<li><b>{one.title}</b> {escape_text(line_of_eager(one))}</li>" for one in found)
    findings = f"<ul class='findings'>{lines}</ul>" if found else ""
    title, rest = write_eager_title(eager).split(": ", 1)
    heading = f"<h2>{escape_text(title[0].upper() + title[1:])}</h2><p>{escape_text(rest)}</p>"
    devices = "" if result.programs else write_table(eager_tables.device_table(eager))
    table = write_table(eager_tables.line_table(eager, _LINES))
    return f"<section class='eager'>{heading}{devices}{table}{findings}</section>"


def write_notes(result: Result) -> str:
    """Return the remarks about the run, and how it failed if it did."""
    lines = [*result.remarks, *([str(result.failure)] if result.failure else [])]
    return "".join(f"<p class='note'>{escape_text(line)}</p>" for line in lines)


def _write_cell(words: str) -> str:
    """Return a cell whose lines break between the parts of a name, and never between a number and its unit."""
    texts = _QUANTITY.split(elide(visible(words), _CELL))
    parts = [f'<span class="whole">{escape(one)}</span>' if i % 2 else _break_name(one) for i, one in enumerate(texts)]
    return f"<bdi>{''.join(parts)}</bdi>"


def _break_name(text: str) -> str:
    """Return words as HTML that break between scopes; where one is wider than a line, between its own words."""
    words = re.split(r"(\s+)", text)
    return "".join(
        word if i % 2 else "<wbr>".join(map(_break_scope, _SCOPES.split(word))) for i, word in enumerate(words)
    )


def _break_scope(scope: str) -> str:
    parts = _JOINTS.split(scope)
    return f'<span class="part">{"<wbr>".join(map(escape, parts))}</span>' if len(parts) > 1 else escape(scope)


def _write_refusal(placement: Placement) -> str:
    refusal = placement.refusal
    if refusal is None:
        return ""
    first = refusal.message.split("\nColocation Debug Info")[0].splitlines()
    lines = [*map(escape_text, first[:1]), *map(write_sentence, state_conflict(placement))]
    said = "".join(f"<li>{line}</li>" for line in lines)
    head = f"<h3>Refused</h3><p>TensorFlow does not place this graph ({escape_text(refusal.code)}).</p>"
    return f"<div class='refusal'>{head}<ul>{said}</ul></div>"


def _write_findings(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "<h3>Findings</h3><p class='faint'>None: every request was granted and no device is idle.</p>"
    lines = "".join(_write_finding(i, one) for i, one in enumerate(found))
    return f"<h3>Findings <span class='count'>{len(found)}</span></h3><ul class='findings'>{lines}</ul>"


def _write_finding(number: int, one: Mapping[str, Any]) -> str:
    show = ""
    if one["nodes"]:
        which = "its node" if len(one["nodes"]) == 1 else f"its {len(one['nodes']):,} nodes"
        show = f" <a class='link' href='#finding-{number}' data-finding='{number}'>show {which} in the graph</a>"
    return f"<li><b>{one['title']}</b> {escape_text(one['words'])}{show}</li>"
