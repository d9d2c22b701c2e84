"""Run the rounds of a loop on small integers, which are all that tells how often it runs.

What a round computes otherwise is not known, and never asked: None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from simplace.graph.integer_ops import Rule, Value

R = TypeVar("R", bound=Hashable)  # how a tensor is called

_MOST_ROUNDS = 1_000_000  # a loop of more is not followed to its end


@dataclass(frozen=True, slots=True)
class IntegerStep(Generic[R]):
    """Record of a tensor that each round computes anew; `slot` is which output of its op it is."""

    made: R
    rule: Rule
    inputs: Sequence[R]
    attrs: Mapping[str, Any]
    slot: int = 0


def order_steps(
    targets: Iterable[R], find_step: Callable[[R], IntegerStep[R] | None], read_leaf: Callable[[R], Iterable[R]]
) -> list[IntegerStep[R]]:
    """Order the steps that targets are computed by, each after those that it needs; what no step makes is a leaf.

    `read_leaf` is called once for each leaf, and returns what else is wanted then.
    """
    steps: list[IntegerStep[R]] = []
    seen: set[R] = set()
    waiting: list[R | IntegerStep[R]] = [*targets]
    while waiting:
        one = waiting.pop()
        if isinstance(one, IntegerStep):
            steps.append(one)
        elif one not in seen:
            seen.add(one)
            step = find_step(one)
            if step is None:
                waiting[:0] = read_leaf(one)
            else:
                waiting += [step, *step.inputs]
    return steps


@dataclass(frozen=True)
class Rounds(Generic[R]):
    """Record of what a round computes, each step after those it needs.

    `known` is what no round changes, `start` the loop's variables before the first one, `after` what these are in the
    next round.
    """

    steps: Sequence[IntegerStep[R]]
    known: Mapping[R, Value]
    start: Mapping[R, Value]
    after: Mapping[R, R]

    def run(self) -> Iterator[Mapping[R, Value]]:
        """Yield all values of each round, without an end."""
        values = {**self.known, **self.start}
        steps = [(one.made, one.rule, one.inputs, one.attrs, one.slot) for one in self.steps]
        while True:
            for made, rule, inputs, attrs, slot in steps:
                values[made] = rule([values[one] for one in inputs], attrs, slot)
            yield values
            values.update({variable: values[ref] for variable, ref in self.after.items()})

    def run_once(self) -> Mapping[R, Value]:
        """Return all values of the first round."""
        return next(self.run())

    def count_rounds(self, joined: Sequence[R]) -> tuple[int, bool] | None:
        """Return how many rounds there are as long as all of `joined` are true, and whether each of them is known.

        None where none is known, or the loop goes on for ever as far as is known.
        """
        before: list[Value] = []
        for done, values in enumerate(self.run()):
            found = [values[ref] for ref in joined]
            if 0 in found:
                return done, None not in found
            variables = [values[variable] for variable in self.after]
            if set(found) <= {None} or variables == before or done == _MOST_ROUNDS:
                return None
            before = variables
        return None

    def find_values(self, rounds: int) -> Mapping[R, Value]:
        """Return the loop's variables after so many rounds."""
        for done, values in enumerate(self.run()):
            found = {variable: values[variable] for variable in self.start}
            if done == rounds or set(found.values()) <= {None}:
                return found
        return {}
