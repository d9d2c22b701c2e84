"""Which fraction of a GPU's memory holds for a simulated step."""

from __future__ import annotations

import pytest

from simplace.analysis.session_memory import use_memory_fraction
from simplace.executor.step_options import StepOptions
from simplace.program.observation import PythonFact

SESSION = PythonFact("memory fraction", "model.py:3", {"fraction": "0.4"})
UNIFIED = PythonFact("memory fraction", "model.py:3", {"fraction": "1.5"})


@pytest.mark.parametrize(
    ("chosen", "facts", "used"),
    [(None, (), 0.0), (None, (SESSION,), 0.4), (None, (UNIFIED,), 0.0), (0.0, (SESSION,), 0.0), (0.7, (SESSION,), 0.7)],
)
def test_what_the_program_sets_holds_where_nothing_else_is_chosen(chosen, facts, used) -> None:
    assert use_memory_fraction(StepOptions(gpu_memory_fraction=chosen), facts).gpu_memory_fraction == used
