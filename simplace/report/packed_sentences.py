"""Store the explanations of many nodes compactly: sentences repeat, and differ mostly in the nodes they name.

A sentence is a list: the number of its template, then the nodes it names. A template is a list of texts, with a number
in the place of each node: how it is called there, `FORMS`.
"""

from __future__ import annotations

from typing import Any

from simplace.explain import reasons as why
from simplace.explain.explanation import Explainer
from simplace.explain.sentence import Form, Sentence
from simplace.placement.placement import Placement
from simplace.report.interning import Interner

FIRST = 2  # the source and the sink of a graph are no one's nodes; a page counts from here
FORMS: tuple[Form, ...] = ("full", "name", "variable")  # program.js has them, too
_NUMBERS = {form: i for i, form in enumerate(FORMS)}


class PackedSentences:
    """Collect the sentences about nodes of one placement, each template and each sentence once."""

    def __init__(self, placement: Placement) -> None:
        self._explainer = Explainer(placement)
        self._templates: Interner[tuple[str | int, ...]] = Interner()
        self._sentences: Interner[tuple[int, ...]] = Interner()
        self._known: dict[Sentence, int] = {}  # the numbers of those that name no node: they repeat most

    def explanation(self, node: int) -> list[int]:
        """Return the numbers of the sentences that explain a node, in their order."""
        return [self._add(sentence) for sentence in self._explainer.list_sentences(node)]

    def rule(self, node: int) -> str:
        """Return the name of the rule that decided the device of a node, "" where it has none."""
        return self._explainer.name_rule(node)

    def reason(self, reason: why.Reason) -> int:
        """Return the number of the sentence of one reason."""
        return self._add(self._explainer.reason(reason))

    def columns(self) -> dict[str, Any]:
        """Return what the numbers stand for."""
        return {"templates": self._templates.values, "sentences": self._sentences.values}

    def _add(self, sentence: Sentence) -> int:
        number = self._known.get(sentence)
        if number is not None:
            return number
        template = tuple([part if isinstance(part, str) else _NUMBERS[part.form] for part in sentence])
        nodes = [part.node - FIRST for part in sentence if not isinstance(part, str)]
        number = self._sentences((self._templates(template), *nodes))
        if not nodes:
            self._known[sentence] = number
        return number
