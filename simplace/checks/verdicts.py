"""Verdicts on a result: the checks made, and for each the problems found.

Verdicts are what machines read of a run (JUnit, SARIF, exit status); a verdict without problems is one that passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from simplace.checks.requirements import Requirement, Violation
from simplace.compare.compare_placements import Difference
from simplace.compare.compare_transfers import CopyDifference
from simplace.devices.device_set import DeviceSet
from simplace.explain.failures import format_failure
from simplace.explain.finding import Failure, Level
from simplace.program.program import EAGER_OPS
from simplace.result import Placed, Result

AGREES = "agrees with TensorFlow"
SHOWN = "shows all that TensorFlow placed"
RUNS = "runs where it is placed"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """Record of a kind of problem: `id` is stable, `title` a phrase, `help` what to do about it.

    `page` names its page, such as "doctor/late-log-flag", "" for none.
    """

    id: str
    title: str
    help: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Record of what is wrong with which node of which program; `source` is the user's "file:line".

    `program`, `node` and `source` are "" where there is none or none is known.
    """

    rule: ProblemKind
    level: Level
    message: str
    program: str = ""
    node: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Record of a check of a program ("" for the whole target) and the problems that it found.

    `skipped` is why the check was not made, "" where it was; `source` is then the line of the definition.
    """

    program: str
    question: str
    problems: tuple[Problem, ...]
    skipped: str = ""
    source: str = ""


DIFFERS = ProblemKind(
    "differs-from-tensorflow",
    "simplace and TensorFlow place a node differently",
    "One of simplace's rules is not TensorFlow's: please report the program. Custom ops need --kernels FILE.",
)
COPY_DIFFERS = ProblemKind(
    "copy-differs-from-tensorflow",
    "simplace and TensorFlow copy a tensor between devices differently",
    "One of simplace's rules is not TensorFlow's: please report the program.",
)
UNMET = ProblemKind(
    "requirement-not-met",
    "A node is not where it is required to be",
    "Request the device with tf.device, choose a data type that has a kernel there, or change the requirement.",
)
FAILS = ProblemKind(
    "program-ends-early",
    "The program terminated early",
    "Fix what the message reports; the graphs seen before it are placed and checked all the same.",
)


NOT_COMPARED = ProblemKind(
    "not-compared-with-tensorflow",
    "A part of the program was not compared with TensorFlow",
    "Call the function in the run that is checked: agreement says nothing of what was not seen.",
)


def of_failure(result: Result) -> tuple[Verdict, ...]:
    """Return the verdict on whether the program ran to its end."""
    problems = () if result.failure is None else (Problem(FAILS, "error", str(result.failure)),)
    stopped = "simplace stopped the program" if result.ending == "stopped" else ""
    return (Verdict("", "runs to its end", problems, stopped),)


def of_agreement(result: Result) -> tuple[Verdict, ...]:
    """Return a verdict on each program and on the eager ops, a skipped one on what TensorFlow was not seen to place."""
    asked = [
        _judge_program(placed, result)
        for placed in result.programs
        if placed.agreement is not None or not placed.placement.program.runs_unplaced
    ]
    if result.eager is not None:
        asked.append(_judge_eager_ops(result))
    return (
        *asked,
        *_judge_coverage(result),
        *(Verdict(each.name, AGREES, (), each.why, each.source) for each in result.unreached),
    )


def of_predictions(failures: Iterable[Failure]) -> tuple[Verdict, ...]:
    """Return a skipped verdict on each failure that is predicted: simplace runs nothing on a GPU."""
    return tuple(
        Verdict(each.program, RUNS, (), f"predicted to fail ({each.rule}): {format_failure(each)}", each.source)
        for each in failures
    )


def list_not_compared(verdicts: Iterable[Verdict]) -> list[Problem]:
    """List as notes what was not compared; they do not affect the exit status."""
    return [
        Problem(NOT_COMPARED, "note", f"{each.program or each.question}: {each.skipped}", each.program, "", each.source)
        for each in verdicts
        if each.skipped
    ]


def of_requirements(requirements: Sequence[Requirement], unmet: Iterable[Violation]) -> tuple[Verdict, ...]:
    """Return a verdict on each requirement: whether it is met, given the violations of all."""
    found: dict[Requirement, list[Problem]] = {requirement: [] for requirement in requirements}
    for violation in unmet:
        found[violation.requirement].append(_make_unmet_problem(violation))
    return tuple(Verdict("", requirement.text, tuple(problems)) for requirement, problems in found.items())


def _judge_program(placed: Placed, result: Result) -> Verdict:
    if placed.agreement is not None:
        return Verdict(placed.title, AGREES, tuple(_list_disagreements(placed)))
    if placed.unreplayed:
        return Verdict(placed.title, AGREES, (), f"rewritten by Grappler's {placed.unreplayed}, which is not replayed")
    if placed.is_inlined:
        return Verdict(placed.title, AGREES, (), "inlined by Grappler, after the caller was placed")
    why = "not instantiated" if placed.is_uncalled else result.unchecked or "TensorFlow was not asked"
    return Verdict(placed.title, AGREES, (), why)


def _judge_coverage(result: Result) -> Iterator[Verdict]:
    missing = result.coverage.missing if result.coverage is not None else ()
    if missing:
        yield Verdict("", SHOWN, (), f"all but {', '.join(missing[:3])}{', …' * (len(missing) > 3)}")


def _judge_eager_ops(result: Result) -> Verdict:
    agreement = result.eager_agreement
    if agreement is None:
        return Verdict(EAGER_OPS, AGREES, (), result.unchecked or "TensorFlow was not asked")
    return Verdict(EAGER_OPS, AGREES, tuple(_eager_difference(result, found) for found in agreement.differences))


def _eager_difference(result: Result, found: Difference) -> Problem:
    ours, theirs = (_shorten(result.devices, name) for name in (found.ours, found.theirs))
    message = f"{found.node} ({found.op}): simplace {ours}, TensorFlow {theirs}"
    return Problem(DIFFERS, "error", message, EAGER_OPS, found.node)


def _list_disagreements(placed: Placed) -> list[Problem]:
    agreement = placed.agreement
    assert agreement is not None, "asked only of compared placements"
    problems = [_describe_difference(placed, difference) for difference in agreement.differences]
    ours, theirs = agreement.refusals
    if ours != theirs:
        message = f"{placed.title}: simplace {_describe_outcome(ours)}, TensorFlow {_describe_outcome(theirs)}"
        problems.append(Problem(DIFFERS, "error", message, placed.title))
    copies = placed.copy_agreement.differences if placed.copy_agreement else ()
    return problems + [_copy_difference(placed, difference) for difference in copies]


def _describe_difference(placed: Placed, found: Difference) -> Problem:
    ids = placed.placement.graph.ids
    source = placed.placement.notes(ids[found.node]).at if found.node in ids else ""
    ours, theirs = (_name_device(placed, name) for name in (found.ours, found.theirs))
    message = f"{found.node} ({found.op}): simplace places it on {ours}, TensorFlow on {theirs}"
    return Problem(DIFFERS, "error", message, placed.title, found.node, source)


def _copy_difference(placed: Placed, found: CopyDifference) -> Problem:
    one = found.transfer
    source, target = (_name_device(placed, name) for name in (one.source, one.target))
    ours, theirs = (transfer or "none" for transfer in (found.ours, found.theirs))
    message = f"the copy of {one.tensor} from {source} to {target}: simplace {ours}, TensorFlow {theirs}"
    return Problem(COPY_DIFFERS, "error", message, placed.title)


def _name_device(placed: Placed, name: str) -> str:
    return _shorten(placed.placement.devices, name)


def _shorten(devices: DeviceSet, name: str) -> str:
    found = devices.find(name)
    return found.short if found is not None else name or "no device, since it has no such node"


def _describe_outcome(code: str) -> str:
    return f"refuses it with {code}" if code else "places it"


def _make_unmet_problem(found: Violation) -> Problem:
    return Problem(UNMET, "error", unmet_text(found), found.program, found.node, found.source)


def unmet_text(found: Violation) -> str:
    """Return in one line what does not meet a requirement."""
    if not found.node:
        return f"{found.requirement.text}: {found.because}"
    where = f"is on {found.device}" if found.device else "has no device"
    return f"{found.requirement.text}: {found.node} ({found.op}) {where}. {found.because}"
