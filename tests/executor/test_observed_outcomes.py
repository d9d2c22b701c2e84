"""What the nodes that ran in a step tell of its loops and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simplace.costs.estimate import estimate_costs
from simplace.costs.outcomes import Loop, Outcomes
from simplace.executor.control_flow import Branch, control_flow
from simplace.executor.execution import Execution, execute_graph
from simplace.executor.observed_outcomes import observe_outcomes
from simplace.executor.step_options import StepOptions
from tests.executor.test_tensorflow_model import IF, LOOP
from tests.executor.worlds import Costs, parts

EMPTY_BRANCH = """
    p = Placeholder() @c {dtype=bool}
    x = Placeholder() @c {dtype=float}
    s = Switch(x, p) @c
    N = Neg(s) @c
    m = Merge(N, s:1) @c {N=2}
    E = Exp(m) @c
"""
BRANCH_IN_LOOP = LOOP.replace(
    "next = NextIteration(B) @c",
    """
    p = Less(B, B) @c
    s = Switch(B, p) @c
    N = Neg(s) @c
    A = Abs(s:1) @c
    m = Merge(N, A) @c {N=2}
    next = NextIteration(m) @c
""",
)


def observe(text: str, order: str) -> Outcomes:
    graph = parts(text)
    return observe_outcomes(graph, control_flow(graph), order.split())


def run_as(text: str, trips: Mapping[str, tuple[int, ...]], branches: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Simulate a step with these outcomes; return the names of its live nodes by start."""
    graph = parts(text)
    flow = control_flow(graph, observed=Outcomes(trips, branches))
    done: Execution = execute_graph(estimate_costs(graph, Costs()), flow, StepOptions(inter_op=1))
    return [graph.nodes[span.node].name for span in done.trace.spans if span.kind != "dead"]


def test_the_branch_that_ran_is_taken() -> None:
    assert observe(IF, "p x s N m E") == Outcomes({}, {"p": (0,)})
    assert observe(IF, "p x s A m E") == Outcomes({}, {"p": (1,)})


def test_a_branch_without_nodes_is_the_one_that_nothing_else_ran_for() -> None:
    assert observe(EMPTY_BRANCH, "p x s m E") == Outcomes({}, {"p": (1,)})
    assert observe(EMPTY_BRANCH, "p x s N m E") == Outcomes({}, {"p": (0,)})


def test_what_did_not_run_says_nothing() -> None:
    assert observe(IF, "p x") == Outcomes({}, {})
    assert observe(LOOP, "zero limit") == Outcomes({}, {})


def test_outcomes_of_a_simulated_step_are_found_again() -> None:
    for rounds, taken in ((0, ()), (1, (1,)), (5, (0, 1, 1, 0, 1))):
        ran: Sequence[str] = run_as(BRANCH_IN_LOOP, {"loop": (rounds,)}, {"p": taken})
        expected = {"p": taken} if taken else {}
        assert observe(BRANCH_IN_LOOP, " ".join(ran)) == Outcomes({"loop": (rounds,)}, expected)


def test_what_the_user_gives_precedes_what_was_observed() -> None:
    graph = parts(BRANCH_IN_LOOP)
    flow = control_flow(
        graph, trips={"loop": 2}, branches={"p": 1}, observed=Outcomes({"loop": (9,)}, {"p": (0, 0, 1)})
    )
    assert flow.loops == (Loop("loop", 2, "given"),)
    assert flow.branches == (Branch("p", 1, "given"),)


def test_observed_outcomes_precede_the_default() -> None:
    flow = control_flow(parts(BRANCH_IN_LOOP), observed=Outcomes({"loop": (3,)}, {"p": (0, 0, 1)}))
    assert flow.loops == (Loop("loop", 3, "observed", (3,)),)
    assert flow.branches == (Branch("p", 0, "observed", (0, 0, 1)),)
