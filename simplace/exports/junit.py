"""Write verdicts as a JUnit XML report: a suite a program, a test case a question, a failure with all its problems."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from simplace.checks.verdicts import Problem, Verdict
from simplace.exports.steering import xml_escaped
from simplace.exports.xml_text import xml_text


def junit(target: str, verdicts: Sequence[Verdict]) -> bytes:
    """Return the report, UTF-8; suites are in the order of their first verdict, named by program or else by target."""
    root = ElementTree.Element("testsuites", {"name": "simplace", **_counts(verdicts)})
    for program in dict.fromkeys(verdict.program for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.program == program]
        suite = ElementTree.SubElement(root, "testsuite", {"name": xml_text(program or target), **_counts(own)})
        for verdict in own:
            _case(suite, f"simplace.{target}", verdict)
    ElementTree.indent(root)
    written: str = ElementTree.tostring(root, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{xml_escaped(written)}\n".encode()


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    failures = sum(1 for verdict in verdicts if verdict.problems)
    skipped = sum(1 for verdict in verdicts if verdict.skipped)
    return {"tests": str(len(verdicts)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}


def _case(suite: ElementTree.Element, group: str, verdict: Verdict) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=xml_text(group), name=xml_text(verdict.question))
    if verdict.skipped:
        _add_source(case, verdict.source)
        ElementTree.SubElement(case, "skipped", message=xml_text(verdict.skipped))
    if not verdict.problems:
        return
    first, *others = verdict.problems
    _add_source(case, first.source)
    more = f" (and {len(others)} more)" if others else ""
    failure = ElementTree.SubElement(case, "failure", message=xml_text(first.message + more), type=first.rule.id)
    failure.text = xml_text("\n".join(_line(problem) for problem in verdict.problems))


def _add_source(case: ElementTree.Element, source: str) -> None:
    file, _, line = source.rpartition(":")
    if file:
        case.set("file", xml_text(file))
        case.set("line", line)


def _line(problem: Problem) -> str:
    at = f"{problem.source}: " if problem.source else ""
    return f"{at}{problem.message}"
