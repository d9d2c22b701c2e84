"""Every sample, on every machine: simplace and TensorFlow place each node alike, and every output of it can be read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import simplace
from simplace.views.summary import agreement_line, summary
from simplace.what_if import suppose
from tests.exports import every_output, readers

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.py"))
SHOWN_ON, FEWER = "cpu:1,gpu:2", "cpu:1,gpu:1"  # the machines whose placements have all outputs, and are compared
OTHERS = [("cpu:1", None), ("cpu:1,gpu:8", None), ("cpu:1", False), (SHOWN_ON, False)]  # the table of agreement has all
KINDS = (*every_output.KINDS, "png", "pdf")
LOOKS = ("class", "fill", "stroke", "stroke-dasharray", "aria-label")  # of an element of a drawing
OF_ALL_NODES = ("export.pb", "export.pbtxt", "export.graphml")  # of the program that is drawn

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


def name(path):
    return path.stem


def checked(sample, machine, soft=None):
    """Place a sample, and look that TensorFlow does the same."""
    result = simplace.check(str(sample), machine, soft)
    assert result.programs, "the sample has something to place"
    differences = [d for placed in result for d in placed.agreement.differences]
    refusals = [placed.agreement.refusals for placed in result]
    assert (differences, result.agrees) == ([], True), f"{refusals}: {result.remarks}"
    return result


@pytest.mark.parametrize(("machine", "soft"), OTHERS)
@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_a_sample_agrees_with_tensorflow(sample, machine, soft):
    checked(sample, machine, soft)


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_every_output_of_a_sample_is_made_and_read(sample, golden, request):
    result, fewer = checked(sample, SHOWN_ON), checked(sample, FEWER)
    made = every_output.outputs(result, simplace.diff(result, fewer), KINDS)
    rewrite = request.config.getoption("--rewrite-golden")
    check_expected(sample, result, rewrite)
    golden(f"{sample.stem}.dot", made["placement.dot"].decode())
    check_drawing(Path(__file__).parent / "golden" / f"{sample.stem}.svg", made["placement.svg"], rewrite)
    check_read(result, made)
    if every_output.largest(result).placement.refusal is not None:  # and has none of the outputs of what runs
        soft = suppose(result, soft_placement=True)
        check_read(soft, every_output.outputs(soft, simplace.diff(result, soft)))


def check_read(result, made):
    """Look that each output can be read, and that what holds all nodes holds their devices."""
    read = {file: readers.read(file, data) for file, data in made.items()}
    wanted = [{node.name: node.device for node in placed.placement.nodes} for placed in result]
    assert readers.devices(read["show.json"]) == wanted
    largest = every_output.largest(result)
    if largest.placement.refusal is None:
        of_one = wanted[result.programs.index(largest)]
        assert [readers.devices(read[file]) for file in OF_ALL_NODES] == [[of_one] for _ in OF_ALL_NODES]
    explained = re.findall(r"^  1\. ", read["explain.txt"], flags=re.MULTILINE)
    assert len(explained) == sum(len(placed.placement.graph) - 2 for placed in result)


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


def check_drawing(file, drawn, rewrite):
    """Compare what is drawn; where it stands depends on the version of Graphviz."""
    if rewrite and not (file.exists() and marks(file.read_bytes()) == marks(drawn)):
        file.write_bytes(drawn)
    assert marks(drawn) == marks(file.read_bytes()), f"if the new drawing is right: pytest --rewrite-golden {__file__}"


def marks(svg):
    """List the elements of a drawing with their words and colours."""
    said = [(each.tag, each.text or "", *map(each.get, LOOKS)) for each in readers.read("drawn.svg", svg).iter()]
    return sorted(said, key=repr)


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
