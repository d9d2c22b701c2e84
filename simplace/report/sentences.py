r"""Keep the explanations of many nodes in little room: sentences repeat, and differ mostly in the nodes they name.

A sentence is a list: the number of its template, then the nodes it names. In a template, a node's place is
\x01 and how it is called there: f "name (op)", n "name", v its variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from simplace.explain import Explainer
from simplace.placement import reasons as why
from simplace.placement.placement import Placement
from simplace.report.interning import Interner

FIRST = 2  # the source and the sink of a graph are no one's nodes; a page counts from here
_MENTION = re.compile("\x01([fnv])([0-9]+)\x02")
_NO_MARKS = str.maketrans("", "", "\x01\x02")

Sentence = tuple[int, ...]


class Sentences:
    """Collect the sentences about nodes of one placement, each template and each sentence once."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._explainer = Explainer(placement, self._mark)
        self._templates: Interner[str] = Interner()
        self._sentences: Interner[Sentence] = Interner()

    def explanation(self, node: int) -> list[int]:
        """Return the numbers of the sentences that explain a node, in their order."""
        return [self._add(text) for text in self._explainer.explain(node).sentences]

    def reason(self, reason: why.Reason) -> int:
        """Return the number of the sentence of one reason."""
        return self._add(self._explainer.reason(reason))

    def columns(self) -> dict[str, Any]:
        """Return what the numbers stand for."""
        return {"templates": self._templates.values, "sentences": self._sentences.values}

    def _mark(self, node: int, words: str) -> str:
        graph = self._placement.graph
        kind = "v" if self._placement.notes(node).variable and words != graph.names[node] else "n"
        kind = "f" if words == f"{graph.names[node]} ({graph.ops[node]})" else kind
        return f"\x01{kind}{node}\x02"

    def _add(self, text: str) -> int:
        """Take a sentence apart; marks that a program's own text may hold name no node and are dropped."""
        parts = _MENTION.split(text)
        literals, kinds, nodes = parts[::3], parts[1::3], [int(digits) for digits in parts[2::3]]
        if not all(FIRST <= node < len(self._placement.graph) for node in nodes):
            return self._add(text.translate(_NO_MARKS))
        template = _joined(literals, kinds)
        return self._sentences((self._templates(template), *(node - FIRST for node in nodes)))


def _joined(literals: Iterable[str], kinds: Iterable[str]) -> str:
    holes = [f"\x01{kind}" for kind in kinds]
    plain = [literal.translate(_NO_MARKS) for literal in literals]
    return "".join(part for pair in zip(plain, [*holes, ""], strict=True) for part in pair)
