"""Write verdicts as a JUnit XML report: one suite per program, one test case per question, problems as failures."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from simplace.checks.verdicts import Problem, Verdict
from simplace.exports.steering import escape_xml
from simplace.exports.xml_text import replace_illegal


def write_junit(target: str, verdicts: Sequence[Verdict]) -> bytes:
    """Return the report, UTF-8; suites are in the order of their first verdict, named by program or else by target."""
    root = ElementTree.Element("testsuites", {"name": "simplace", **_count_verdicts(verdicts)})
    for program in dict.fromkeys(verdict.program for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.program == program]
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": replace_illegal(program or target), **_count_verdicts(own)}
        )
        for verdict in own:
            _write_case(suite, f"simplace.{target}", verdict)
    ElementTree.indent(root)
    written: str = ElementTree.tostring(root, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{escape_xml(written)}\n".encode()


def _count_verdicts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    failures = sum(1 for verdict in verdicts if verdict.problems)
    skipped = sum(1 for verdict in verdicts if verdict.skipped)
    return {"tests": str(len(verdicts)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}


def _write_case(suite: ElementTree.Element, group: str, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=replace_illegal(group), name=replace_illegal(verdict.question)
    )
    if verdict.skipped:
        _add_source(case, verdict.source)
        ElementTree.SubElement(case, "skipped", message=replace_illegal(verdict.skipped))
    if not verdict.problems:
        return
    first, *others = verdict.problems
    _add_source(case, first.source)
    more = f" (and {len(others)} more)" if others else ""
    failure = ElementTree.SubElement(case, "failure", message=replace_illegal(first.message + more), type=first.rule.id)
    failure.text = replace_illegal("\n".join(_format_problem(problem) for problem in verdict.problems))


def _add_source(case: ElementTree.Element, source: str) -> None:
    file, _, line = source.rpartition(":")
    if file:
        case.set("file", replace_illegal(file))
        case.set("line", line)


def _format_problem(problem: Problem) -> str:
    at = f"{problem.source}: " if problem.source else ""
    return f"{at}{problem.message}"
