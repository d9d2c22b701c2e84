"""Which datasets the arguments of a call come from: ops hand on to their results what they were given.

A dataset goes by its functions: each has a name of its own, whichever lines make several datasets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import tensorflow as tf

from simplace.kernels.dataset_ops import makes_batches
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.tensors import is_object, is_variable

_FED = "_simplace_fed_by"  # an attribute of tensors, which goes when they go
_OBJECT = 0  # the number of what is no element, but may give elements: a dataset, an iterator

_Source = tuple[str, bool]  # a function of a dataset, and whether the dataset makes batches of what it returns
_Trail = Mapping[_Source, int]  # with the number of the latest element that went into a tensor


@dataclass(slots=True)
class _FirstGiven:
    """Record of how often a function was given an element of a source, and of the number of the first one."""

    first: int
    times: int = 1


@dataclass(slots=True)
class _Turns:
    """Record of the number at a function's latest call, and of what an element was taken of before each but the first.

    It is None until the second call.
    """

    at: int
    taken: set[_Source] | None = None


class DatasetFeeds:
    """Follow the elements of datasets from op to op, and record which functions of datasets make a call's arguments.

    What stays the same from call to call, such as a mean of all elements of another dataset, feeds nothing. Through
    NumPy no element can be followed; but a loop that takes one before each call waits for it, whatever becomes of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._numbers = count(_OBJECT + 1)
        self._given: dict[str, dict[_Source, _FirstGiven]] = {}  # by the function that is called
        self._latest: dict[_Source, int] = {}  # the number of the latest element
        self._turns: dict[str, _Turns] = {}  # by the function that is called
        self._told: set[tuple[str, _Source]] = set()

    def hand_on(self, op: str, inputs: Sequence[Any], functions: Sequence[str], results: Any) -> Any:
        """Return the results of an op or a call, which remember the datasets that they come from.

        `functions` are those that the op gives to a dataset. A dataset that is given to an iterator is its source.
        """
        trail = _join_trails(inputs)
        if functions:
            trail = {**trail, **{(name, False): _OBJECT for name in functions}}
        if not trail:
            return results
        lasting = {source: number for source, number in trail.items() if number == _OBJECT}
        if makes_batches(op):
            lasting = {(name, True): _OBJECT for name, _ in lasting}
        taken = dict.fromkeys(lasting, next(self._numbers))
        fresh = {**trail, **taken}
        for tensor in results if isinstance(results, (list, tuple)) else ():
            if is_object(tensor):
                _mark(tensor, lasting)
            else:
                _mark(tensor, fresh)
                self._latest.update(taken)
        if any(tensor.dtype == tf.variant for tensor in inputs):
            for tensor in inputs:
                if tensor.dtype == tf.resource and not is_variable(tensor):
                    _mark(tensor, lasting)
        return results

    def note_call(self, function: str, inputs: Sequence[Any]) -> None:
        """Record which functions of datasets made what is given to a function, once another element is."""
        self._note_turn(function)
        for source, number in _join_trails(inputs).items():
            given = self._given.setdefault(function, {})
            known = given.get(source)
            if known is None:
                given[source] = _FirstGiven(number)
            else:
                known.times += 1
            if number == _OBJECT or (known is not None and known.first != number):
                self._tell(function, source)

    def _note_turn(self, function: str) -> None:
        """Note of which datasets an element was taken since the function's latest call."""
        now, turns = next(self._numbers), self._turns.get(function)
        if turns is None:
            self._turns[function] = _Turns(now)
            return
        taken = {source for source, number in self._latest.items() if number > turns.at}
        turns.at, turns.taken = now, taken if turns.taken is None else turns.taken & taken

    def report(self) -> None:
        """Record what was taken before each call of a function, and what it was given once if nothing else feeds it.

        The program may be at its first step.
        """
        for function, turns in self._turns.items():
            for source in turns.taken or ():
                self._tell(function, source)
        fed = {function for function, _ in self._told}
        for function, given in self._given.items():
            for source, seen in given.items():
                if seen.times == 1 and function not in fed:
                    self._tell(function, source)

    def _tell(self, function: str, source: _Source) -> None:
        if (function, source) not in self._told:
            self._told.add((function, source))
            self._recorder.event("fed", function=function, by=source[0], is_batched=source[1])


def _join_trails(inputs: Sequence[Any]) -> _Trail:
    """Join where tensors come from: an object counts more than an element, of elements the latest does."""
    trails = [trail for tensor in inputs if (trail := getattr(tensor, _FED, None))]
    if len(trails) < 2:
        return trails[0] if trails else {}
    joined: dict[_Source, int] = {}
    for source, number in (each for trail in trails for each in trail.items()):
        known = joined.get(source, number)
        joined[source] = _OBJECT if _OBJECT in (known, number) else max(known, number)
    return joined


def _mark(tensor: Any, trail: _Trail) -> None:
    if trail:
        tensor.__dict__[_FED] = trail
