"""Every sample, on every machine: simplace and TensorFlow place each node alike, and `show` prints what it printed."""

import subprocess
import sys
from pathlib import Path

import pytest

import simplace
from simplace.views.summary import agreement_line, summary

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.py"))
MACHINES = ("cpu:1", "cpu:1,gpu:1", "cpu:1,gpu:2", "cpu:1,gpu:8")
SHOWN_ON = "cpu:1,gpu:2"
CASES = [
    *((machine, None) for machine in MACHINES),
    ("cpu:1", False),
    (SHOWN_ON, False),
]  # the table of agreement has all

pytestmark = pytest.mark.tf


def name(path):
    return path.stem


@pytest.mark.parametrize(("machine", "soft"), CASES)
@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_a_sample_agrees_with_tensorflow(sample, machine, soft, capfd, request):
    result = simplace.check(str(sample), machine, soft)
    assert result.programs, "the sample has something to place"
    differences = [d for placed in result for d in placed.agreement.differences]
    refusals = [placed.agreement.refusals for placed in result]
    assert (differences, result.agrees) == ([], True), f"{refusals}: {result.remarks}"
    if soft is None and machine == SHOWN_ON:
        check_expected(sample, result, request.config.getoption("--rewrite-golden"))


def check_expected(sample, result, rewrite):
    """Compare with the summary beside the sample; a path in it is that from the repository's root."""
    text = (
        f"$ simplace show samples/{sample.name} --devices {SHOWN_ON}\n{summary(result)}\n\n{agreement_line(result)}\n"
    )
    text = text.replace(f"{sample.parent}/", "samples/")
    expected = sample.with_suffix(".txt")
    if rewrite:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"if the new text is right: pytest --rewrite-golden {__file__}"


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_a_sample_is_a_plain_tensorflow_program(sample):
    """Samples never mention simplace: they are what a user would write."""
    assert "import simplace" not in sample.read_text(encoding="utf-8")


def test_soft_placement_moves_what_hard_placement_refuses():
    sample = str(SAMPLES[0].with_name("int_variable.py"))
    (hard,) = simplace.check(sample, "cpu:1,gpu:1").programs
    (soft,) = simplace.check(sample, "cpu:1,gpu:1", soft_placement=True).programs
    assert hard.placement.refusal is not None
    assert "Could not satisfy explicit device specification" in hard.placement.refusal.message
    assert {n.device[-5:] for n in soft.placement.nodes if "Variable" in n.op or n.op.startswith("Assign")} == {"CPU:0"}


def test_the_program_s_own_output_reaches_the_terminal_and_nothing_else_does():
    sample = str(SAMPLES[0].with_name("matmul.py"))
    done = subprocess.run(
        [sys.executable, "-m", "simplace", "show", sample, "--devices", "cpu:1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[[22. 28.]" in done.stdout
    assert done.stderr == ""
    assert done.stdout.rstrip().splitlines()[-1].startswith("agrees with TensorFlow")
