"""Write problems as a SARIF 2.1.0 log, which code hosts show beside the user's own lines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from simplace._version import __version__
from simplace.checks.verdicts import Problem, ProblemKind
from simplace.exports.site_address import find_page_address

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 5000  # GitHub keeps no more of a run
_LEVELS = ("error", "warning", "note")
_ROOT = "SRCROOT"


def write_sarif(target: str, problems: Sequence[Problem], root: Path) -> dict[str, Any]:
    """Return the log as JSON-ready data: the most severe problems first, else in the order given, 5,000 at most.

    A rule has the address of its page where the package names its site. Paths are relative to `root` where they are
    below it. A problem whose line is unknown is one of the target's file.
    """
    kept = sorted(problems, key=lambda problem: _LEVELS.index(problem.level))[:MOST_RESULTS]
    rules = list(dict.fromkeys(problem.rule for problem in kept))
    run = {
        "tool": {
            "driver": {"name": "simplace", "version": __version__, "rules": [_describe_rule(rule) for rule in rules]}
        },
        "originalUriBaseIds": {_ROOT: {"uri": root.resolve().as_uri().rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_describe_result(problem, rules, target, root) for problem in kept],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _describe_rule(rule: ProblemKind) -> dict[str, Any]:
    told = {"id": rule.id, "shortDescription": {"text": rule.title}, "help": {"text": rule.help}}
    address = find_page_address(f"rules/{rule.page}") if rule.page else ""
    return {**told, "helpUri": address} if address else told


def _describe_result(problem: Problem, rules: Sequence[ProblemKind], target: str, root: Path) -> dict[str, Any]:
    named = "\0".join((problem.rule.id, problem.program, problem.node, problem.node or problem.message))
    location: dict[str, Any] = {"physicalLocation": _locate_source(problem.source or target, root)}
    if problem.node:
        location["logicalLocations"] = [{"name": problem.node, "fullyQualifiedName": _qualify_node(problem)}]
    return {
        "ruleId": problem.rule.id,
        "ruleIndex": rules.index(problem.rule),
        "level": problem.level,
        "message": {"text": problem.message},
        "locations": [location],
        "partialFingerprints": {"simplaceNode/v1": hashlib.sha256(named.encode(errors="replace")).hexdigest()[:32]},
    }


def _qualify_node(problem: Problem) -> str:
    return f"{problem.program}/{problem.node}" if problem.program else problem.node


def _locate_source(source: str, root: Path) -> dict[str, Any]:
    file, line = _split_source(source)
    place: dict[str, Any] = {"artifactLocation": _locate_artifact(Path(file), root)}
    if line:
        place["region"] = {"startLine": line}
    return place


def _split_source(source: str) -> tuple[str, int]:
    """Return the file and line of "file:line"; the line is 0 where there is none, as for a target.

    >>> _split_source("a/model.py:12"), _split_source("model.py:step"), _split_source("saved_model")
    (('a/model.py', 12), ('model.py', 0), ('saved_model', 0))
    """
    file, colon, rest = source.rpartition(":")
    if not colon or (not rest.isdecimal() and not file.endswith(".py")):
        return source, 0
    return file, int(rest) if rest.isdecimal() else 0


def _locate_artifact(file: Path, root: Path) -> dict[str, str]:
    whole, base = (root / file).resolve(), root.resolve()
    if not whole.is_relative_to(base):
        return {"uri": whole.as_uri()}
    return {"uri": quote(whole.relative_to(base).as_posix()), "uriBaseId": _ROOT}
