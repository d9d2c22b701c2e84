"""Convert the doctor's findings to verdicts, for JUnit and SARIF files."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.checks.verdicts import Problem, ProblemKind, Verdict
from simplace.doctor.advice import TITLES, advise_on_finding
from simplace.doctor.silent_failures import ALL_FINDINGS
from simplace.explain.finding import Finding, name_page


def describe_rule(kind: type[Finding]) -> ProblemKind:
    """Return the rule of a kind of finding."""
    told = f"simplace explain --rule {kind.rule}: what TensorFlow does and what to write."
    return ProblemKind(kind.rule, TITLES[kind], told, name_page(kind.rule))


def describe_problem(finding: Finding) -> Problem:
    """Return a finding as a problem of its line."""
    said = advise_on_finding(finding)
    node = finding.nodes[0] if finding.nodes else ""
    message = f"{said.what} {said.why} {said.instead}"
    return Problem(describe_rule(type(finding)), finding.severity, message, finding.program, node, finding.source)


def list_verdicts(findings: Sequence[Finding]) -> tuple[Verdict, ...]:
    """Return a verdict for each kind of finding."""
    return tuple(
        Verdict("", kind.rule, tuple(describe_problem(finding) for finding in findings if type(finding) is kind))
        for kind in ALL_FINDINGS
    )
