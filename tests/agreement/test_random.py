"""Every program that differed once agrees ever since, and fresh random programs agree too."""

from pathlib import Path

import pytest

from simplace.machine.machine import Machine
from tests.agreement import runner
from tests.agreement.campaign import Count, rounds
from tests.agreement.regressions import read
from tests.seeds import pick_seed

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
PROGRAMS = 30  # on each of two machines: about 4 seconds each

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_case_agrees(case):
    kept = read(case)
    outcomes = runner.run({"p0": kept.source}, kept.machine).outcomes
    assert outcomes, "the case has something to place"
    assert [line for outcome in outcomes for line in outcome.differences] == []


@pytest.mark.hunt
@pytest.mark.parametrize("machine", [Machine(gpus=2), Machine(cpus=2, gpus=0)], ids=["gpu:2", "cpu:2"])
def test_random_programs_agree(machine):
    seed = pick_seed()
    print(f"\npython -m tests.agreement random --seed {seed} --programs {PROGRAMS}, on {machine}")
    count = Count()
    differing = [name for each in rounds(seed, PROGRAMS, PROGRAMS, count, machine) for name in each.differing]
    assert (differing, seed) == ([], seed), f"these programs of seed {seed} differ on {machine}: {count}"
    assert count.programs > PROGRAMS // 2, f"too few programs got as far as a placement: {count}"
