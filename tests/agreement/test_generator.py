"""Random programs: one seed, one program; any seed, valid Python."""

import ast

import pytest

from simplace.errors import TargetError
from simplace.kernels.registry import KernelTable
from simplace.machine.machine import Machine
from tests.agreement import templates
from tests.agreement.generator import generate
from tests.agreement.prelude import script
from tests.agreement.regressions import Case, read, write

TABLE = KernelTable.shipped()


def test_a_seed_means_one_program():
    assert generate(7, TABLE, 2) == generate(7, TABLE, 2)
    assert generate(7, TABLE, 2) != generate(8, TABLE, 2)


@pytest.mark.parametrize("gpus", [0, 1, 8, 11])
def test_many_seeds_make_valid_python(gpus):
    programs = {f"p{seed}": generate(seed, TABLE, gpus, 2) for seed in range(60)}
    assert len(ast.parse(script(programs)).body) > 60


def test_every_template_is_an_expression():
    every = [*templates.VALUES, *templates.VARIABLES, *templates.REF_VARIABLES, *templates.OBJECTS]
    every += [use for uses in templates.USES.values() for use in uses]
    for dtype, text in every:
        ast.parse(text.replace("{", "").replace("}", "").replace("$", "name"), mode="eval")
        assert dtype in (*templates.DTYPES, "", *templates.USES)


def test_a_case_is_read_as_it_was_written(tmp_path):
    case = Case(generate(1, TABLE, 2), Machine(cpus=2, gpus=3))
    write(tmp_path / "case.py", case, "What it shows.")
    assert read(tmp_path / "case.py") == case


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def program(name):\n    pass\n", "says nowhere on which devices"),
        ("# devices: cpu:1,gpu:0\n", "holds no program"),
    ],
)
def test_a_file_that_is_no_case_is_refused(tmp_path, text, why):
    file = tmp_path / "case.py"
    file.write_text(text)
    with pytest.raises(TargetError, match=why):
        read(file)
