"""Every sample, on every machine: simplace and TensorFlow place each node alike, and every output of it can be read."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.changes.what_if import suppose_changes
from simplace.doctor.examinations import diagnose_result
from simplace.exports import json_report
from simplace.graph.op_kinds import is_next_iteration
from simplace.report.graph_data import graph_data
from simplace.views.figures.drawing import draw_picture
from simplace.views.figures.eager_figure import eager_figure
from simplace.views.figures.overview_figure import overview_figure
from simplace.views.figures.partition_figure import partition_figure
from simplace.views.figures.placement_figure import placement_figure
from simplace.views.figures.timeline import draw_timeline
from simplace.views.text.summary import agreement_line, write_summary
from simplace.views.text.traffic_phrases import describe_traffic, list_traffic
from tests.exports import every_output, readers
from tests.views.drawn_cycles import is_drawn_acyclic

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.py"))
WITHOUT_GRAPHS = [sample for sample in SAMPLES if sample.stem == "eager_loop"]
WITH_GRAPHS = [sample for sample in SAMPLES if sample not in WITHOUT_GRAPHS]
SHOWN_ON, FEWER = "cpu:1,gpu:2", "cpu:1,gpu:1"  # the machines whose placements have all outputs, and are compared
OTHERS = [("cpu:1,gpu:8", None), (SHOWN_ON, False)]  # the table of agreement has all
MACHINES = [(SHOWN_ON, None), *(pytest.param(*other, marks=pytest.mark.long) for other in OTHERS)]
OF_EACH_KIND = {"compiled_step", "int_variable", "loops", "lstm_step", "matmul", "migrated_v1", "mirrored_keras",
                "missing_gpu", "model_parallel", "towers_on_cpu", "two_tasks"}  # fmt: skip
DRAWN = [pytest.param(sample, id=sample.stem, marks=[] if sample.stem in OF_EACH_KIND else [pytest.mark.long])
         for sample in WITH_GRAPHS]  # fmt: skip
OF_ALL_NODES = ("export.pb", "export.pbtxt", "export.graphml")  # of the program that is drawn

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


def name(path):
    return path.stem


def checked(sample, machine, soft=None):
    """Place a sample, and look that TensorFlow does the same."""
    result = simplace.check(str(sample), machine, soft)
    assert result.programs or result.eager, "the sample has something to place"
    asked = [placed.agreement for placed in result if not placed.is_uncalled]
    eager = [result.eager_agreement] if result.eager else []
    differences = [d for agreement in (*asked, *eager) for d in agreement.differences]
    refusals = [agreement.refusals for agreement in asked]
    assert (differences, result.agrees) == ([], True), f"{refusals}: {result.remarks}"
    return result


@pytest.mark.parametrize(("machine", "soft"), MACHINES)
@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_a_sample_agrees_with_tensorflow(sample, machine, soft):
    checked(sample, machine, soft)


@pytest.mark.parametrize("sample", WITHOUT_GRAPHS, ids=name)
def test_a_sample_without_graphs_is_shown_and_drawn(sample, golden, kept, shown_version):
    result = checked(sample, SHOWN_ON)
    figure = eager_figure(replace(result, target=f"samples/{sample.name}"))  # a longer name has another layout
    kept(sample.with_suffix(".txt"), shown(sample, result))
    golden(f"{sample.stem}.dot", draw_picture(figure, "eager.dot").decode())
    (program,) = json_report.report_result(result)["programs"]
    assert [node["device"] for node in program["nodes"]] == [each.placement.device for each in result.eager.ops]
    assert [each.rule for each in diagnose_result(result, is_saved=False, environment={})][:3] == ["eager-copies"] * 3


@pytest.mark.parametrize("sample", DRAWN)
def test_every_output_of_a_sample_is_made_and_read(sample, golden, kept, request):
    result, fewer = checked(sample, SHOWN_ON), checked(sample, FEWER)
    made = every_output.outputs(result, simplace.diff(result, fewer), shaped=["overview"])
    check_read(result, made)
    check_counts(result, made)
    check_drawn(result)
    if every_output.largest(result).placement.refusal is not None:  # and has none of the outputs of what runs
        soft = suppose_changes(result, soft_placement=True)
        check_read(soft, every_output.outputs(soft, simplace.diff(result, soft)))
    request.getfixturevalue("shown_version")
    kept(sample.with_suffix(".txt"), shown(sample, result))
    golden(f"{sample.stem}.dot", made["overview.dot"].decode())
    golden(f"{sample.stem}.svg", made["overview.svg"].decode())


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


def check_counts(result, made):
    """Look that all outputs count what a step sends alike, and that it is what their lists add up to."""
    report = json.loads(made["show.json"])
    programs = [program for program in report["programs"] if program["kind"] != "eager"]
    for placed, program in zip(result, programs, strict=True):
        told, copies = program["communication"], counted_copies(program)
        signals = [copy for copy in copies if copy["tensor"].startswith("^")]
        tensors = [copy for copy in copies if copy not in signals]
        assert told["control_signals"] == len(signals)
        crossing = [copy["bytes"] for copy in tensors if copy["from"] != copy["to"]]
        within = [copy["bytes"] for copy in tensors if copy["from"] == copy["to"]]
        for volume, sizes in ((told["copies"], crossing), (told["memory_copies"], within)):
            assert volume == {"count": len(sizes), "bytes": sum(filter(None, sizes)), "unknown": sizes.count(None)}
        assert sum(one["count"] for one in told["collectives"]) == len(program["collectives"])
        assert sum(one["bytes"] for one in told["collectives"]) == sum(
            one["bytes"] or 0 for one in program["collectives"]
        )
        columns = graph_data(placed, [device.name for device in placed.placement.devices])
        assert len(columns["copies"]["size"]) == len(program["copies"])
        assert columns["sent"] == list_traffic(placed.traffic)
    largest = every_output.largest(result)
    counts = count_phrase(describe_traffic(largest.traffic))
    if largest.placement.refusal is None:
        told = programs[result.programs.index(largest)]["communication"]
        chart = draw_timeline(schedule_placement(largest.placement))
        shown_as = [chart.caption, chart.description, made["tensorflow.schedule.txt"].decode(),
                    made["textbook.schedule.txt"].decode(), write_summary(result.only(largest.name))]  # fmt: skip
        assert [count_phrase(text) for text in shown_as] == [counts] * len(shown_as)
        assert json.loads(made["tensorflow.schedule.json"])["communication"] == told
        assert counts == count_traffic(told)


def counted_copies(program):
    """Return the copies of a step: of a session those of the run that counts as one."""
    return next((run["copies"] for run in program["runs"] if run["is_step"]), program["copies"])


def check_drawn(result):
    """Look that no figure shows a cycle that is not there, and that an overview has each copy once."""
    for placed in result:
        overview, detail, cut = overview_figure(placed), placement_figure(placed), partition_figure(placed)
        is_loop = any(is_next_iteration(op) for op in placed.placement.graph.ops)
        assert is_loop or all(map(is_drawn_acyclic, (overview, detail, cut)))
        if placed.placement.refusal is None:
            drawn = sum(edge.count for edge in overview.edges if edge.kind == "copy")
            in_graph = sum(copy.producer >= 0 and bool(copy.consumers) for copy in placed.step_copies)
            assert len(placed.step_copies) == placed.traffic.copies.count
            assert drawn in (len(placed.step_copies), in_graph)  # op by op, nothing is there to feed from, or fetch to


def count_phrase(text):
    """Read the numbers of the phrase about what a step sends: copies, those within a device, signals, collectives."""
    found = re.search(r"sends in a step: (.*)", text)
    phrase = "" if found is None else found[1]
    kinds = (r"([\d,]+) cop\w+ between devices", r"([\d,]+) cop\w+ between host", r"([\d,]+) control", r" ×([\d,]+)")
    return [sum(int(number.replace(",", "")) for number in re.findall(kind, phrase)) for kind in kinds]


def count_traffic(told):
    """Read the same numbers from JSON."""
    collectives = sum(one["count"] for one in told["collectives"])
    return [told["copies"]["count"], told["memory_copies"]["count"], told["control_signals"], collectives]


def shown(sample, result):
    """Write the command and what it shows; a path in it is that from the repository's root."""
    command = f"$ simplace show samples/{sample.name} --devices {SHOWN_ON}"
    text = f"{command}\n{write_summary(result)}\n\n{agreement_line(result)}\n"
    return text.replace(f"{sample.parent}/", "samples/")


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
