"""The page of each rule: what a finding or a reason means, where TensorFlow has it, a small program, what to do.

The texts are in `data/findings.toml` and `data/reasons.toml`. `simplace explain --rule` prints them, and a test writes
the pages of docs/rules from them.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from simplace.doctor.advice import TITLES
from simplace.doctor.silent_failures import ALL_FINDINGS
from simplace.errors import UnknownRuleError, join_alternatives
from simplace.explain.finding import Level, name_page

Family = Literal["doctor", "reason"]


@dataclass(frozen=True, slots=True)
class RulePage:
    """Record of a rule's page: texts in Markdown without links, paths in TensorFlow's repository.

    `level` is None for a reason. `command` shows the rule at work on `program`, which is the file that it names.
    """

    family: Family
    name: str
    level: Level | None
    title: str
    meaning: str
    sources: tuple[str, ...]
    remedy: str
    program: str
    command: str

    @property
    def full_name(self) -> str:
        """Return the name that messages print, such as doctor/late-log-flag."""
        return name_page(self.name, self.family)

    @property
    def file(self) -> str:
        """Return the path of the program in the repository."""
        return self.command.split()[1]


def read_rule_pages() -> tuple[RulePage, ...]:
    """Read the pages of all rules: the findings from errors to notes, then the reasons in the order of the rules."""
    findings = _read_texts("findings.toml")
    told = [_make_page("doctor", kind.rule, kind.level, TITLES[kind], findings[kind.rule]) for kind in ALL_FINDINGS]
    reasons = _read_texts("reasons.toml").items()
    return (*told, *(_make_page("reason", name, None, values["title"], values) for name, values in reasons))


def find_rule_page(pages: Iterable[RulePage], name: str) -> RulePage:
    """Return the page of a rule by its name, with or without its family; raise `UnknownRuleError`.

    Dashes and underscores count as the same, and so do capitals and small letters.
    """
    by_name = {known: page for page in pages for known in (page.full_name, page.name)}
    plain = {_fold(known): page for known, page in by_name.items()}
    found = plain.get(_fold(name))
    if found is not None:
        return found
    close = difflib.get_close_matches(_fold(name), plain, n=3, cutoff=0.6)
    names = list(dict.fromkeys(plain[each].full_name for each in close))
    hint = f"did you mean {join_alternatives(names)}?" if names else "simplace explain --rule lists all of them"
    raise UnknownRuleError(f"no rule is called {name!r}; {hint}")


def _fold(name: str) -> str:
    return name.strip().strip("/").lower().replace("_", "-")


def _read_texts(name: str) -> dict[str, Any]:
    text = files("simplace.doctor").joinpath("data", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _make_page(family: Family, name: str, level: Level | None, title: str, values: dict[str, Any]) -> RulePage:
    return RulePage(
        family, name, level, title, values["meaning"].strip(), tuple(values["sources"]), values["remedy"].strip(),
        values["program"], values["try"],
    )  # fmt: skip
