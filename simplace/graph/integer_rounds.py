"""Run the rounds of a loop on small integers, which are all that tells how often it runs.

What a round computes otherwise is not known, and never asked: None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from simplace.graph.integer_ops import INTEGER_OPS, PASS_ON, Rule, Value

R = TypeVar("R", bound=Hashable)  # how a tensor is called

_MOST_ROUNDS = 1_000_000  # a loop of more, whose variables are no counters, is not followed to its end
_LOOKED_AT = 3  # rounds, after which what the data tell is not known


class _Comparison(NamedTuple):
    is_upward: bool
    is_closed: bool


_COMPARISONS: Mapping[Rule, _Comparison] = {
    INTEGER_OPS["Less"]: _Comparison(True, False), INTEGER_OPS["LessEqual"]: _Comparison(True, True),
    INTEGER_OPS["Greater"]: _Comparison(False, False), INTEGER_OPS["GreaterEqual"]: _Comparison(False, True),
}  # fmt: skip
_ADDITIONS: Mapping[Rule, int] = {INTEGER_OPS["Add"]: 1, INTEGER_OPS["AddV2"]: 1, INTEGER_OPS["Sub"]: -1}


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
        bounds = {ref: bound for ref in joined if (bound := self._find_bound(ref)) is not None}
        first = [[values[ref] for ref in joined] for values in islice(self.run(), _LOOKED_AT)]
        is_settled = all(ref in bounds or value is None for ref, value in zip(joined, first[-1], strict=True))
        end = min(bounds.values(), default=inf)
        if is_settled and end > _LOOKED_AT and not any(0 in found for found in first):  # no round need be run
            return (int(end), len(bounds) == len(set(joined))) if end < inf else None
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
        counters = {variable: self._find_counter(variable) for variable in self.start}
        counted = {
            variable: counter[0] + rounds * counter[1] for variable, counter in counters.items() if counter is not None
        }
        if len(counted) == len(counters):
            return counted
        if rounds > _MOST_ROUNDS:
            return {variable: counted.get(variable) for variable in counters}
        for done, values in enumerate(self.run()):
            found = {variable: values[variable] for variable in self.start}
            if done == rounds or set(found.values()) <= {None}:
                return found
        return {}

    def _find_bound(self, ref: R) -> float | None:
        """Return after how many rounds a comparison of counters is false, infinity for never; None for what is none."""
        fixed = self._find_fixed(ref)
        if fixed is not None:
            return inf if fixed else 0
        step = self._made.get(self._resolve(ref))
        if step is None or step.rule not in _COMPARISONS:
            return None
        sides = [self._find_counter(one) for one in step.inputs]
        left, right = sides[:: 1 if _COMPARISONS[step.rule].is_upward else -1]
        if left is None or right is None:
            return None
        ahead, gained = right[0] - left[0] + _COMPARISONS[step.rule].is_closed, left[1] - right[1]
        if ahead <= 0:
            return 0
        return -(-ahead // gained) if gained > 0 else inf

    def _find_counter(self, ref: R) -> tuple[int, int] | None:
        """Return what an integer starts with, and what each round adds to it."""
        fixed = self._find_fixed(ref)
        if fixed is not None:
            return fixed, 0
        variable = self._resolve(ref)
        if variable not in self.after:
            return None
        start, step = self.start[variable], self._made.get(self._resolve(self.after[variable]))
        sign = _ADDITIONS.get(step.rule) if step is not None else None
        if step is None or sign is None or not isinstance(start, int):
            return None
        left, right = step.inputs
        counter, added = (left, right) if sign < 0 or self._resolve(left) == variable else (right, left)
        value = self._find_fixed(added)
        return (start, sign * value) if self._resolve(counter) == variable and value is not None else None

    def _find_fixed(self, ref: R) -> int | None:
        """Return the integer that a tensor is in each round, None where it is not known, or not always the same."""
        ref = self._resolve(ref)
        if ref in self.after:
            value = self.start[ref] if self._resolve(self.after[ref]) == ref else None
        else:
            value = self.known.get(ref)
        return value if isinstance(value, int) else None

    def _resolve(self, ref: R) -> R:
        """Return what a tensor is another name of."""
        while (step := self._made.get(ref)) is not None and step.rule is PASS_ON and step.inputs:
            ref = step.inputs[0]
        return ref

    @cached_property
    def _made(self) -> Mapping[R, IntegerStep[R]]:
        return {step.made: step for step in self.steps}
